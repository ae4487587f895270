"""Cross-validated heads: folds of whole groups, fits as scikit-learn's, choices, records, and the last fit."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from sklearn.linear_model import LogisticRegression, Ridge

from corpora import prepared
from read_again import read_again
from test_keep import answer_taking
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core import layout
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.data import carving
from thaw.data import corpus as corpus_module
from thaw.data.corpus import Corpus, joint_groups, scored_part, subset_rows
from thaw.decision import record
from thaw.evaluation.metrics import score
from thaw.exporting import formats
from thaw.exporting.all_rows import _write_dataset, last_fit
from thaw.exporting.model_card import card
from thaw.heads.convex import Scale
from thaw.outputs.frame.prediction_files import TOGETHER, PredictionFiles
from thaw.training.head_fitting import HeadFit
from tiny_corpus import ENTRIES, Bench, rows, run_in_process

STRENGTHS = [1e-2, 1e-1, 1.0]
FOLDS = {"optimizer": "lbfgs", "l2": STRENGTHS, "folds": 3}
KINDS = ("classification", "regression", "multi_label_classification")
METRICS = {
    "classification": ["accuracy", "mcc", "f1_macro"],
    "regression": ["pearson", "spearman", "r2"],
    "multi_label_classification": ["f1_micro", "mean_average_precision"],
}


def noisy(kind: str, count: int, seed: int) -> list[dict]:
    """Return rows of a task of which a third has another target than its text says; of classes there are three."""
    draw, found = random.Random(seed), rows(kind, count, seed)
    for row in (row for row in found if draw.random() < 1 / 3):
        if "label" in row:
            row["label"] = draw.choice(["no", "yes", "maybe"])
        elif "score" in row:
            row["score"] += draw.gauss(0, 1)
        else:
            row["labels"] = draw.choice([["song"], ["water"], []])
    return found


def splits_of(kind: str, train=60, validation=20, test=20) -> dict[str, list[dict]]:
    counts = {"train": train, "validation": validation, "test": test}
    return {split: noisy(kind, count, seed) for seed, (split, count) in enumerate(counts.items(), 1)}


def made(folder: Path, kind: str, entry: dict | None = None, splits: dict | None = None, **view) -> Bench:
    """Return a bench whose corpus, encoder and store stand in a results folder, `results` beside it."""
    (folder / "files").mkdir(parents=True)
    corpus = prepared(folder / "files", ENTRIES[kind] | (entry or {}), **(splits or splits_of(kind)))
    bench = Bench(folder, "bert", corpus, kind, layers=2, **view)
    bench.linked(folder / "results")
    return bench


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folds")
    return {kind: made(folder / kind, kind, max_length=128) for kind in KINDS}


def spec_of(bench: Bench, **changes) -> dict:
    """Return the spec of a fit by folds, without a seed. Args: `phase` and `task` add to what these say."""
    phase, task = FOLDS | changes.pop("phase", {}), changes.pop("task", {})
    spec = bench.spec(phase, **changes)
    spec["task"] |= {"metrics": METRICS.get(bench.kind, spec["task"]["metrics"])} | task
    return {key: value for key, value in spec.items() if key != "seed"}


def fit_of(bench: Bench, **changes) -> HeadFit:
    torch.set_num_threads(1)
    return HeadFit(spec_of(bench, **changes), bench.inputs())


def step(bench: Bench, name: str, **changes) -> Path:
    """Fit with seed 1 into the results folder; return the run's folder."""
    folder = bench.features.parent / "results/runs/t/all/e/linear" / name / "base"
    if not folder.exists():
        bench.step("fit_heads", spec_of(bench, **changes), folder, "--seeds", 1)
    return folder / "seed1"


# --- the folds themselves


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=2, max_size=120), st.integers(2, 6), st.integers(1, 5))
def test_folds_hold_whole_groups_and_depend_on_the_draw_alone(names, number, draw):
    groups = np.unique(names, return_inverse=True)[1]
    classes = np.arange(len(groups)) % 3
    found = carving.folds(groups, classes, number, draw)
    assert all(len(set(found[groups == group])) == 1 for group in groups)
    assert set(found) == set(range(min(number, len(set(names))))), "no fold is empty while there are groups"
    assert np.array_equal(found, carving.folds(groups, classes, number, draw))
    largest = np.bincount(groups).max()
    assert np.ptp(np.bincount(found, minlength=number)) <= max(3, 3 * largest)


def test_rows_by_themselves_are_spread_evenly_and_so_are_their_classes():
    classes = np.repeat([0, 1, 2], [50, 23, 7])
    found = carving.folds(np.arange(80), classes, 5, 1)
    assert np.ptp(np.bincount(found)) <= 2
    for label in range(3):
        assert np.ptp(np.bincount(found[classes == label], minlength=5)) <= 1
    assert not np.array_equal(found, carving.folds(np.arange(80), classes, 5, 2))


def test_groups_of_two_splits_are_one_where_they_share_a_text(tmp_path):
    texts = {"train": ["One a", "two", "three", "two"], "validation": ["new", "one  A", "two"], "test": ["x"]}
    splits = {name: [{"text": text, "label": "ab"[i % 2]} for i, text in enumerate(of)] for name, of in texts.items()}
    corpus = prepared(tmp_path, {"texts": ["text"], "targets": {"label": "label"}}, **splits)
    every = {"train": np.arange(4), "validation": np.arange(3)}
    names = joint_groups(corpus, every)
    assert names[0] == names[5] and names[1] == names[3] == names[6] and len(set(names)) == 4
    few = joint_groups(corpus, {"train": np.array([1]), "validation": np.array([0, 2])})
    assert few[0] == few[2] == names[1] and few[1] == names[4], "a group has the same name among other rows"


def test_documents_that_repeat_a_sentence_stay_apart(tmp_path):
    def document(name: str, count: int) -> list[dict]:
        return [
            {"text": "the same" if i == 0 else f"{name} {i}", "label": "ab"[i % 2], "d": name} for i in range(count)
        ]

    splits = {"train": document("one", 3) + document("two", 3), "validation": document("three", 3)}
    entry = {"texts": ["text"], "targets": {"label": "label"}, "keep": ["d"], "group_by": "d"}
    corpus = prepared(tmp_path, entry, **splits, test=document("four", 2))
    names = joint_groups(corpus, {"train": np.arange(6), "validation": np.arange(3)})
    assert len(set(names)) == 3 and len(set(names[:3])) == len(set(names[6:])) == 1


def test_carved_rows_keep_the_groups_of_train(tmp_path):
    many = [{"text": f"text {i // 2}", "label": "ab"[i // 2 % 2]} for i in range(40)]
    entry = {"texts": ["text"], "targets": {"label": "label"}, "carve": {"validation": 0.3}}
    corpus = prepared(tmp_path, entry, train=many, test=many[:4])
    parts = {split: np.arange(corpus.size(split)) for split in ("train", "validation")}
    assert len(set(joint_groups(corpus, parts))) == 20


def test_no_fit_sees_a_row_of_a_group_that_it_left_out(benches):
    for bench in benches.values():
        folds = fit_of(bench).folds
        for fold in range(folds.number):
            left_out = set(folds.groups[folds.fold == fold])
            seen, half = folds.fitted(fold), folds.fitted(fold, half=True)
            assert not left_out & set(folds.groups[seen])
            assert set(half) < set(seen) and abs(len(half) - len(seen) / 2) <= 2
            assert not set(folds.groups[half]) & set(folds.groups[np.setdiff1d(seen, half)]), "whole groups"


# --- fits, against scikit-learn


def reference(kind: str, x: np.ndarray, y: np.ndarray, new: np.ndarray, l2: float) -> np.ndarray:
    """Return what scikit-learn predicts for new vectors on features standardised on those that are fitted."""
    scale = Scale.of(torch.from_numpy(x))
    x, new = (((part - scale.mean.numpy()) / scale.deviation.numpy()).astype(np.float64) for part in (x, new))
    if kind == "regression":
        return Ridge(alpha=len(x) * l2 / 2).fit(x, y).predict(new)
    if kind == "multi_label_classification":
        fits = [LogisticRegression(C=1 / (len(x) * l2), tol=1e-9, max_iter=9999).fit(x, column) for column in y.T]
        return np.stack([fit.predict_proba(new)[:, 1] for fit in fits], 1)
    fit = LogisticRegression(C=(2 if len(set(y)) == 2 else 1) / (len(x) * l2), tol=1e-9, max_iter=9999).fit(x, y)
    shares = np.zeros((len(new), 3))
    shares[:, fit.classes_] = fit.predict_proba(new)
    return shares


def out_of_fold(fit: HeadFit, l2: float, half: bool = False) -> tuple[np.ndarray, list]:
    """Return scikit-learn's predictions for all rows by fits that did not see them, and the gold vectors."""
    vectors = fit._vectors(fit.reader(fit.head))
    joint, folds = vectors["train"].followed_by(vectors[fit.context.validation]), fit.folds
    x, y, found = joint.values.numpy(), np.asarray(joint.gold(fit.context.joint_gold)), None
    for fold in range(folds.number):
        seen, left_out = joint.positions(folds.fitted(fold, half)), joint.positions(np.flatnonzero(folds.fold == fold))
        shares = reference(fit.context.task["type"], x[seen], y[seen], x[left_out], l2)
        found = np.empty((len(x), *shares.shape[1:])) if found is None else found
        found[left_out] = shares
    return found, y


@pytest.mark.parametrize("kind", KINDS)
def test_fits_on_folds_and_the_choice_by_them_are_scikit_learns(benches, kind):
    fit = fit_of(benches[kind])
    left = fit.run(Stopwatch())
    expected = {l2: out_of_fold(fit, l2) for l2 in STRENGTHS}
    shares, gold = expected[left.chosen["l2"]]
    found = left.cross_validated.predictions
    values = [split.probabilities if kind == "classification" else split.values for split in found.values()]
    assert np.concatenate(values) == pytest.approx(shares, abs=1e-2)  # fits by which one chooses are loose
    assert {split: len(predicted.rows) for split, predicted in found.items()} == {"train": 60, "validation": 20}
    history = {row["l2"]: row["folds"] for row in left.history}
    main, labels = fit.context.task | {"metrics": [fit.context.main_metric]}, fit.context.labels or None
    for l2, (shares, _) in expected.items():
        predicted = shares.argmax(1) if kind == "classification" else shares
        due = score(main, fit.context.joint_gold, predicted, labels)[main["metrics"][0]]
        assert history[l2] == pytest.approx(due, abs=0.02)
    assert left.chosen["l2"] == max(history, key=lambda l2: (history[l2], l2))
    assert left.choice_score == history[left.chosen["l2"]]


def test_the_learning_curve_is_that_of_fits_on_half_of_the_rows(benches):
    fit = fit_of(benches["regression"])
    left = fit.run(Stopwatch())
    record = left.cross_validated.record
    halved, gold = out_of_fold(fit, left.chosen["l2"], half=True)
    expected = score(fit.context.task, gold, halved)
    assert record["half"]["scores"] == pytest.approx(expected, abs=1e-4)
    assert record["number"] == 3 and record["rows"] == 80
    assert record["fitted"] == 53 and record["half"]["fitted"] in (26, 27)


def test_the_head_of_the_run_is_fitted_on_its_training_rows_alone(benches):
    bench = benches["classification"]
    left = fit_of(bench).run(Stopwatch())
    plain = fit_of(bench, phase={"folds": None}).run(Stopwatch())
    alone = next(row for row in plain.history if row["l2"] == left.chosen["l2"])
    mine = next(row for row in left.history if row["l2"] == left.chosen["l2"])
    assert {key: mine[key] for key in alone} == alone and not plain.cross_validated.record
    again = fit_of(bench, phase={"folds": None, "l2": [left.chosen["l2"]]}).run(Stopwatch())
    assert again.solution.weight.numpy() == pytest.approx(left.solution.weight.numpy(), abs=1e-2)
    assert left.cost["flops"] > 3 * plain.cost["flops"] and left.cost["steps"] > 3 * plain.cost["steps"]


def test_layers_and_fractions_are_chosen_over_folds_too(benches):
    bench = benches["classification"]
    searched = {"layers": {"layer": "best"}, "pooling": "mean"}
    found = fit_of(bench, head=searched, phase={"boundary": 2, "reads": [0, 1]}).run(Stopwatch())
    alone = [fit_of(bench, head=searched | {"layers": {"layer": n}}, phase={"boundary": n}) for n in range(3)]
    scores = [one.run(Stopwatch()).choice_score for one in alone]
    assert found.choice_score == max(scores) and found.chosen["layer"] == scores.index(max(scores))
    select = {"select": {"by": "group_lasso", "fractions": [0.2, 1.0]}}
    picked = fit_of(bench, phase=select).run(Stopwatch())
    by = {(row["l2"], row["fraction"]): row["folds"] for row in picked.history}
    assert len(by) == 6 and by[picked.chosen["l2"], picked.chosen["fraction"]] == max(by.values())


def test_the_reading_of_pairs_is_chosen_over_folds(tmp_path):
    splits = splits_of("pair_classification")
    views = [made(tmp_path / "joint", "pair_classification", splits=splits)]
    views.append(made(tmp_path / "separate", "pair_classification", splits=splits, pairs="separate"))
    head = {"pooling": "mean", "separate_pooling": "mean"}
    spec = spec_of(views[0], head=head) | {"features": [bench.store.card["digest"] for bench in views]}
    folders = ["--data", views[0].corpus.folder, "--encoder", views[0].encoder]
    folders += ["--features", *(bench.features for bench in views), "--seeds", 1, "--out", tmp_path / "out"]
    run_in_process("fit_heads", "--spec", canonical(spec), *folders)
    found = read_json(tmp_path / "out/seed1/metrics.json")
    joint, separate = (fit_of(bench, head=head).run(Stopwatch()) for bench in views)
    assert separate.choice_score > joint.choice_score and found["chosen"]["pairs"] == "separate"
    assert found["folds"] == json.loads(json.dumps(separate.cross_validated.record))


# --- few rows, rare classes


def test_with_many_rows_validation_chooses(benches, monkeypatch):
    bench = benches["classification"]
    monkeypatch.setattr(corpus_module, "FEW_ROWS", 80)
    many = fit_of(bench)
    assert many.folds is None
    left, plain = many.run(Stopwatch()), fit_of(bench, phase={"folds": None}).run(Stopwatch())
    assert left.history == plain.history and left.chosen == plain.chosen and left.cost == plain.cost
    assert many.outcome(left, 1) == fit_of(bench, phase={"folds": None}).outcome(plain, 1)
    assert torch.equal(left.solution.weight, plain.solution.weight)
    monkeypatch.setattr(corpus_module, "FEW_ROWS", 81)
    assert fit_of(bench).folds.number == 3
    assert fit_of(bench, task={"test": ["validation"], "protocol": "paper"}).folds is None, "never by test rows"


def test_a_class_that_one_fit_does_not_see_and_twenty_rows(tmp_path):
    """One row of a class and three of another in twelve and eight rows: folds of five cannot have them all."""
    splits = splits_of("classification", 12, 8, 8)
    for rows_of, count in ((splits["train"], 12), (splits["validation"], 8), (splits["test"], 8)):
        for i in range(count):
            rows_of[i]["label"] = "yes" if i % 2 else "no"
    splits["train"][0]["label"] = "maybe"
    bench = made(tmp_path, "classification", splits=splits)
    fit = fit_of(bench, phase={"folds": 5})
    left = fit.run(Stopwatch())
    found = left.cross_validated
    assert found.record["number"] == 5 and found.record["rows"] == 20
    rare = found.predictions["train"].probabilities[0]
    assert np.isfinite(rare).all() and rare.argmax() != fit.context.labels.index("maybe")
    assert all(np.isfinite(predicted.probabilities).all() for predicted in found.predictions.values())


def test_there_are_no_more_folds_than_groups_and_one_group_cannot_be_folded(tmp_path):
    splits = splits_of("classification", 12, 6, 6)
    for split, part in splits.items():
        labels = ["no", "yes"] * len(part)
        part[:] = [
            row | {"label": label, "document": f"{split} {i % 4 // 2 * (split == 'train')}"}
            for i, (row, label) in enumerate(zip(part, labels, strict=False))
        ]
    bench = made(tmp_path / "three", "classification", {"keep": ["document"], "group_by": "document"}, splits)
    fit = fit_of(bench, phase={"folds": 5})
    assert fit.folds.number == 3 and fit.run(Stopwatch()).cross_validated.record["number"] == 3
    same = {split: [row | {"text": "the cat"} for row in part] for split, part in splits.items()}
    assert fit_of(made(tmp_path / "one", "classification", splits=same)).folds is None


# --- files


def test_records_of_folds_are_the_same_bytes_whatever_the_seeds(benches, tmp_path):
    bench = benches["classification"]
    both = bench.step("fit_heads", spec_of(bench), tmp_path / "both", "--seeds", 1, 2)
    one = bench.step("fit_heads", spec_of(bench), tmp_path / "one", "--seeds", 2)
    names = {"metrics.json", *layout.WRITTEN["fit_heads"]}
    assert {path.name for path in (one / "seed2").iterdir()} == names
    for name in names - {"cost.json"}:
        assert (both / "seed2" / name).read_bytes() == (one / "seed2" / name).read_bytes()
    frame = pandas.read_parquet(one / "seed2/folds.parquet")
    assert list(frame) == list(pandas.read_parquet(one / "seed2/predictions.parquet"))
    assert frame["split"].value_counts().to_dict() == {"train": 60, "validation": 20}
    metrics = read_json(one / "seed2/metrics.json")
    right = frame["prediction"].to_numpy() == np.concatenate(
        [bench.corpus.frame(split)["label"] for split in ("train", "validation")]
    )
    assert metrics["folds"]["scores"]["accuracy"] == pytest.approx(right.mean())
    assert "folds_accuracy" in pandas.read_csv(one / "seed2/history.csv")


def test_without_folds_the_file_has_no_row(benches):
    run = step(benches["classification"], "plain", phase={"folds": None})
    frame = pandas.read_parquet(run / "folds.parquet")
    assert len(frame) == 0 and list(frame) == list(pandas.read_parquet(run / "predictions.parquet"))
    assert "folds" not in read_json(run / "metrics.json")


# --- read again


def read(bench: Bench, *names: str):
    """Return what reads a bench's results, and rows as runs.csv has them."""
    return PredictionFiles(bench.features.parent / "results"), pandas.DataFrame(
        {"folder": [f"runs/t/all/e/linear/{name}/base/seed1" for name in names]}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_metric_is_scored_again_from_the_files(benches, kind):
    bench = benches[kind]
    run = step(bench, "folds")
    files, frame = read(bench, "folds")
    ones = np.ones((1, 80))
    for metric, value in read_json(run / "metrics.json")["folds"]["scores"].items():
        assert files.scorer(frame["folder"][0], metric, TOGETHER)(ones) == pytest.approx([value], abs=1e-6)
        draws = files.by_row_folds(frame, metric)
        assert draws.shape == (1, 1000) and np.nanstd(draws) > 0
        assert np.nanmean(draws) == pytest.approx(value, abs=0.05)


def test_rows_of_validation_are_drawn_alike_in_both(benches):
    bench = benches["classification"]
    step(bench, "folds"), step(bench, "plain", phase={"folds": None})
    files, frame = read(bench, "plain", "folds")
    drawn = np.concatenate(list(files._drawn(frame["folder"][0], TOGETHER, True).examples()))
    part = np.concatenate(list(files._drawn(frame["folder"][0], "validation", True).examples()))
    assert np.array_equal(drawn[:, 60:], part) and drawn.mean() == pytest.approx(1, abs=0.05)
    predictions = pandas.read_parquet(bench.features.parent / "results" / frame["folder"][0] / "predictions.parquet")
    said = predictions[predictions["split"] == "validation"]["prediction"].to_numpy()
    right = said == bench.corpus.frame("validation")["label"].to_numpy()
    with np.errstate(invalid="ignore"):
        expected = (part * right).sum(1) / part.sum(1)
    found = files.by_row(frame, "accuracy", "validation", joint=True)
    assert found[0] == pytest.approx(expected, nan_ok=True)
    assert not np.array_equal(found, files.by_row(frame, "accuracy", "validation"), equal_nan=True)


def test_a_run_that_was_not_cross_validated_says_so(benches):
    bench = benches["classification"]
    step(bench, "plain", phase={"folds": None}), step(bench, "folds")
    files, frame = read(bench, "plain")
    assert files.cross_validated(frame["folder"][0]) is None
    assert files.cross_validated(read(bench, "folds")[1]["folder"][0])["rows"] == 80


# --- the last fit


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_the_last_fit_is_that_of_all_rows_that_trained_or_chose(benches, tmp_path, kind):
    bench = benches[kind]
    run = step(bench, "folds")
    source = last_fit(run, tmp_path)
    fit, chosen = fit_of(bench), read_json(run / "metrics.json")["chosen"]
    vectors = fit._vectors(fit.reader(fit.head))
    joint = vectors["train"].followed_by(vectors["validation"])
    y, new = np.asarray(joint.gold(fit.context.joint_gold)), vectors["test"].values.numpy()
    expected = reference(fit.context.task["type"], joint.values.numpy(), y, new, chosen["l2"])
    head = load_file(source.made / "head.safetensors")
    outputs = torch.nn.functional.linear(vectors["test"].values, head["output.weight"], head["output.bias"])
    outputs = outputs.squeeze(1) if kind == "regression" else outputs.softmax(-1)
    assert outputs.numpy() == pytest.approx(expected, abs=5e-3)
    assert not torch.allclose(head["output.weight"], load_file(run / "head.safetensors")["output.weight"])
    assert source.refit.rows == {"train": 60, "validation": 20} and source.folds == 3
    if kind == "classification":  # a process of its own reads the export
        formats.write(source, tmp_path / "out")
        assert read_again(source, tmp_path / "out")["passed"]
    (tmp_path / "again").mkdir()
    again = last_fit(run, tmp_path / "again")
    assert (again.made / "head.safetensors").read_bytes() == (source.made / "head.safetensors").read_bytes()


def test_no_head_is_fitted_once_more_on_test_rows(benches, tmp_path):
    run = step(benches["classification"], "by_test", task={"test": ["validation"], "protocol": "paper"})
    source = last_fit(run, tmp_path)
    assert source.refit is None and source.made == run and not list(tmp_path.iterdir())


def tuned(bench: Bench, name: str, **changes) -> Path:
    """Train a run that does not keep its layers; return its folder."""
    folder = bench.features.parent / "results/runs/t/all/e/linear" / name / "base/seed1"
    phase = {"train": ["head", {"top": 1}], "updates": 6} | changes.pop("phase", {})
    return folder if folder.exists() else bench.step("train", bench.spec(phase, **changes), folder)


def test_layers_train_once_more_as_on_a_dataset_with_all_rows(benches, tmp_path, forked_steps):
    bench, splits = benches["classification"], splits_of("classification")
    run = tuned(bench, "tuned")
    (tmp_path / "made").mkdir()
    source = last_fit(run, tmp_path / "made", all_rows=True)
    whole = splits | {"train": splits["train"] + splits["validation"]}
    expected = tuned(made(tmp_path / "due", "classification", splits=whole, max_length=128), "due", keep=True)
    for file in ("encoder.safetensors", "head.safetensors"):
        ours, theirs = load_file(source.made / file), load_file(expected / file)
        assert ours.keys() == theirs.keys()
        assert all(ours[tensor].numpy() == pytest.approx(theirs[tensor].numpy(), abs=1e-5) for tensor in ours)
    assert source.refit.rows == {"train": 60, "validation": 20} and source.refit.layers
    assert source.metrics["scores"] == read_json(run / "metrics.json")["scores"]


def test_what_an_answer_takes_trains_once_more_and_says_so(benches, tmp_path, forked_steps, capsys):
    """Where validation says when it ends, it is exported as it was trained, and that is said too."""
    bench = benches["classification"]
    run, best = tuned(bench, "taken", keep=True), tuned(bench, "best", phase={"pick": "best"}, keep=True)
    outputs = run.parents[7] / "outputs/mine"
    capsys.readouterr()
    assert last_fit(run, tmp_path).refit is None and capsys.readouterr().err == "", "no answer takes it"
    record.write(outputs / record.ADVISED, [answer_taking("taken"), answer_taking("best")])
    source = last_fit(run, tmp_path)
    said = capsys.readouterr().err
    assert source.refit.rows == {"train": 60, "validation": 20} and source.refit.layers
    assert "mine takes this strategy, which trains on all rows; --no-all-rows exports the run as it is" in said
    assert re.search(r"training layers and head once more on 80 rows, in about \S+\ss, as its run took", said)
    assert "## Compared with other strategies\n\nTake taken." in card(source, "encoder_and_head")
    assert last_fit(run, tmp_path, all_rows=False).refit is None
    assert last_fit(best, tmp_path).refit is None
    assert "exported as it was trained: validation says when its training ends" in capsys.readouterr().err
    (outputs / record.ADVISED).unlink()


def test_rows_held_out_become_training_rows(benches, tmp_path):
    bench, subset = benches["classification"], {"rows": 40, "validation": 0.25}
    spec = bench.spec(subset=subset)
    rows_of = {split: scored_part(bench.corpus, split, spec["task"], subset) for split in ("train", "held_out")}
    rows_of["train"] = subset_rows(bench.corpus, spec["task"], subset)
    _write_dataset(bench.corpus, rows_of, spec, tmp_path)
    written, texts = Corpus(tmp_path), bench.corpus.frame("train")["text"].to_numpy()
    assert written.splits == ["train", "test", "validation"] and written.size("train") == 40
    assert written.frame("train")["text"].tolist() == [texts[row] for part in rows_of.values() for row in part]
    assert written.frame("validation")["text"].tolist() == texts[rows_of["held_out"]].tolist()
    assert subset_rows(written, spec["task"], {}).tolist() == list(range(40))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"phase": {"updates": 6, "pick": "best"}}, "validation says when its training ends"),
        ({"task": {"test": ["validation"], "protocol": "paper"}}, "validation is a test split, which never trains"),
        ({"after": {"run": "0123", "epoch": "last"}}, "other runs or datasets have a part in it"),
    ],
)
def test_runs_that_cannot_train_on_all_rows_say_why(benches, tmp_path, changes, message):
    run = tuned(benches["classification"], "tuned")
    metrics, other = read_json(run / "metrics.json"), run.parents[2] / "other/base/seed1"
    spec = metrics["spec"]
    spec |= {"phases": [phase | changes.get("phase", {}) for phase in spec["phases"]]}
    spec |= {"task": spec["task"] | changes.get("task", {})} | {"after": changes.get("after")}
    write_json(other / "metrics.json", metrics | {"spec": spec})
    with pytest.raises(UserError, match=message):
        last_fit(other, tmp_path, all_rows=True)
    assert not list(tmp_path.iterdir())
