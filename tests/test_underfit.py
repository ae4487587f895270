"""Runs that had not learnt their training rows: the flag; what a search cost."""

from collections import Counter

import pytest

from thaw.core.files import write_json, write_text
from thaw.outputs.frame.collection import CollectedNeed
from thaw.outputs.frame.price import search_costs
from thaw.outputs.frame.sanity_flags import underfit_runs

PLACE = {"task": "t", "subset": "all", "encoder": "e", "head": "linear", "seed": 1, "pairs": "joint"}
LBFGS, ADAMW = {"train": ["head"], "optimizer": "lbfgs"}, {"train": ["all"]}
SELECTED = LBFGS | {"select": {"by": "clusters"}}


def written(folder, train, *phases, history="", head="linear", chosen=None, **place):
    """Write a run that scored so much on its training rows; return its folder and row."""
    spec = {"task": {"metrics": ["accuracy"]}, "phases": phases, "head": {"kind": head}}
    scores = {} if train == "none" else {"train": {"accuracy": train}}
    write_json(folder / "metrics.json", {"spec": spec, "scores": scores, "chosen": chosen or {}})
    write_text(folder / "history.csv", history)
    return folder, PLACE | place


def epochs(*scores: float, split="validation", steps=(25, 50, 75, 100), phase=1) -> str:
    rows = zip(steps, scores, strict=False)
    lines = [f"{phase},{epoch},{step},0.5,1e-4,{score}" for epoch, (step, score) in enumerate(rows, 1)]
    return "\n".join([f"phase,epoch,step,loss,rate,{split}_accuracy", *lines]) + "\n"


@pytest.mark.parametrize(
    "train, more, underfit",
    [
        (0.80, {}, True),
        (0.895, {}, False),
        (None, {}, True),
        ("none", {}, False),
        (0.80, {"seed": 2}, False),
        (0.80, {"subset": "n100"}, False),
        (0.80, {"pairs": "separate"}, False),
        (0.80, {"head": "mlp"}, False),
        (0.95, {"history": epochs(0.5, 0.7, 0.8, 0.83)}, True),
        (0.95, {"history": epochs(0.5, 0.7, 0.8, 0.83, split="train")}, True),
        (0.989, {"history": epochs(0.5, 0.7, 0.8, 0.83)}, True),
        (0.99, {"history": epochs(0.5, 0.7, 0.8, 0.83)}, False),  # it has learnt its rows
        ("none", {"history": epochs(0.5, 0.7, 0.8, 0.83)}, True),
        (0.95, {"history": epochs(0.5, 0.7, 0.83, 0.835)}, False),
        (0.95, {"history": epochs(0.5, 0.84, 0.8, 0.83)}, False),
        (0.95, {"history": epochs(0.5, 0.8, 0.83)}, False),
        (
            0.95,
            {"history": epochs(0.5, 0.7, 0.83, 0.83, steps=(10, 20, 30, 31))},
            True,
        ),  # the last quarter of the updates
    ],
)
def test_a_run_below_the_probe_on_its_own_rows_or_still_rising_is_underfit(tmp_path, train, more, underfit):
    probe = written(tmp_path / "frozen", 0.90, LBFGS, pairs="best", chosen={"pairs": "joint"})
    run = written(tmp_path / "full", train, ADAMW, **more)
    assert underfit_runs([probe, run]) == ({run[0]} if underfit else set())


def test_a_probe_of_chosen_features_is_no_measure(tmp_path):
    chosen = written(tmp_path / "head2toe", 0.99, LBFGS | {"select": {"by": "clusters"}})
    assert underfit_runs([chosen, written(tmp_path / "full", 0.80, ADAMW)]) == set()


@pytest.mark.parametrize("phases, underfit", [([SELECTED], False), ([ADAMW, LBFGS], False), ([SELECTED, ADAMW], True)])
@pytest.mark.parametrize("train", [0.80, 0.95])
def test_a_fit_to_convergence_is_never_underfit(tmp_path, phases, underfit, train):
    """Its history has a row for each penalty and fraction, with the evaluations that it took as its step."""
    probe = written(tmp_path / "frozen", 0.90, LBFGS)
    history = epochs(0.5, 0.7, 0.8, 0.83, phase=len(phases))
    run = written(tmp_path / "selected", train, *phases, history=history)
    assert underfit_runs([probe, run]) == ({run[0]} if underfit else set())


def test_a_search_is_shared_by_the_runs_that_take_its_settings(tmp_path):
    names = {"task": "t", "subset": "all", "encoder": "e", "head": "linear", "strategy": "full", "variant": "base"}
    one = CollectedNeed("settings", "select", names)

    def cost(seconds: float) -> dict:
        parts = {"load": 1.0, "train": seconds, "evaluate": 1.0, "total": seconds + 9}
        return {"seconds": parts, "processor_seconds": (seconds + 2) / 2, "flops": 6.0, "hardware": {"device": "cpu"}}

    write_json(tmp_path / one.folder / "chosen.json", {"trials": [{"seeds": {"101": 0.5, "102": 0.6}}] * 2})
    for trial in (1, 2):
        for seed in (101, 102):
            folder = f"runs/t/all/e/linear/full/trial{trial}/seed{seed}"
            write_json(tmp_path / folder / "cost.json", cost(float(seed)))
    heads = CollectedNeed("settings", "search_heads", names | {"strategy": "head", "variant": "k02"})
    write_json(tmp_path / "runs/t/all/e/linear/head/k02/cost.json", cost(7.0))
    start = CollectedNeed("start", "train", names | {"seed": 1})
    readers = Counter({one.folder: 2, heads.folder: 1})
    clock, spent = search_costs([one, start, heads, one], tmp_path, readers)
    assert clock == (101 + 102) + 7 and spent == (clock / 2, 12 + 6), "the processor worked for half of the time"
    assert search_costs([start], tmp_path, readers) == (0.0, (0.0, 0.0))
    (tmp_path / folder / "cost.json").unlink()
    assert search_costs([one], tmp_path, readers) is None
    (tmp_path / one.folder / "chosen.json").unlink()
    assert search_costs([one], tmp_path, readers) is None
