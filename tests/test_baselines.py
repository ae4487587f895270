"""Baselines: what they predict on corpora made here, and that the records have a run's shape."""

import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline

from conftest import run_step
from corpora import prepared
from thaw.core.digests import canonical, digest
from thaw.data.carving import folds
from thaw.data.corpus import joint_groups
from thaw.evaluation.baselines import fit_baseline
from thaw.evaluation.result_files import evaluate, scored_rows, task_with_defaults

ANIMALS, COLOURS = "cat dog hen cow".split(), "red blue green white".split()


def texts(count: int, offset: int = 0) -> list[dict]:
    """Return rows in which the word good or bad decides the label, and the count of `very` the score."""
    rows = []
    for i in range(offset, offset + count):
        word, very = ("good", "bad")[i % 2], i % 3
        text = f"the {COLOURS[i % 4]} {ANIMALS[i // 4 % 4]} is {'very ' * very}{word} number {i}"
        rows.append({"text": text, "label": word, "score": float(very), "other": "it ran home"})
    return rows


def sentences(count: int, offset: int = 0) -> list[dict]:
    """Return rows in which a name follows the word mister."""
    rows = []
    for i in range(offset, offset + count):
        words = ["see", "mister", ANIMALS[i % 4], "near", "the", ANIMALS[(i + 1) % 4]]
        rows.append({"words": words, "tags": ["O", "O", "B-PER", "O", "O", "O"]})
    return rows


@pytest.fixture
def corpus(tmp_path):
    """A prepared corpus of texts with a label and a score."""
    entry = {"texts": ["text"], "targets": {"label": "label", "score": "score"}}
    return prepared(tmp_path, entry, train=texts(60), validation=texts(20, 100), test=texts(24, 200))


def task(target: str, kind: str, *metrics: str) -> dict:
    return task_with_defaults(
        {"id": "t", "corpus": "mine", "target": target, "type": kind, "metrics": list(metrics)}, {}
    )


def scores(name, entry, corpus) -> dict:
    found = fit_baseline(name, entry, corpus, np.arange(len(corpus.frame("train"))), scored_rows(entry, corpus, {}))
    return evaluate(entry, corpus, found.predictions)


def test_the_majority_is_the_most_frequent_label(corpus):
    outcome = scores("majority", task("label", "classification", "accuracy"), corpus)
    assert outcome["scores"]["test"]["accuracy"] == 0.5
    assert "one_class" in outcome["flags"]


@pytest.mark.parametrize("name", ["majority", "bag_of_words"])
def test_only_scored_rows_are_predicted(corpus, name):
    entry = task("label", "classification", "accuracy")
    wanted = scored_rows(entry, corpus, {"scored": 7})
    found = fit_baseline(name, entry, corpus, np.arange(60), wanted)
    assert all(np.array_equal(found.predictions[split].rows, rows) and len(rows) == 7 for split, rows in wanted.items())
    assert evaluate(entry, corpus, found.predictions)["rows"] == {"validation": 7, "test": 7}


def test_the_mean_score_has_no_correlation(corpus):
    outcome = scores("majority", task("score", "regression", "pearson"), corpus)
    assert outcome["scores"]["test"]["pearson"] is None and "undefined" in outcome["flags"]


def test_a_bag_of_words_finds_a_word(corpus):
    assert (
        scores("bag_of_words", task("label", "classification", "accuracy"), corpus)["scores"]["test"]["accuracy"] == 1
    )
    assert scores("bag_of_words", task("score", "regression", "pearson"), corpus)["scores"]["test"]["pearson"] > 0.8


@pytest.mark.parametrize(
    "target, kind, metric", [("label", "classification", "accuracy"), ("score", "regression", "r2")]
)
def test_a_bag_of_words_on_few_rows_is_judged_by_fits_that_left_the_row_out(corpus, target, kind, metric):
    entry = task(target, kind, metric)
    wanted = scored_rows(entry, corpus, {})
    found = fit_baseline("bag_of_words", entry, corpus, np.arange(60), wanted, draw=3)
    parts = {"train": np.arange(60), "validation": wanted["validation"]}
    words, gold = (
        np.concatenate([get(split)[rows] for split, rows in parts.items()])
        for get in (lambda split: corpus.frame(split)["text"].to_numpy(), lambda split: corpus.targets(entry, split))
    )
    groups = np.unique(joint_groups(corpus, parts), return_inverse=True)[1]
    fold = folds(groups, gold if target == "label" else np.zeros(80, dtype=int), 5, 3)
    alone, strength = np.empty(80), found.chosen["strength"]
    for one in range(5):
        model = LogisticRegression(C=strength, max_iter=1000) if target == "label" else Ridge(alpha=1 / strength)
        model = make_pipeline(TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b"), model)
        alone[fold == one] = model.fit(words[fold != one], gold[fold != one]).predict(words[fold == one])
    left_out = np.concatenate([found.left_out[split].values for split in parts])
    assert left_out == pytest.approx(alone) and (found.folds["number"], found.folds["rows"]) == (5, 80)
    judged = accuracy_score(gold, alone) if target == "label" else r2_score(gold, alone)
    assert found.folds["scores"][metric] == pytest.approx(judged)


def test_a_bag_of_words_of_one_class_predicts_that_class(corpus):
    entry = task("label", "classification", "accuracy")
    found = fit_baseline("bag_of_words", entry, corpus, np.array([0]), scored_rows(entry, corpus, {}))
    assert set(found.predictions["test"].values) == {corpus.targets(entry, "train")[0]}


def test_a_bag_of_words_reads_a_tags_neighbours(tmp_path):
    entry = {"words": "words", "targets": {"tags": "tags"}}
    corpus = prepared(tmp_path, entry, train=sentences(40), validation=sentences(12, 1), test=sentences(12, 2))
    entry = task("tags", "spans", "span_f1", "accuracy")
    assert scores("bag_of_words", entry, corpus)["scores"]["test"]["span_f1"] == 1
    assert scores("majority", entry, corpus)["scores"]["test"]["span_f1"] in (0, None)


def test_the_step_writes_the_records_of_a_run(tmp_path, corpus):
    entry = {"id": "t", "corpus": "mine", "target": "label", "type": "classification", "metrics": ["accuracy"]}
    spec = {"version": 1, "task": entry, "subset": {"rows": 30}, "baseline": "bag_of_words"}
    spec["data"] = corpus.card["digest"]
    out = tmp_path / "b"
    run_step("baseline", "--spec", canonical(spec), "--data", corpus.folder, "--out", out)
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["digest"] == digest(spec) and set(metrics["scores"]) == {"train", "validation", "test"}
    assert metrics["rows"] == {"train": 30, "validation": 20, "test": 24} and metrics["chosen"]["strength"]
    first = (out / "metrics.json").read_bytes()
    run_step("baseline", "--spec", canonical(spec), "--data", corpus.folder, "--out", out)
    assert (out / "metrics.json").read_bytes() == first
