"""Subsets with splits of their own: which rows of train train, choose and test, and what runs do with them."""

import json

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora import prepared
from output_records import OutputRecords
from plans import plan_with
from test_real_data import prepare_entry
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.data.corpus import Corpus, rows_outside, scored_part, subset_rows
from thaw.declarations.outputs import OUTPUTS
from thaw.evaluation.result_files import task_with_defaults
from thaw.features.payload import Payload
from thaw.features.store import FeatureStore, write_excerpt
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.render import table_formats
from thaw.outputs.report import methods
from thaw.schema.corpora import SubsetConfig, TaskConfig
from thaw.training.context import read_rows
from thaw.training.head_fitting import HeadFit
from tiny_corpus import Bench, rows, run_in_process, tiny_corpus


def planned(folder, strategies: str, chosen: str, **changes):
    """Plan the demo's first task with strategies of one's own."""
    folder.mkdir()
    (folder / "tasks.yaml").write_text("tasks:\n  again: {base: acceptability}\n")
    return plan_with(folder, strategies, **{"strategies": [chosen]} | changes)


def test_outputs_are_drawn_of_draws_that_hold_out_rows_of_their_own(tmp_path):
    kinds = ("strategy_table", "advice_table", "finding_table")
    chosen = {"subsets": ["divided_1", "divided_2"], "strategies": ["linear_probe", "short_full"], "merges": {}}
    records = OutputRecords(tmp_path, kinds, "together", **chosen, probes=[], adapted=[])
    path = records.results / "outputs/all_kinds/runs.csv"
    own = pandas.read_csv(path).query("kind == 'run'")
    assert dict(own.groupby("split")["role"].first()) == {
        "colour_others/test": "transfer",
        "held_out": "validation",
        "reserved": "reserved",
        "test": "test",
        "train": "train",
    }
    assert set(own["n"][own["split"] == "reserved"]) == {16} and own["carved"].all() and set(own["train_rows"]) == {24}
    made, shown = {}, [(kind, records.spec(kind)) for kind in kinds]
    for kind, spec in [*shown, ("reserved", records.spec("strategy_table") | {"split": "reserved"})]:
        data = OutputData(records.results, path, [], spec.get("first_draws"))
        table = OUTPUTS[spec["kind"]].load()(data, spec)
        made[kind] = table_formats.FORMATS["md"](table)
    for kind, split in (("strategy_table", "test"), ("reserved", "reserved")):
        columns = made[kind].partition("\n| |")[2].partition("\n")[0].split(" | ")
        assert [name.strip().partition("<br>")[0] for name in columns] == ["colour", "weight"]
        assert "over 4 runs" in made[kind] and f", on {split}." in made[kind]
    assert "Reserved: rows of train" in made["reserved"] and "Reserved" not in made["strategy_table"]
    assert "divided" not in made["advice_table"]
    files, terms = PredictionFiles(records.results), {}
    for split in ("held_out", "reserved", "test"):
        rows = own[(own["split"] == split) & (own["strategy"] == "short_full") & (own["metric"] == "accuracy")]
        terms[split] = files.by_row(rows[rows["seed"] == 2], "accuracy", split)
    alike = {split: np.array_equal(*found) for split, found in terms.items()}
    assert alike["test"], "equal predictions, equal draws"
    assert not alike["held_out"], "each draw holds out other rows"


def test_the_plan_of_a_search_names_the_subset_that_it_chooses_on(tmp_path):
    one = "  one: {phases: [{train: [head, {top: 1}]}], search: {grid: {rate: [1e-5, 2e-4]}}}\n"
    for subset, due in (
        ("n100_d1", None),
        ("n1000_r2", {"rows": 1000, "draw": 2, "validation": 0.2, "reserved": 1000}),
    ):
        plan = planned(tmp_path / subset, one, "one", subsets=[subset])
        (choice,) = plan.jobs["select"].values()
        assert choice.spec.get("subset") == due
        trial = next(job for job in plan.jobs["train"].values() if job.spec.get("trial"))
        assert trial.spec["subset"] == (due or {"rows": 100})


def test_a_start_that_trains_on_reserved_rows_is_refused(tmp_path):
    kept = "  kept: {phases: [{train: [head, {top: 2}]}], keep: true}\n"
    after = "  next: {{phases: [{{train: [head]}}], after: {{strategy: kept, task: again{}}}}}\n"
    chosen = {"subsets": ["n1000_r1"]}
    message = "again on the subset all trains on rows of acceptability that n1000_r1 reserves for testing"
    with pytest.raises(UserError, match=message):
        planned(tmp_path / "all", kept + after.format(""), "next", **chosen)
    planned(tmp_path / "same", kept + after.format(", subset: n1000_r2"), "next", **chosen)


def test_the_report_says_what_is_set_aside_once_for_all_draws():
    entry = SubsetConfig(rows=1000, validation=0.2, reserved=2000).model_dump()
    spec = {"subsets": {"a": entry, "b": entry | {"draw": 2}}, "labels": {"subsets": {}}}
    assert [line.replace("\u202f", ",") for line in methods.subsets(spec)] == [
        "Subset a: 1,000 examples of train (draw 1).",
        "Subset b: 1,000 examples of train (draw 2).",
        "a and b: 20 % of the examples are set aside (held_out): by them epochs and settings are chosen, and the "
        "dataset's validation split is not read. Up to 2,000 examples of train, which no draw takes, are one more "
        "test split (reserved).",
    ]


SUBSET = {"rows": 40, "validation": 0.25, "reserved": 20}
TOP = {"train": ["head", {"top": "k"}], "k": 1}
LABEL, SCORE = {"id": "t", "target": "label"}, {"id": "s", "target": "score"}
ENTRY = {"texts": ["text"], "targets": {"label": "label", "score": "score"}}
ENTRY |= {"keep": ["document"], "group_by": "document"}


def parts(corpus: Corpus, subset: dict, task: dict = LABEL) -> dict[str, list[int]]:
    """Return the rows of train in each part."""
    found = {"train": subset_rows(corpus, task, subset)}
    return {name: part.tolist() for name, part in found.items()} | {
        split: scored_part(corpus, split, task, subset).tolist() for split in ("held_out", "reserved")
    }


def documents(folder, sizes: list[int], seed: int) -> Corpus:
    """Prepare a corpus whose train has documents of these sizes, with labels at random."""
    draw, train = np.random.default_rng(seed), []
    for number, size in enumerate(sizes):
        train += [
            {
                "text": f"text {len(train) + i}",
                "label": draw.choice(["no", "yes"]),
                "score": 1.0,
                "document": f"d{number}",
            }
            for i in range(size)
        ]
    other = [{"text": f"other {i}", "label": "yes", "score": 2.0, "document": "o"} for i in range(4)]
    train[:2] = [row | {"label": label} for row, label in zip(train[:2], ("no", "yes"), strict=True)]
    return prepared(folder, ENTRY, train=train, validation=other, test=other)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=30, max_size=60),
    st.integers(0, 2**32 - 1),
    st.integers(10, 30),
    st.integers(5, 80),
)
def test_parts_of_train_share_no_document_and_reserved_rows_are_those_of_all_draws(
    tmp_path_factory, sizes, seed, count, reserved
):
    corpus = documents(tmp_path_factory.mktemp("documents"), sizes, seed)
    frame = corpus.frame("train")
    group, subset = frame["group"].to_numpy(), {"rows": count, "validation": 0.3, "reserved": reserved}
    if count > len(frame) // 2:
        return
    found = {draw: parts(corpus, subset | {"draw": draw}) for draw in (1, 2)}
    for one in found.values():
        names = {split: set(group[chosen]) for split, chosen in one.items()}
        assert not names["train"] & names["held_out"]
        assert not names["reserved"] & (names["train"] | names["held_out"])
        assert len(one["train"]) + len(one["held_out"]) == count and 0 < len(one["held_out"]) <= round(0.3 * count)
        assert all(chosen == sorted(set(chosen)) for chosen in one.values())
        assert 0 < len(one["reserved"]) <= min(reserved, len(frame) // 2 + 1)
        assert set(np.flatnonzero(np.isin(group, list(names["reserved"])))) == set(one["reserved"]), "whole groups"
        outside = rows_outside(corpus, LABEL, subset)
        assert not set(outside) & set(one["reserved"])
    assert found[1]["reserved"] == found[2]["reserved"] and found[1]["train"] != found[2]["train"]
    others = [
        parts(corpus, changed)
        for changed in (subset | {"rows": 6}, {"rows": 8, "validation": 0.5, "reserved": reserved})
    ]
    assert all(other["reserved"] == found[1]["reserved"] for other in others), "whatever is drawn"
    assert parts(corpus, subset, SCORE)["reserved"] == found[1]["reserved"], "the same of all tasks"
    assert parts(Corpus(corpus.folder), subset) == found[1]


def test_labels_keep_their_proportions_in_every_part(tmp_path):
    corpus = documents(tmp_path, [1] * 400, 3)
    labels = corpus.frame("train")["label"].to_numpy() == "yes"
    found = parts(corpus, {"rows": 100, "validation": 0.2, "reserved": 150})
    assert {split: len(chosen) for split, chosen in found.items()} == {"train": 80, "held_out": 20, "reserved": 150}
    for chosen in found.values():
        assert labels[chosen].mean() == pytest.approx(labels.mean(), abs=1 / len(chosen) + 0.01)


def test_without_the_keys_a_subset_is_what_it_was(tmp_path):
    corpus = documents(tmp_path, [1] * 60, 3)
    assert SubsetConfig(rows=20).model_dump(exclude_defaults=True) == {"rows": 20}
    task = TaskConfig(corpus="c", target="t", type="classification", metrics=["accuracy"])
    assert SubsetConfig(rows=20).of_runs(task) == task
    own = SubsetConfig(rows=20, validation=0.2, reserved=9).of_runs(task)
    assert (own.validation, own.test) == ("held_out", ["test", "reserved"])
    whole = subset_rows(corpus, LABEL, {"rows": 20})
    held = {"rows": 20, "validation": 0.2}
    assert sorted([*subset_rows(corpus, LABEL, held), *scored_part(corpus, "held_out", LABEL, held)]) == whole.tolist()
    assert scored_part(corpus, "test", LABEL, SUBSET).tolist() == [0, 1, 2, 3]
    assert len(scored_part(corpus, "reserved", LABEL, {"reserved": 20, "scored": 7})) == 7


@pytest.mark.parametrize(
    "subset, message",
    [
        (
            {"rows": 41, "reserved": 20},
            "subset of 41 rows: train of mine has 60, of which 20 are reserved; ask for fewer",
        ),
        ({"rows": 31, "reserved": 5000}, "train of mine has 60, of which 30 are reserved"),
        ({"rows": 2, "validation": 0.1}, "subset of 2 rows: carve held_out: 0.1 of 2 rows is less than one row"),
    ],
)
def test_what_train_is_too_small_for_is_refused(tmp_path, subset, message):
    with pytest.raises(UserError, match=message):
        subset_rows(documents(tmp_path, [1] * 60, 3), LABEL, subset)


@pytest.mark.parametrize("name, key", [("held_out", {"validation": 0.2}), ("reserved", {"reserved": 9})])
def test_a_dataset_with_a_split_of_that_name_is_refused_only_with_such_a_subset(tmp_path, name, key):
    corpus = tiny_corpus(tmp_path, "classification", **{name: rows("classification", 6, 9)})
    assert len(corpus.frame(name)) == 6 and len(subset_rows(corpus, LABEL, {"rows": 10})) == 10
    assert scored_part(corpus, name, LABEL, {"rows": 10}).tolist() == list(range(6))
    with pytest.raises(UserError, match=f"the dataset has a split '{name}', which is the name of rows that a subset"):
        subset_rows(corpus, LABEL, {"rows": 10} | key)


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    """A small BERT on a task with 80 training rows."""
    folder = tmp_path_factory.mktemp("bench")
    corpus = tiny_corpus(folder / "corpus", "classification", train=rows("classification", 80, 1))
    return Bench(folder, "bert", corpus, "classification")


def check_records(bench: Bench, folder, subset: dict) -> dict:
    """Check which rows a run predicted and how they are scored; return its metrics."""
    metrics = json.loads((folder / "metrics.json").read_text())
    predictions = pandas.read_parquet(folder / "predictions.parquet")
    task = task_with_defaults(metrics["spec"]["task"], subset)
    assert set(metrics["scores"]) == {"train", "held_out", "test", "reserved"}
    assert {split: metrics["rows"][split] for split in ("held_out", "test", "reserved")} == {
        "held_out": 10,
        "test": 8,
        "reserved": 20,
    }
    for split in ("held_out", "reserved"):
        frame = bench.corpus.frame("train").iloc[scored_part(bench.corpus, split, task, subset)]
        mine = predictions[predictions["split"] == split]
        assert mine["row"].tolist() == frame["row"].tolist()
        right = (mine["prediction"].to_numpy() == frame["label"].to_numpy()).mean()
        assert right == metrics["scores"][split]["accuracy"]
    return metrics


def test_a_run_trains_on_the_rest_chooses_on_held_out_and_is_scored_on_reserved(bench, tmp_path):
    spec = bench.spec(TOP | {"epochs": 3, "pick": "best", "rate": 5e-3}) | {"subset": SUBSET}
    folder = bench.step("train", spec, tmp_path / "run")
    metrics = check_records(bench, folder, SUBSET)
    assert metrics["rows"]["train"] == 30
    history = pandas.read_csv(folder / "history.csv")
    best = history["validation_accuracy"].max()
    assert metrics["scores"]["held_out"]["accuracy"] == best
    assert metrics["chosen"]["epochs"] == [history["epoch"][history["validation_accuracy"].idxmax()]]


def test_nothing_of_such_a_run_reads_the_validation_split(bench, monkeypatch):
    asked, take, batch, frame = [], Payload.take, FeatureStore.batch, Corpus.frame
    for read in ("take", "take_again"):
        monkeypatch.setattr(Payload, read, lambda self, split, at: asked.append(split) or take(self, split, at))
    monkeypatch.setattr(FeatureStore, "batch", lambda self, split, at: asked.append(split) or batch(self, split, at))
    monkeypatch.setattr(Corpus, "frame", lambda self, split: asked.append(split) or frame(self, split))
    run, _ = bench.train(bench.spec(TOP) | {"subset": SUBSET}, store=FeatureStore(bench.features))
    assert set(run.rows) == set(parts(bench.corpus, SUBSET)["train"])
    assert set(asked) == {"train", "held_out", "reserved", "test"}


@pytest.mark.parametrize("vectors", [{}, {"vectors": "pooled"}])
def test_a_fitted_head_chooses_its_strength_on_held_out(bench, vectors):
    bench.extract("pooled")
    phase = {"components": ["head"], "boundary": bench.layers, "optimizer": "lbfgs", "l2": [1e-3, 1e-1, 10]} | vectors
    spec = bench.spec(head={"pooling": "mean"}) | {"phases": [phase], "subset": SUBSET}
    fit = HeadFit(
        {key: value for key, value in spec.items() if key != "seed"}, bench.inputs(FeatureStore(bench.features))
    )
    assert set(fit.context.rows) == {"held_out", "test", "reserved", "train"}
    left = fit.run(Stopwatch())
    scores = {entry["l2"]: entry["validation"] for entry in left.history}
    assert scores[left.chosen["l2"]] == max(scores.values())
    assert fit.outcome(left, 1)["scores"]["held_out"]["accuracy"] == max(scores.values())


@pytest.mark.parametrize("name", ["majority", "bag_of_words"])
def test_a_baseline_is_fitted_chosen_and_scored_on_the_same_rows(bench, tmp_path, name):
    spec = bench.spec()
    spec = {key: spec[key] for key in ("task", "data")} | {"baseline": name, "subset": SUBSET}
    run_in_process("baseline", "--spec", canonical(spec), "--data", bench.corpus.folder, "--out", tmp_path / "run")
    assert check_records(bench, tmp_path / "run", SUBSET)["rows"]["train"] == 30


def test_an_excerpt_of_the_store_holds_the_rows_of_all_parts(bench, tmp_path):
    spec = bench.spec() | {"subset": SUBSET, "rows": "outside"}
    wanted = read_rows(spec, bench.corpus)
    store = write_excerpt(bench.store, tmp_path, wanted, {})
    for split, chosen in wanted.items():
        first, second = (one.batch(split, chosen[:4]) for one in (store, bench.store))
        assert first.input_ids.tolist() == second.input_ids.tolist()
        kept = [one.in_texts(split, chosen) for one in (store, bench.store)]
        assert len(kept[0]) == len(kept[1])
    with pytest.raises(UserError, match="is an excerpt"):
        store.batch("train", parts(bench.corpus, SUBSET)["train"])


@pytest.mark.parametrize(
    "name, target, reserved",
    [("sick", "entailment", 1000), ("mrpc", "paraphrase", 1000), ("conll2003", "entities", 998)],
)
def test_real_datasets_have_so_many_rows_of_each_part(catalogue, shared_data, tmp_path, name, target, reserved):
    corpus = prepare_entry(name, catalogue.get("corpora", name, "test"), shared_data, tmp_path)
    task = {"id": name, "target": target}
    subsets = [catalogue.get("subsets", f"n1000_r{draw}", "test").model_dump(exclude_none=True) for draw in (1, 8)]
    found = [
        parts(corpus, {key: one[key] for key in ("rows", "draw", "validation", "reserved")}, task) for one in subsets
    ]
    for one in found:
        counts = {split: len(chosen) for split, chosen in one.items()}
        assert counts == {"train": 800, "held_out": 200, "reserved": reserved}
        group = corpus.frame("train")["group"].to_numpy()
        train, held, test = (set(group[one[split]]) for split in ("train", "held_out", "reserved"))
        assert not train & held and not test & (train | held)
    assert found[0]["reserved"] == found[1]["reserved"] and found[0]["held_out"] != found[1]["held_out"]
