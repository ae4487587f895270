"""Snakemake's conventions: workflow/Snakefile, Thaw as a module of another workflow, the environment of steps."""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

import forked

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/howto/snakemake.md").read_text(encoding="utf-8")
EXPERIMENT = {
    "experiment": "mine",
    "title": "Used by another workflow",
    "tasks": ["acceptability"],
    "encoders": ["minilm"],
    "strategies": ["frozen"],
    "seeds": [1],
    "baselines": ["majority"],
    "outputs": ["main_table"],
}


def jobs(folder: Path, *options: str, run=forked.run) -> dict[str, int]:
    """Return how many jobs of each rule a dry run in a folder lists. Args: options; what runs Snakemake."""
    done = run(["snakemake", "--dry-run", "--quiet", "rules", "--cores", "1", *options], folder)
    shown = done.stdout + done.stderr
    assert done.returncode == 0, shown[-3000:]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", shown, re.MULTILINE)}


def without_a_path_to_thaw(command: list[str], folder: Path) -> subprocess.CompletedProcess:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    pipes = {"capture_output": True, "text": True, "timeout": 300}
    return subprocess.run([sys.executable, "-m", *command], cwd=folder, env=environment, **pipes)


def test_another_workflow_uses_the_rules_of_thaw_as_the_page_says(tmp_path):
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1].replace("path/to/thaw", str(ROOT))
    (tmp_path / "Snakefile").write_text(example)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"thaw": EXPERIMENT}))
    planned = jobs(tmp_path, run=without_a_path_to_thaw)
    assert planned.pop("total") == 8 and planned.pop("best") == 1
    rules = ("prepare", "fetch", "features", "fit_heads", "baseline", "collect", "table")
    assert planned == {f"thaw_{name}": 1 for name in rules}


def test_the_snakefile_of_the_convention_runs_what_the_root_one_runs(tmp_path):
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    options = ["--configfile", "mine.yaml", "--snakefile"]
    planned = jobs(tmp_path, *options, str(ROOT / "workflow/Snakefile"))
    assert planned == jobs(tmp_path, *options, str(ROOT / "Snakefile")) and planned["all"] == planned["report"] == 1


def test_the_environment_of_the_steps_has_the_pins_without_snakemake_and_tests():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    steps = lines[: next(n for n, line in enumerate(lines) if line.startswith("# Tests"))]
    pins = [line for line in steps if "==" in line and not line.startswith("snakemake")]
    environment = yaml.safe_load((ROOT / "workflow/envs/thaw.yaml").read_text())
    assert next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)) == pins
    code = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    assert code.count("conda:") == code.count('"../envs/thaw.yaml"') > 10


def test_only_what_starts_snakemake_or_runs_in_it_imports_it():
    """So that the environment above is enough for the steps."""
    steps = [*(ROOT / "scripts/thaw").rglob("*.py")]
    importing = {
        path.relative_to(ROOT).as_posix()
        for path in steps
        if re.search(r"^\s*(from|import) snakemake", path.read_text(), re.M)
    }
    assert importing == {f"scripts/thaw/cli/{name}.py" for name in ("run_command", "workflow_events")}


def test_the_catalogue_of_workflows_finds_its_files():
    assert {"mandatory-flags", "software-stack-deployment", "report"} <= set(
        yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    )
    assert (ROOT / "workflow/Snakefile").is_file() and (ROOT / "config/README.md").is_file()
