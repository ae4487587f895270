"""The recipe of CONTRIBUTING for an output, followed in a copy: three files, whether or not the plan knows of it."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import invented
from thaw.core.digests import canonical
from workflow import HOME

BUILDER = '''"""A table of how many runs there are."""

from thaw.outputs.render.typed_table import Cell, Group, Row, Table


def build(data, spec: dict) -> Table:
    """Return the number of runs by strategy."""
    counts = data.runs["strategy"].value_counts().to_dict()
    rows = [Row(name, [Cell(count, "count")], [{"strategy": name, "runs": count}]) for name, count in counts.items()]
    return Table.of_spec(spec, ["Runs"], [Group("", rows)], [])
'''
PLAIN = """TABLES = {
    "count_table": OutputKind("thaw.outputs.tables.run_counts:build", "how many runs there are"),
"""
WITH_PLAN = """TABLES = {
    "count_table": OutputKind(
        "thaw.outputs.tables.run_counts:build",
        "how many runs there are, of the full model and others",
        options.ReferenceOptions,
        needs=(Requirement.FULL,),
        adds=(Addition.STUDENTS,),
    ),
"""
ENTRY = """
  counts:
    kind: count_table
    caption: How many runs there are.
"""


@pytest.fixture
def copy(tmp_path):
    """Return a copy of what a new kind is added to."""
    for part in ("scripts", "config"):
        shutil.copytree(HOME / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HOME / "Snakefile", tmp_path)  # by which it is known for a checkout
    return tmp_path


def changed(copy) -> list[str]:
    """Return the files of a copy that are not those of the repository."""
    files = [path for path in copy.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    names = [path.relative_to(copy) for path in files]
    alike = [one for one in names if (HOME / one).exists() and (HOME / one).read_bytes() == (copy / one).read_bytes()]
    return [str(one) for one in names if one not in alike]


def python(copy, *arguments) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(copy / "scripts"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment)


@pytest.fixture
def invented_runs(tmp_path_factory):
    """The runs.csv of invented records, as `collect` makes it."""
    folder = tmp_path_factory.mktemp("invented")
    invented.write_runs(folder)
    invented.write_cards(folder)
    out = folder / "outputs/invented/runs.csv"
    spec = ("--spec", canonical(invented.collect_spec()))
    done = python(HOME, "-m", "thaw.steps.collect", *spec, "--results", folder, "--logs", folder / "logs", "--out", out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize(
    "declared, more", [pytest.param(PLAIN, "", marks=pytest.mark.slow), (WITH_PLAN, "    reference: full\n")]
)
def test_a_new_output_is_three_files(copy, declared, more, invented_runs, tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("made")
    (copy / "scripts/thaw/outputs/tables/run_counts.py").write_text(BUILDER)
    tables = copy / "scripts/thaw/declarations/tables.py"
    tables.write_text(tables.read_text().replace("TABLES = {\n", declared))
    entries = copy / "config/outputs.yaml"
    entries.write_text(entries.read_text() + ENTRY + more)
    assert len(changed(copy)) == 3
    plan = "import sys; from pathlib import Path; from thaw.planning.configuration import load_plan\n"
    plan += "from thaw.planning.configuration import read_config\n"
    plan += f"home = Path({str(copy)!r})\n"
    plan += "wish = {'outputs': ['counts'], 'strategies': ['linear_probe', 'full']}\n"
    plan += "config = read_config([str(home / 'config/config.yaml')], wish)\n"
    plan += "print(load_plan(config, home).job('table', 'demo/counts').canonical)"
    done = python(copy, "-c", plan)
    assert done.returncode == 0, done.stderr
    spec = json.loads(done.stdout)
    assert spec["kind"] == "count_table" and ("students" in spec) == bool(more)
    out = tmp_path / "made/counts"
    spec |= {"labels": invented.LABELS}
    arguments = ["--spec", canonical(spec), "--runs", invented_runs, "--results", tmp_path, "--out", out]
    done = python(copy, "-m", "thaw.steps.table", *arguments)
    assert done.returncode == 0 and "FAILED" not in done.stderr, done.stderr
    assert (tmp_path / "made/counts.csv").read_text().startswith("strategy,runs\n")
