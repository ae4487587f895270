"""Multi-label classification: sets of labels from the file to the table, against scikit-learn and planted answers."""

import json

import numpy as np
import pandas
import pyarrow
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, average_precision_score, f1_score

from corpora import prepared, spec_for
from read_again import read_again
from shown import Shown
from thaw.core.errors import UserError
from thaw.data.catalogue_stub import Wishes, draft_of_file
from thaw.data.corpus import Corpus
from thaw.data.preparation import prepare
from thaw.evaluation.baselines import fit_baseline
from thaw.evaluation.metrics import score
from thaw.evaluation.target_kinds import TARGET_KINDS
from thaw.evaluation.transfer_sets import TransferSet
from thaw.evaluation.weighted_metrics import scorer
from thaw.exporting.finished_run import open_run
from thaw.exporting.formats import write
from thaw.heads import convex
from thaw.heads.convex import Scale
from thaw.papers.feature_selection import group_lasso
from tiny_corpus import ENTRIES, Bench, rows, tiny_corpus

KIND = "multi_label_classification"
PAIRS = f"pair_{KIND}"
METRICS = ["f1_micro", "f1_macro", "subset_accuracy", "mean_average_precision"]
TASK = {"id": "t", "corpus": "mine", "type": KIND, "target": "labels", "metrics": METRICS, "validation": "validation"}
TASK |= {"test": ["test"]}
SIZES = {"train": 80, "validation": 24, "test": 24}
CONVERGED = {"train": ["head"], "optimizer": "lbfgs", "l2": [1e-3, 1e-1]}
MEAN = {"kind": "linear", "pooling": "mean"}


def drawn(seed: int, count=80, labels=4):
    """Return gold and probabilities, of which some are equal; the last label is rare."""
    draw = np.random.default_rng(seed)
    gold = draw.random((count, labels)) < [0.5] * (labels - 1) + [0.02]
    return gold.astype(int), (0.3 * gold + draw.random((count, labels))).round(1).clip(0, 1)


@pytest.mark.parametrize("seed", range(5))
def test_metrics_equal_scikit_learn(seed):
    gold, shares = drawn(seed)
    ours, sets = score(TASK, gold, shares, list("abcd")), (shares > 0.5).astype(int)
    some = gold.any(0)
    expected = {
        "f1_micro": f1_score(gold, sets, average="micro"),
        "f1_macro": f1_score(gold, sets, average="macro", zero_division=np.nan),
        "subset_accuracy": accuracy_score(gold, sets),
        "mean_average_precision": average_precision_score(gold[:, some], shares[:, some], average="macro"),
    }
    assert ours == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRICS)
def test_resampled_rows_score_as_if_written_out(metric):
    gold, shares = drawn(1)
    weights = np.random.default_rng(3).multinomial(80, [1 / 80] * 80, size=4).astype(float)
    found = scorer(TASK, metric, gold, shares, list("abcd"))(weights)
    for row, value in zip(weights.astype(int), found, strict=True):
        written = np.repeat(np.arange(80), row)
        expected = score(TASK | {"metrics": [metric]}, gold[written], shares[written], list("abcd"))[metric]
        assert value == pytest.approx(expected)


def test_the_probe_is_one_vs_rest_as_scikit_learn_fits_it():
    draw = torch.Generator().manual_seed(1)
    vectors = torch.randn(300, 12, generator=draw) * torch.logspace(1, -1, 12) + 2
    gold = (vectors @ torch.randn(12, 3, generator=draw) + torch.randn(300, 3, generator=draw) * 4 > 3).long()
    scale = Scale.of(vectors)
    scaled = scale.apply(vectors.double(), torch.float64).numpy()
    for solution in convex.fit_classes(vectors[None], gold, 3, [1e-3, 1e-1])[0]:
        reference = [
            LogisticRegression(C=1 / (300 * solution.l2), tol=1e-8, max_iter=5000).fit(scaled, gold[:, n])
            for n in range(3)
        ]
        logits = np.stack([one.decision_function(scaled) for one in reference], 1)
        assert solution.converged and np.abs(solution.logits(vectors).numpy() - logits).max() < 0.02
        alone = convex.fit_classes(vectors[None], gold[:, [2]], 1, [solution.l2])[0][0]
        assert torch.allclose(alone.logits(vectors)[:, 0], solution.logits(vectors)[:, 2], atol=0.02)


def test_the_group_lasso_reaches_its_bound():
    draw = torch.Generator().manual_seed(2)
    vectors = torch.randn(80, 10, generator=draw)
    gold = torch.stack([vectors[:, 0] > 0, vectors[:, 3] > 0.5], 1).long()
    found = group_lasso(vectors, gold, 2, 0.1)
    assert 0 <= found.gap <= 1e-3 and set(found.relevance.topk(2).indices.tolist()) == {0, 3}


# --- the data ---------------------------------------------------------------------------------------------------------

ROWS = [(f"a text of number {n} with words", labels) for n, labels in enumerate([["a"], ["a", "b"], [], ["b"]] * 8)]
ENTRY = {"texts": ["text"], "targets": {"labels": "label_set"}}


def from_file(folder, name: str, content: str, **files) -> Corpus:
    """Prepare a corpus of one file."""
    (folder / name).write_text(content, encoding="utf-8")
    entry = ENTRY | {"files": {"splits": {"train": name}, **files}}
    prepare(spec_for(entry, folder), folder, folder / "out")
    return Corpus(folder / "out")


def csv_of(column) -> str:
    return "text,labels\n" + "".join(f"{text},{column(labels)}\n" for text, labels in ROWS)


INDICATED = "text,a,b\n" + "".join(f"{text},{int('a' in labels)},{int('b' in labels)}\n" for text, labels in ROWS)
JSON_LINES = "".join(json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in ROWS)
FORMS = {
    "lists": ("d.jsonl", JSON_LINES, {"format": "jsonl"}),
    "separated": ("d.csv", csv_of("; ".join), {"format": "csv", "quoting": "none", "separators": {"labels": ";"}}),
    "indicators": ("d.csv", INDICATED, {"format": "csv", "quoting": "none", "indicators": {"labels": ["a", "b"]}}),
}


@pytest.mark.parametrize("form", FORMS)
def test_sets_are_read_from_each_form(form, tmp_path):
    name, content, files = FORMS[form]
    corpus = from_file(tmp_path, name, content, **files)
    expected = [["a" in labels, "b" in labels] for _, labels in ROWS]
    assert corpus.labels("labels") == ["a", "b"] and (corpus.targets(TASK, "train") == np.array(expected)).all()
    assert corpus.card["splits"]["train"]["labels"]["labels"] == {"a": 16, "b": 16}


@pytest.mark.parametrize(
    ("form", "change", "message"),
    [
        ("lists", ('["b"]', '["bb"]'), ":4: column 'labels': label 'bb' is not among the entry's labels; did you mean"),
        ("lists", ('["b"]', '"b"'), "'b' is a text and no list of labels; state separators: {labels: ';'}"),
        ("lists", ('["b"]', "null"), "expected a list of labels, [] for none; this is None"),
        ("indicators", ("words,1,1", "words,1,2"), ":3: column 'b': expected 1 or 0, whether the row has this label"),
    ],
)
def test_what_is_no_set_is_said_with_its_place(form, change, message, tmp_path):
    name, content, files = FORMS[form]
    corpus = {"labels": {"labels": ["a", "b"]}}
    (tmp_path / name).write_text(content.replace(*change, 1), encoding="utf-8")
    entry = ENTRY | corpus | {"files": {"splits": {"train": name}, **files}}
    with pytest.raises(UserError) as said:
        prepare(spec_for(entry, tmp_path), tmp_path, tmp_path / "out")
    assert message in str(said.value)


def test_a_draft_recognises_sets_of_pairs(tmp_path):
    lines = "".join(f"why is it {n},because of {n},{';'.join(labels)}\n" for n, (_, labels) in enumerate(ROWS))
    (tmp_path / "d.csv").write_text("question,answer,labels\n" + lines, encoding="utf-8")
    draft = draft_of_file(tmp_path / "d.csv", set(), Wishes(texts=("question", "answer"), targets=("labels",)))
    assert f"type: {PAIRS}" in draft.tasks and "f1_micro" in draft.tasks and "label_set" in draft.corpus


# --- baselines, training, results -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    made = {name: rows(KIND, count, seed) for seed, (name, count) in enumerate(SIZES.items(), 1)}
    return Bench(folder, "bert", tiny_corpus(folder / "data", KIND, **made), KIND)


@pytest.fixture(scope="module")
def shown(bench, tmp_path_factory):
    """Return the results of a linear probe, fitted to convergence, and of full fine-tuning."""
    shown = Shown(bench, tmp_path_factory.mktemp("shown"))
    probed(shown)
    shown.train("full", {"train": ["all"], "epochs": 5, "rate": 3e-3}, head=MEAN)
    return shown


def probed(shown: Shown) -> None:
    """Fit a head to convergence, as strategy `probe`."""
    spec = shown.bench.spec(CONVERGED, head=MEAN)
    del spec["seed"]
    shown.bench.step("fit_heads", spec, shown.folder / "runs/t/all/e/linear/probe/base", "--seeds", 1)


def folder_of(shown: Shown, strategy: str):
    return shown.folder / f"runs/t/all/e/linear/{strategy}/base/seed1"


def test_baselines(bench):
    corpus, everything = bench.corpus, np.arange(80)
    wanted = {"train": everything, "validation": np.arange(24), "test": np.arange(24)}
    majority = fit_baseline("majority", TASK, corpus, everything, wanted).predictions["test"]
    assert majority.values == pytest.approx(np.tile([0.25, 0.5, 0.5], (24, 1)))  # both, song, water
    words = fit_baseline("bag_of_words", TASK, corpus, everything, wanted)
    found = score(TASK, corpus.targets(TASK, "test"), words.predictions["test"].values, corpus.labels("labels"))
    least = score(TASK, corpus.targets(TASK, "test"), majority.values, corpus.labels("labels"))
    assert all(found[metric] > least[metric] + 0.2 for metric in METRICS), (found, least)


@pytest.mark.parametrize(("strategy", "least"), [("probe", 0.7), ("full", 0.9)])
def test_a_planted_answer_is_learnt_and_recorded(strategy, least, shown):
    corpus, folder = shown.bench.corpus, folder_of(shown, strategy)
    record, labels = json.loads((folder / "metrics.json").read_text()), corpus.labels("labels")
    assert record["scores"]["test"]["f1_micro"] > least
    frame = pandas.read_parquet(folder / "predictions.parquet").query("split == 'test'")
    values = TARGET_KINDS["label_set"].read(pyarrow.chunked_array([frame["probabilities"].tolist()]), labels)
    again = score(TASK | {"metrics": ["f1_micro"]}, corpus.targets(TASK, "test"), values, labels)
    assert again["f1_micro"] == record["scores"]["test"]["f1_micro"]
    assert [list(row) for row in frame["prediction"]] == TARGET_KINDS["label_set"].named(values, labels)


@pytest.mark.parametrize("view", ["joint", "separate"])
def test_sets_of_pairs_are_learnt_shown_and_exported(view, tmp_path):
    """The first text has one label, the second another, and a third label needs both."""
    made = {name: rows(PAIRS, count, seed) for seed, (name, count) in enumerate(SIZES.items(), 1)}
    corpus = tiny_corpus(tmp_path / "data", PAIRS, **made)
    shown = Shown(Bench(tmp_path, "bert", corpus, PAIRS, pairs=view), tmp_path / "shown")
    probed(shown)
    shown.trained["probe"] = True
    task = TASK | {"type": PAIRS}
    majority = fit_baseline("majority", task, corpus, np.arange(80), {"test": np.arange(24)}).predictions["test"]
    least = score(task, corpus.targets(task, "test"), majority.values, corpus.labels("labels"))["f1_micro"]
    run = open_run(folder_of(shown, "probe"))
    assert run.metrics["scores"]["test"]["f1_micro"] > least + 0.2 and "micro F1" in shown.table("probe")
    (tmp_path / "model").mkdir()
    write(run, tmp_path / "model")
    found = read_again(run, tmp_path / "model")
    assert found["passed"] and found["splits"]["test"]["changed"] == 0


def test_the_loss_is_the_mean_binary_cross_entropy(bench):
    from thaw.heads.registry import build
    from thaw.schema.head import HeadConfig

    head = build(HeadConfig(kind="linear"), 6, 3, KIND)
    logits, gold = torch.tensor([[2.0, -1.0, 0.0], [0.5, 3.0, -2.0]]), torch.tensor([[1, 0, 1], [0, 1, 0]])
    shares = logits.sigmoid()
    expected = -(gold * shares.log() + (1 - gold) * (1 - shares).log()).mean()
    assert head.loss(logits, gold).item() == pytest.approx(expected.item())
    both = head.loss(torch.stack([logits, -logits]), torch.stack([gold, gold]))
    assert both.shape == (2,) and both[0].item() == pytest.approx(expected.item())


def test_ensembles_and_transfer_sets(bench):
    frames = [
        pandas.DataFrame({"prediction": [["song"]], "probabilities": [[0.1, 0.9, 0.2]]}),
        pandas.DataFrame({"prediction": [["song", "water"]], "probabilities": [[0.1, 0.6, 0.9]]}),
    ]
    labels = ["both", "song", "water"]
    target = TARGET_KINDS["label_set"]
    assert target.named(target.averaged(frames)[0], labels) == [["song", "water"]]
    entry = {"task": TASK, "rename": {"both": "song"}}
    other = TransferSet.of(entry, bench.corpus, labels)
    from thaw.evaluation.result_files import Predictions

    read = other.read(Predictions(np.array([0]), np.array([[0.7, 0.2, 0.1]], dtype=np.float32)))
    assert read.values == pytest.approx(np.array([[0.0, 0.7, 0.1]]))


def test_empty_training_labels_are_refused(tmp_path):
    with pytest.raises(UserError, match="train has no label; expected at least two"):
        prepared(tmp_path, ENTRIES[KIND], train=[{"text": "a b", "labels": []}] * 2)
