"""The contract that every encoder family and strategy keeps, whoever adds one (see trained.py).

Families come from tiny.py, strategies from the shipped catalogue. Heads, selectors and metrics have batteries of their
own, which also try parts from outside: test_contract_head.py, test_contract_selector.py, test_contract_metric.py.
"""

import functools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import HOME
from test_device_runs import SHIPPED
from thaw.core.digests import digest
from thaw.core.files import read_json
from thaw.schema.catalogue import Catalogue
from thaw.schema.yaml_files import read_yaml
from thaw.steps.train import start, taught
from thaw.training.checkpoints import write_run
from tiny import CAUSAL, FAMILIES
from tiny_corpus import Bench, quick, tiny_corpus
from tiny_students import teach, with_parts, with_transfer_set
from trained import TRAINS, check_training

CATALOGUE = Catalogue([HOME / "config"])
# of those that differ in numbers alone the first; the others when asked for
STRATEGIES = [
    name if name in SHIPPED else pytest.param(name, marks=pytest.mark.slow)
    for name in read_yaml(HOME / "config" / "strategies.yaml").content["strategies"]
]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """The small corpora by task type."""
    folder = tmp_path_factory.mktemp("corpora")
    return {kind: tiny_corpus(folder / kind, kind) for kind in ("classification", "spans")}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory, corpora):
    """A bench with an encoder of each family in turn."""
    return Bench(tmp_path_factory.mktemp(request.param), request.param, corpora["classification"], "classification")


@pytest.fixture(scope="module")
def bert(tmp_path_factory, corpora):
    """Benches with a small BERT, by task type; texts have a transfer set."""
    benches = {kind: Bench(tmp_path_factory.mktemp(kind), "bert", corpus, kind) for kind, corpus in corpora.items()}
    with_transfer_set(benches["classification"], tmp_path_factory.mktemp("stsb"), "stsb")
    return benches


@pytest.fixture(scope="module")
def earlier(bert, tmp_path_factory) -> Callable[[str, bool], tuple]:
    """Return a function that executes a strategy that others start after or learn from, once for all of them."""

    @functools.cache
    def execute(name: str, keep: bool) -> tuple[dict, Path, dict[str, Path]]:
        return executed(bert["classification"], name, tmp_path_factory.mktemp(name), execute, keep)

    return execute


@pytest.mark.parametrize("name", TRAINS)
def test_every_family(family, name):
    head = {"pooling": "last"} if family.family in CAUSAL else None
    check_training(family, family.spec({"train": TRAINS[name], "k": 1}, head=head), again=name == "full")


def strategy_spec(bench: Bench, name: str, **changes) -> tuple[str, dict]:
    """Return the step that executes a catalogue's strategy, and its spec with quick phases; a sweep's k is 1."""
    entry = CATALOGUE.get("strategies", name, "test")
    phases = [quick(phase) for phase in entry.phases]
    for later in phases if entry.after else phases[1:]:
        if later["train"] == ["head"]:  # on layers that were trained before: as planned, from text
            later["boundary"] = None
    step = "fit_heads" if phases[0].get("optimizer") == "lbfgs" else "train"
    return step, with_parts(bench, entry, bench.spec(*phases, **changes))


def executed(
    bench: Bench, name: str, out, earlier: Callable[[str, bool], tuple], keep: bool = False
) -> tuple[dict, Path, dict[str, Path]]:
    """Execute a strategy through its step, and first those that it starts after and learns from.

    Args: earlier, which executes those, as the fixture does; keep, whether the encoder is kept though the strategy
    does not say so, as the plan has it for students.
    Returns its spec, the folder of the run, and the files that it needed, by role.
    """
    entry = CATALOGUE.get("strategies", name, "test")
    changes, needs = {"after": None, "keep": keep or entry.keep}, {}
    kept = entry.student is not None or entry.teacher is not None
    before = {one: earlier(one, kept) for one in dict(entry.needed.values())}
    if entry.after:
        spec, folder, _ = before[entry.start.strategy]
        changes["after"] = {"run": digest(spec), "epoch": entry.start.epoch}
        needs["start"] = folder / "metrics.json"
    step, spec = strategy_spec(bench, name, **changes)
    if entry.teacher:
        needs["teacher"] = teach(
            bench, before[entry.teaching.strategy][1] / "metrics.json", spec["phases"], out / "taught"
        )
        spec["teacher"] = {"taught": read_json(needs["teacher"])["digest"]}
    if step == "fit_heads":
        bare = {key: value for key, value in spec.items() if key != "seed"}
        return spec, bench.step(step, bare, out, "--seeds", 1) / "seed1", needs
    return spec, bench.step(step, spec, out, *(x for need in needs.items() for x in ("--need", *need))), needs


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy(bert, earlier, name, tmp_path):
    """Its step writes what a run has, and what another training of the same spec leaves."""
    bench = bert["classification"]
    (spec, folder, needs), again = executed(bench, name, tmp_path / "first", earlier), tmp_path / "again"
    metrics = json.loads((folder / "metrics.json").read_text())
    assert (metrics["spec"], metrics["digest"]) == (spec, digest(spec))
    assert set(metrics["scores"]) >= {"train", "validation", "test"}
    assert set(json.loads((folder / "cost.json").read_text())) >= {"seconds", "flops", "parameters", "hardware"}
    if strategy_spec(bench, name)[0] == "train":
        teacher = taught(spec, needs, bench.inputs(spec=spec))
        run, left = check_training(bench, spec, start(spec, needs), again=False, taught=teacher)
        write_run(again, spec, run.context, left, left.outcome, {})
    else:
        _, again, _ = executed(bench, name, again, earlier)
    for file in ("metrics.json", "history.csv", "head.safetensors", "predictions.parquet"):
        assert (folder / file).read_bytes() == (again / file).read_bytes(), file
