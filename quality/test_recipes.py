"""The recipes of CONTRIBUTING.md for a head and a probe, followed in a scratch copy: how many files, and do they work?

Each recipe is a dict of edits by file: a whole new file, or (where, what is put before it). What is added must be found
by the plan and tried by the contract's tests, of which no line is changed.
"""

import os
import shutil
import subprocess
import sys

import pytest

from workflow import HOME

HEAD = {
    "scripts/thaw/heads/squared.py": '''"""A linear head on squared vectors."""

import torch

from thaw.features.batch import Batch
from thaw.heads.linear import LinearHead


class SquaredHead(LinearHead):
    """The linear head, on the squares of what it reads."""

    def vectors(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return what the matrix reads of states [S, T, d]: [B, F], or [B, W, F] for words."""
        return super().vectors(states, batch).square()
''',
    "scripts/thaw/declarations/heads.py": [
        (
            '    "cosine": HeadKind(',
            '    "squared": HeadKind("thaw.heads.squared:SquaredHead", constant_vectors=True),\n',
        ),
    ],
    "config/heads.yaml": [("  linear:\n", "  squared:\n    label: Squared\n    kind: squared\n\n")],
}

PROBE = {
    "scripts/thaw/probes/vector_norm.py": '''"""How long the vectors of each layer are."""

from thaw.probes.reading import Reading


def vector_norm(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each layer, and for each layer the mean length of its vectors on test."""
    rows, layer_scores = [], []
    for number, vectors in zip(reading.numbers, reading.splits["test"].layers, strict=True):
        length = vectors.values.norm(dim=1).mean().item()
        rows.append({"layer": number, "seed": seed, "length": length})
        layer_scores.append({"layer": number, "seed": seed, "scores": {"test": {"length": length}}})
    return rows, layer_scores
''',
    "scripts/thaw/declarations/probes.py": [
        (
            '    "mutual_information": ProbeKind',
            """    "vector_norm": ProbeKind(
        "thaw.probes.vector_norm:vector_norm", LinearOptions, VECTORS, CURVES, "length"
    ),
""",
        ),
    ],
    "config/probes.yaml": [("  mutual_information:\n", "  vector_norm:\n    label: Length\n    kind: vector_norm\n\n")],
}

PLAN = """
from pathlib import Path
from thaw.planning.configuration import read_config
from thaw.planning.configuration import load_plan
home = Path.cwd()
plan = load_plan(read_config([str(home / "config/config.yaml")], {changes}), home)
print(*(key for step in plan.jobs.values() for key in step))
"""

CASES = {
    "head": (HEAD, 3, {"heads": ["squared"], "strategies": ["full"], "outputs": ["main_table"]}, "/squared/full/"),
    "probe": (PROBE, 3, {"probes": ["vector_norm"], "outputs": ["probe_curves"]}, "/vector_norm/pretrained"),
}


def follow(recipe: dict, folder) -> None:
    """Make the edits of a recipe in a copy."""
    for name, edits in recipe.items():
        path = folder / name
        text = "" if isinstance(edits, str) else path.read_text(encoding="utf-8")
        for where, new in [] if isinstance(edits, str) else edits:
            assert where in text, f"{name} has no {where!r}"
            text = text.replace(where, new + where, 1)
        path.write_text(edits if isinstance(edits, str) else text, encoding="utf-8")


def run(folder, *arguments) -> str:
    """Run Python in a copy; return what it prints."""
    environment = os.environ | {"PYTHONPATH": str(folder / "scripts"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("part", CASES)
def test_the_places_that_a_recipe_edits_are_there(part, tmp_path):
    recipe, files, _, _ = CASES[part]
    for name in recipe:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (HOME / name).exists():
            shutil.copy(HOME / name, tmp_path / name)
    follow(recipe, tmp_path)
    assert len(recipe) == files


@pytest.mark.slow
@pytest.mark.parametrize("part", CASES)
def test_the_contract_tries_what_a_recipe_adds(part, tmp_path):
    recipe, _, changes, key = CASES[part]
    for name in ("scripts", "config", "tests"):
        shutil.copytree(HOME / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "Snakefile"):
        shutil.copy(HOME / name, tmp_path)
    follow(recipe, tmp_path)
    assert key in run(tmp_path, "-c", PLAN.format(changes=changes))
    name = next(iter(recipe)).rpartition("/")[2].removesuffix(".py")
    tried = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/test_contract_{part}.py", "-k", name)
    assert " passed" in tried and " failed" not in tried
