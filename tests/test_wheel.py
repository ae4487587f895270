"""The wheel: what a checkout needs to run is mapped into it. quality/test_wheel_runs.py builds and runs one."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAPPED = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]


def test_the_wheel_holds_all_that_the_workflow_reads():
    """That is each file of workflow/ and config/, what doctor reads, and what the rules name as their environment."""
    needed = {"Snakefile", "workflow", "config", "profiles", "requirements.txt", "environment.yml"}
    assert needed <= set(MAPPED)
    assert all(MAPPED[name] == f"thaw/home/{name}" for name in MAPPED)
    assert all((ROOT / name).exists() for name in MAPPED)
    assert (ROOT / "profiles/default/config.yaml").samefile(ROOT / "workflow/profiles/default/config.yaml")
