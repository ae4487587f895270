"""CONTRIBUTING.md's recipes for what a strategy may say, followed in a copy of the package: which files, and it works.

A key takes two files, an objective one, a mode that starts from another run four.
"""

import os
import shutil
import subprocess
import sys

import pytest

from workflow import HOME

# by recipe: file of the package, then (text, what takes its place)
KEY = {
    "schema/phases.py": (
        "    l2_to_start: Annotated[",
        """    head_weight_decay: Annotated[
        float | None, Key(aliases=("wd_head",))
    ] = Field(None, ge=0, description="weight decay of the matrices of the head; null: weight_decay")
    l2_to_start: Annotated[""",
    ),
    "adaptation/optimizers.py": (
        "            decay = phase.weight_decay if parameter.ndim > 1 else 0.0\n",
        """            own = phase.head_weight_decay if component == "head" else None
            decay = (phase.weight_decay if own is None else own) if parameter.ndim > 1 else 0.0
""",
    ),
}
TRIED_KEY = """
from torch import nn
from thaw.adaptation.optimizers import groups
from thaw.schema.catalogue import Catalogue
from thaw.schema.keys import stated
from thaw.schema.phases import PhaseConfig

old, new = PhaseConfig(train=["head"]), PhaseConfig(train=["head"], wd_head=0.5)
assert stated(new) == {"train": ["head"], "wd_head": 0.5} and stated(old) == {"train": ["head"]}
found = groups({"head": nn.Linear(2, 3).named_parameters()}, new, 6)
assert sorted(group["weight_decay"] for group in found) == [0.0, 0.5]
assert new.model_dump(exclude_defaults=True) == {"train": ["head"], "head_weight_decay": 0.5}
assert "head_weight_decay" not in old.model_dump(exclude_defaults=True)
assert "wd_head" in PhaseConfig.model_json_schema()["properties"]
Catalogue(["config", "config/papers"])
"""

OBJECTIVE = {
    "../../config/papers/plugins/entropy.py": '''"""Confidence penalty (Pereyra et al. 2017)."""

from pydantic import Field

from thaw.declarations.objective_kinds import ObjectiveKind
from thaw.schema.keys import ConfigModel


class EntropyConfig(ConfigModel):
    """The entropy of the predictions."""

    weight: float = Field(0.1, ge=0, description="weight of the entropy of the predictions")


OBJECTIVES = {"confidence_penalty": ObjectiveKind("thaw.papers.entropy:make", EntropyConfig, "confidence penalty")}

import torch

from thaw.training.objectives import Supervised


class ConfidencePenalty(Supervised):
    """The head's loss less the weighted entropy of its predictions, for classes of texts."""

    def __init__(self, gold, weight: float):
        super().__init__(gold)
        self.weight = weight

    def loss(self, model, rows, batch, stored):
        return self.vector_loss(model.head, model(batch, stored), self.targets(model.head, rows, batch))

    def vector_loss(self, head, logits, targets):
        entropy = torch.special.entr(logits.softmax(-1)).sum(-1).mean(-1)
        return super().vector_loss(head, logits, targets) - self.weight * entropy


def make(run, settings, stage, number):
    return ConfidencePenalty(run.gold, settings.weight)
''',
}
TRIED_OBJECTIVE = """
from pathlib import Path
import numpy as np
from thaw.core.files import read_json
from tiny_corpus import Bench, tiny_corpus

folder = Path(sys.argv[1])
bench = Bench(folder, "bert", tiny_corpus(folder / "corpus", "classification"), "classification")
for train in (["head"], ["head", {"top": 1}]):
    plain, penalised = ({"train": train, "epochs": 8} | more for more in ({}, {"confidence_penalty": {"weight": 0.9}}))
    left = [bench.train(bench.spec(phase))[1].predictions["validation"].probabilities for phase in (plain, penalised)]
    sure, unsure = (np.max(probabilities, axis=-1).mean() for probabilities in left)
    assert sure > unsure + 0.01, (sure, unsure)
"""

MODE = {
    "schema/strategy.py": [
        (
            "    pairs: Literal[",
            """    head_of: Id | None = Field(
        None, description="begin with the head of this strategy's run of the same task and seed"
    )
    pairs: Literal[""",
        ),
        (
            "        return {role: (one.strategy, one.variant) for role, one in named.items() if one}\n",
            """        needed = {role: (one.strategy, one.variant) for role, one in named.items() if one}
        return needed | ({"head": (self.head_of, "base")} if self.head_of else {})
""",
        ),
    ],
    "declarations/needs.py": (
        "NEEDS = {\n",
        """NEEDS = {
    "head": NeedRole("train", "metrics.json", ("head_of", "run"), word="with the head of", costs=True),
""",
    ),
    "planning/run_grid.py": (
        "        if weights.further:\n",
        """        if strategy.head_of:
            if strategy.start:
                raise UserError(f"{place}: after gives a head already; leave out head_of")
            earlier = self._run(cell._replace(strategy=strategy.head_of, value=None), (*asked, name))
            needs.append(Need("head", earlier))
        if weights.further:
""",
    ),
    "steps/train.py": (
        "        runs = [run, *run.others]\n",
        """        if "head" in needs:
            from safetensors.torch import load_file

            run.head.load_state_dict(load_file(needs["head"].parent / "head.safetensors"))
        runs = [run, *run.others]
""",
    ),
}
TRIED_MODE = """
from pathlib import Path
from safetensors.torch import load_file
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.outputs.frame import collection
from thaw.planning.configuration import load_plan, read_config
from tiny_corpus import Bench, tiny_corpus

folder = Path(sys.argv[1])
strategies = "strategies: {next: {phases: [{train: [head, {top: 1}]}], head_of: frozen_sgd}}"
(folder / "strategies.yaml").write_text(strategies)
wish = {"catalogues": [str(folder)], "strategies": ["next"], "tasks": ["acceptability"], "baselines": [], "seeds": [1]}
wish |= {"subsets": ["all"], "heads": ["linear"], "encoders": ["minilm"]}
plan = load_plan(read_config(["config/config.yaml"], wish), Path.cwd())
cell = "runs/acceptability/all/minilm/linear/"
job, earlier = plan.job("train", cell + "next/base/seed1"), plan.job("fit_heads", cell + "frozen_sgd/base")
assert job.inputs["head"] == [f"results/{cell}frozen_sgd/base/seed1/metrics.json"]
assert len(job.spec["head_of"]["run"]) == len(earlier.digest)
(cost,) = [row.paid for row in collection.selected(plan.job("collect", "demo").spec) if row.needs]
assert cost == [cell + "frozen_sgd/base/seed1"]
(folder / "strategies.yaml").write_text(strategies.replace("head_of", "after: frozen_sgd, head_of"))
try:
    load_plan(read_config(["config/config.yaml"], wish), Path.cwd())
except UserError as error:
    assert "leave out head_of" in str(error)
else:
    raise AssertionError("a check of a mode that is not called")

bench = Bench(folder, "bert", tiny_corpus(folder / "corpus", "classification"), "classification")
first = bench.step("train", bench.spec({"train": ["head"]}), folder / "first")
spec = bench.spec({"train": ["head"], "rate": 1e-9, "head_rate": 1e-9, "epochs": 1})
spec["head_of"] = {"run": read_json(first / "metrics.json")["digest"]}
second = bench.step("train", spec, folder / "second", "--need", "head", first / "metrics.json")
one, other = (load_file(run / "head.safetensors")["output.weight"] for run in (first, second))
assert (one - other).abs().max() < 1e-6
"""

RECIPES = {"key": (KEY, 2, TRIED_KEY), "objective": (OBJECTIVE, 1, TRIED_OBJECTIVE), "mode": (MODE, 4, TRIED_MODE)}
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("objective", "mode")]  # these train


def followed(recipe: dict, package) -> None:
    """Edit a copy of the package as a recipe says."""
    for file, edits in recipe.items():
        if isinstance(edits, str):
            (package / file).write_text(edits)
            continue
        text = (package / file).read_text()
        for before, after in edits if isinstance(edits, list) else [edits]:
            assert text.count(before) == 1, f"{file}: the recipe's place is gone: {before}"
            text = text.replace(before, after)
        (package / file).write_text(text)


def copied(folder):
    """Return a copy of the package in a copy of the checkout."""
    for name in ("scripts/thaw", "config"):
        shutil.copytree(HOME / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HOME / "Snakefile", folder)
    return folder / "scripts/thaw"


@pytest.mark.parametrize("name", RECIPES)
def test_the_places_that_a_recipe_edits_are_there(name, tmp_path):
    recipe, files, _ = RECIPES[name]
    followed(recipe, copied(tmp_path))
    assert len(recipe) == files


@pytest.mark.parametrize("name", ["key", *SLOW])
def test_what_a_strategy_may_say_works_once_its_recipe_is_followed(name, tmp_path):
    recipe, _, tried = RECIPES[name]
    copy, made = tmp_path / "copy", tmp_path / "made"
    made.mkdir()
    followed(recipe, copied(copy))
    path = os.pathsep.join(map(str, (copy / "scripts", HOME / "tests")))
    here = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", f"import sys\n{tried}", str(made)]
    done = subprocess.run(command, cwd=copy, env=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
