"""Two results example by example: flips, slices, settings that differ, and what cannot be compared."""

import numpy as np
import pandas
import pytest

import forked
from thaw.api import run_comparison
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json, write_parquet
from thaw.evaluation.example_slices import in_order, slice_names
from thaw.evaluation.target_kinds import TARGET_KINDS

GOLD = ["yes", "no"] * 6
TEXTS = {
    "one": ["red stone", "it is not a red stone"] * 6,
    "two": ["red stone", "a quiet river in the night"] * 6,
}
TASK = {"id": "odd", "corpus": "real", "target": "same", "type": "pair_classification", "metrics": ["accuracy"]}


def write(results, strategy: str, seeds: dict[int, list[int]], rate: float, task=TASK, subset=None):
    """Write a result whose predictions are wrong at some rows, by seed; return the folder above its seeds."""
    splits = {"test": {"rows": len(GOLD)}}
    card = {"corpus": "real", "texts": list(TEXTS), "targets": {"same": "label"}, "labels": {"same": ["no", "yes"]}}
    write_json(results / "data/real/card.json", card | {"splits": splits})
    write_parquet(results / "data/real/test.parquet", pandas.DataFrame(TEXTS | {"same": GOLD, "row": range(len(GOLD))}))
    folder = results / f"runs/odd/all/tiny/linear/{strategy}/base"
    for seed, wrong in seeds.items():
        predictions = [{"yes": "no", "no": "yes"}[gold] if row in wrong else gold for row, gold in enumerate(GOLD)]
        frame = pandas.DataFrame({"split": "test", "row": range(len(GOLD)), "prediction": predictions})
        write_parquet(folder / f"seed{seed}/predictions.parquet", frame)
        spec = {"task": task, "seed": seed, "phases": [{"rate": rate, "components": ["head"]}]}
        spec |= {"subset": subset} if subset else {}
        scores = {"test": {"accuracy": 1 - len(wrong) / len(GOLD)}}
        write_json(folder / f"seed{seed}/metrics.json", {"spec": spec, "scores": scores})
    return folder


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Return two results: the first has two seeds and errs on rows 0, 1 and 0, the second on rows 1, 2, 4, 6."""
    results = tmp_path_factory.mktemp("results")
    first = write(results, "frozen", {1: [0, 1], 2: [0]}, 1e-3)
    return first, write(results, "full", {1: [1, 2, 4, 6]}, 1e-4)


def test_flips_and_credits_are_those_of_the_predictions(pair):
    first, second = map(run_comparison.ComparedRun.open, pair)
    frame = run_comparison.compared(first, second, "test")
    assert frame["first"].tolist() == [0, 0.5] + [1] * 10
    assert frame["second"].tolist() == [1, 0, 0, 1, 0, 1, 0] + [1] * 5
    found = run_comparison.flips(frame)
    assert (found["first"], found["second"], found["same"]) == (4, 1, 7)
    assert first.score("test") == pytest.approx(1 - 1.5 / 12) and second.score("test") == pytest.approx(8 / 12)


def test_only_examples_that_both_were_scored_on_are_compared(tmp_path):
    few = {"rows": 500, "scored": 5}
    pair = [write(tmp_path, "frozen", {1: [0, 1]}, 1e-3), write(tmp_path, "full", {1: [2]}, 1e-4, subset=few)]
    results = [run_comparison.ComparedRun.open(folder) for folder in pair]
    frame = run_comparison.compared(*results, "test")
    assert len(frame) == 5 and frame["row"].tolist() == results[1].rows("test").tolist()
    assert frame["first"].tolist() == [float(row not in (0, 1)) for row in frame["row"]]


def test_slices_hold_all_examples_and_their_means(pair):
    frame = run_comparison.compared(*map(run_comparison.ComparedRun.open, pair), "test")
    found = {(of, name): row for of, name, *row in run_comparison.slices(frame, ["one", "two"], "same")}
    for of in ("label", "words", "negation", "shared words, %"):
        assert sum(row[0] for (kind, _), row in found.items() if kind == of) == 12
    no = frame[frame["same"] == "no"]
    assert found["negation", "with"] == [6, no["first"].mean(), no["second"].mean(), None], "too few for an interval"
    assert found["shared words, %", "100"][0] == 6, "texts that are equal share all of their words"


def test_a_slice_has_an_interval_of_its_examples_and_of_those_that_were_not_seen():
    """Ten examples without a difference do not show that there is none; nine say nothing at all."""

    def half(differences, bounded=True) -> float | None:
        frame = pandas.DataFrame({"text": ["a"] * len(differences), "first": 0.0, "second": differences, "gold": 1.0})
        (found,) = (row for row in run_comparison.slices(frame, ["text"], "gold", bounded) if row[0] == "negation")
        return found[-1]

    some = [1.0, 0.0] * 10
    assert half(some) == pytest.approx(1.96 * np.std(some) / 20**0.5)
    assert half([0.0] * 10) == pytest.approx(1 - 0.025**0.1) and half([0.0] * 10, bounded=False) is None
    assert half([-1.0] * 2) is None and half(some[:9]) is None


def test_a_result_that_is_compared_with_itself_is_named_as_such(pair):
    done = forked.run(["thaw.cli.main", "compare", pair[0], pair[0]])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The same result twice: ") and "[" not in done.stdout


def test_settings_that_differ_are_named_by_their_path(pair):
    rows = run_comparison.settings(*map(run_comparison.ComparedRun.open, pair))
    assert rows == [("phases.1.learning_rate", "0.001", "0.0001")]


def test_settings_are_printed_as_one_writes_them(tmp_path):
    """Python's True, None and quotes are no YAML, and whether tensors were kept is no setting of an experiment."""
    first = write(tmp_path, "frozen", {1: [0]}, 1e-3)
    second = write(tmp_path, "full", {1: [0]}, 1e-3)
    record = read_json(second / "seed1/metrics.json")
    record["spec"]["phases"][0] |= {"components": ["head", "layer.6"], "boundary": None, "fused": True}
    record["spec"]["keep"] = True
    write_json(second / "seed1/metrics.json", record)
    rows = run_comparison.settings(*map(run_comparison.ComparedRun.open, (first, second)))
    assert {key.rpartition(".")[2]: value for key, _, value in rows} == {
        "components": "[head, layer.6]",
        "boundary": "null",
        "fused": "true",
    }


def test_scores_are_compared_by_their_distance():
    assert TARGET_KINDS["score"].credit(2.0, 3.5) == -1.5
    assert TARGET_KINDS["tags"].credit(np.array(["A", "B"]), ["A", "C"]) == 0.5
    assert TARGET_KINDS["label_set"].credit(np.array(["A", "B"]), ["B", "A"]) == 1.0
    assert TARGET_KINDS["label_set"].credit(np.array([]), ["B"]) == 0.0


def test_a_baseline_is_compared_as_a_run_is(tmp_path):
    run = write(tmp_path / "results", "full", {1: [2]}, 1e-4)
    baseline = tmp_path / "results/baselines/odd/all/majority"
    baseline.parent.mkdir(parents=True)
    write(tmp_path / "results", "other", {1: [0, 1, 2]}, 1e-4).joinpath("seed1").rename(baseline)
    found = run_comparison.flips(
        run_comparison.compared(*map(run_comparison.ComparedRun.open, (baseline, run)), "test")
    )
    assert (found["first"], found["second"]) == (0, 2)
    with pytest.raises(UserError, match="all has no predictions"):
        run_comparison.ComparedRun.open(baseline.parent)


def test_what_cannot_be_compared_is_one_sentence(pair, tmp_path):
    other = write(tmp_path / "results", "full", {1: []}, 1e-4, TASK | {"id": "even"})
    with pytest.raises(UserError, match="is of task odd, .* of even"):
        run_comparison.compared(
            run_comparison.ComparedRun.open(pair[0]), run_comparison.ComparedRun.open(other), "test"
        )
    with pytest.raises(UserError, match="--split dev: these results have test"):
        run_comparison.compared(*map(run_comparison.ComparedRun.open, pair), "dev")
    with pytest.raises(UserError, match="has no predictions; expected a folder below results/"):
        run_comparison.ComparedRun.open(tmp_path)


def test_the_command_prints_both_and_writes_what_differs(pair, home, tmp_path):
    done = forked.run(["thaw.cli.main", "compare", *pair, "--out", tmp_path / "flipped.csv"])
    assert done.returncode == 0, done.stderr
    assert "accuracy on test: 87.5 and 66.7 (2 seeds and 1 seed)." in done.stdout
    assert "| phases.1.learning_rate | 0.001 | 0.0001 |" in done.stdout and "| negation | with | 6 |" in done.stdout
    assert "(too few) |" in done.stdout and "[0.00, 0.00]" not in done.stdout
    assert len(pandas.read_csv(tmp_path / "flipped.csv")) == 5


def test_slices_are_called_by_their_bounds_which_rise():
    frame = pandas.DataFrame({"text": ["a"] * 7 + ["a b"] + ["a " * 11] * 2})
    names = slice_names(frame, ["text"])["words"]
    assert names == ["1"] * 7 + ["2 to 11"] * 3 and in_order(names) == ["1", "2 to 11"], "seven of ten are no third"
    assert in_order(["10 to 12", "9", "2 to 8"]) == ["2 to 8", "9", "10 to 12"]
    assert in_order(["without", "with"]) == ["with", "without"]
