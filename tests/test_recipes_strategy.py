"""CONTRIBUTING.md's recipe for a key of a strategy, followed in a copy of the package: two files by hand."""

import os
import shutil
import subprocess
import sys

# file of the package: (text, what takes its place)
RECIPE = {
    "schema/phases.py": (
        "    l2_to_start: Annotated[",
        """    head_weight_decay: Annotated[
        float | None, Key("head weight decay {}", "head weight decay", ("wd_head",))
    ] = Field(None, ge=0, description="weight decay of the matrices of the head; null: weight_decay")
    l2_to_start: Annotated[""",
    ),
    "adaptation/param_groups.py": (
        "            decay = phase.weight_decay if parameter.ndim > 1 else 0.0\n",
        """            own = phase.head_weight_decay if component == "head" else None
            decay = (phase.weight_decay if own is None else own) if parameter.ndim > 1 else 0.0
""",
    ),
}

TRIED = """
from torch import nn
from thaw.adaptation.param_groups import groups
from thaw.schema.catalogue import Catalogue
from thaw.schema.json_schema import schemas
from thaw.schema.keys import clauses
from thaw.schema.phases import PhaseConfig
from thaw.schema.reference_page import reference_page

old, new = PhaseConfig(train=["head"]), PhaseConfig(train=["head"], wd_head=0.5)
assert "head weight decay 0.5" in clauses(new) and not any("head weight" in text for text in clauses(old))
found = groups({"head": nn.Linear(2, 3).named_parameters()}, new, 6)
assert sorted(group["weight_decay"] for group in found) == [0.0, 0.5]
assert new.model_dump(exclude_defaults=True) == {"train": ["head"], "head_weight_decay": 0.5}
assert "head_weight_decay" not in old.model_dump(exclude_defaults=True)
assert "| `wd_head` | number ≥ 0 or `null` | `null` | Weight decay of the matrices of the head" in reference_page()
assert "wd_head" in str(schemas()["strategies.schema.json"])
Catalogue(["config", "config/papers"])
"""


def test_a_key_of_a_strategy_takes_two_files(home, tmp_path):
    shutil.copytree(home / "scripts/thaw", tmp_path / "thaw", ignore=shutil.ignore_patterns("__pycache__"))
    for name, (before, after) in RECIPE.items():
        path = tmp_path / "thaw" / name
        text = path.read_text()
        assert text.count(before) == 1, f"{name}: the recipe's place is gone"
        path.write_text(text.replace(before, after))
    here = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", TRIED], cwd=home, env=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(RECIPE) == 2
