"""Bad science: each kind is found, flagged in the run's row, and told under the table, and no other run suffers."""

import json

import numpy as np
import pandas
import pytest

from shown import Shown
from thaw.core import layout
from thaw.core.files import read_json
from thaw.declarations.flags import FLAG_LABELS, flag_label
from thaw.outputs.frame.sanity_flags import sanity_flags
from tiny_corpus import Bench, rows, tiny_corpus

HEAD = {"train": ["head"], "epochs": 2}
STILL = {"rate": 1e-30, "head_rate": 1e-30, "weight_decay": 0.0}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doubts")
    bench = Bench(folder, "bert", tiny_corpus(folder / "data", "classification"), "classification")
    return Shown(bench, folder / "results")


def other(folder, kind="classification", **splits) -> Shown:
    """Return results on a corpus with other splits."""
    bench = Bench(folder, "bert", tiny_corpus(folder / "data", kind, **splits), kind)
    return Shown(bench, folder / "results")


def relabelled(count: int, seed: int, name) -> list[dict]:
    """Return examples whose labels are given by number."""
    return [row | {"label": name(number)} for number, row in enumerate(rows("classification", count, seed))]


def test_sound_runs_raise_no_doubt(shown):
    shown.train("sound", HEAD | {"epochs": 12, "pick": "best", "head_rate": 3e-2}, seeds=(1, 2))
    assert shown.flags("sound", seeds=(1, 2)) == []
    assert "†" not in shown.table("sound", seeds=(1, 2))


def test_a_loss_that_is_no_number_ends_its_run_alone(shown):
    shown.train("broken", HEAD | {"train": ["all"], "weight_decay": 1e38, "clip": None})
    shown.train("beside", HEAD | {"epochs": 12, "pick": "best", "head_rate": 3e-2})
    assert "diverged" in shown.flags("broken") and shown.flags("beside") == []
    broken, beside = (line for line in shown.table("broken", "beside").splitlines() if line.startswith("| b"))
    assert "†" in broken and "†" not in beside


def test_validation_that_never_moves(shown):
    shown.train("still", HEAD | STILL | {"epochs": 4, "pick": "best"})
    assert "validation_flat" in shown.flags("still")
    assert flag_label("validation_flat") in shown.table("still")


def test_a_plateau_that_never_comes_leaves_the_rate_as_it_is(tmp_path):
    found = other(tmp_path, "regression")
    found.train("rising", HEAD | {"epochs": 4, "schedule": "plateau", "warmup": 0.0, "rate": 1e-3})
    history = pandas.read_csv(tmp_path / "results/runs/t/all/e/linear/rising/base/seed1/history.csv")
    scores = history["validation_pearson"].dropna()
    assert len(scores) == 4 and scores.is_monotonic_increasing and history["rate"].nunique() == 1
    assert "rate_stuck" not in found.flags("rising")


def test_a_head_that_learns_its_rows_by_heart(tmp_path):
    draw = np.random.default_rng(5)
    noise = {
        split: relabelled(n, seed, lambda _: "ny"[draw.integers(2)])
        for split, n, seed in (("train", 16, 1), ("validation", 40, 2), ("test", 40, 3))
    }
    found = other(tmp_path, **noise)
    found.train("large", HEAD | {"epochs": 60, "head_rate": 3e-2}, head={"kind": "mlp"})
    assert "memorised" in found.flags("large")


def test_kernels_that_are_not_deterministic(shown):
    shown.train("sound", HEAD | {"epochs": 12, "pick": "best", "head_rate": 3e-2})
    cost = shown.folder / "runs/t/all/e/linear/sound/base/seed1/cost.json"
    before = cost.read_text()
    assert "deterministic" not in json.loads(before), "on the CPU all are"
    try:
        for strict, flags in {True: False, False: True}.items():
            cost.write_text(json.dumps(json.loads(before) | {"deterministic": strict}))
            assert ("not_deterministic" in shown.flags("sound")) == flags
    finally:
        cost.write_text(before)


def test_a_head_that_wants_a_stronger_penalty_than_any_that_was_tried(shown):
    shown.train("sound", HEAD | {"epochs": 12, "pick": "best", "head_rate": 3e-2})
    folder = shown.folder / "runs/t/all/e/linear/sound/base/seed1"
    record = read_json(folder / "metrics.json")
    phase = {"train": ["head"], "optimizer": "lbfgs"}

    def flagged(chosen: float, **more) -> bool:
        fitted = record | {"spec": record["spec"] | {"phases": [phase | more]}, "chosen": {"l2": chosen}}
        return "strength_at_edge" in sanity_flags(fitted, folder, shown.folder, read_json)

    assert flagged(1.0) and not flagged(0.1), "one of the default strengths is the strongest"
    assert not flagged(1.0, l2=[1.0, 10.0]) and not flagged(1.0, l2=[1.0]), "nothing was chosen of one"


@pytest.mark.parametrize(("kind", "errors"), [("classification", 0.5), ("regression", 1.0)])
def test_a_test_score_is_below_a_constant_one_by_two_standard_errors(kind, errors, tmp_path, shown):
    """That of an accuracy is at most half of that of a correlation near 0."""
    found = shown if kind == "classification" else other(tmp_path, kind)
    found.train("judged", HEAD)
    folder = found.folder / "runs/t/all/e/linear/judged/base/seed1"
    record = read_json(folder / "metrics.json")
    card = read_json(found.folder / layout.file("prepare", {"corpus": record["spec"]["task"]["corpus"]}))
    main, rows = record["spec"]["task"]["metrics"][0], record["rows"]["test"]
    counts = [card["splits"][split]["labels"].get("label", {}) for split in ("train", "test")]
    majority = counts[1].get(max(counts[0], key=counts[0].get), 0) / rows if kind == "classification" else 0.0

    def flagged(times: float) -> bool:
        test = record["scores"]["test"] | {main: majority - times * errors / rows**0.5}
        below = record | {"scores": record["scores"] | {"test": test}}
        return "test_below_majority" in sanity_flags(below, folder, found.folder, read_json)

    assert flagged(2.1) and not flagged(1.9)


def test_every_flag_is_explained(home):
    told = (home / "docs/reference/files.md").read_text()
    assert [flag for flag in FLAG_LABELS if f"`{flag}`" not in told] == []
