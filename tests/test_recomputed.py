"""metrics.json can be computed again from predictions.parquet and the data, by scikit-learn and seqeval."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score as span_f1
from seqeval.scheme import IOB2
from sklearn import metrics as sklearn

from corpora import prepared
from thaw.declarations.task_types import METRICS_OF_TYPE, NO_TAG
from thaw.evaluation.result_files import Predictions, evaluate, predictions_frame
from thaw.evaluation.target_kinds import target_of
from thaw.outputs.frame.prediction_files import rows_of_split
from thaw.schema.corpora import TaskConfig

LABELS = ["a", "b"]
TAGS = ["B-X", "I-X", "O"]
GOLD = {  # type: the texts or words of its rows, the kind of its target, the values
    "classification": ("text", "label", ["a", "b", "b", "a", "b", "a"]),
    "multi_label_classification": ("text", "label_set", [["a"], ["b"], [], ["a", "b"], ["a"], ["b"]]),
    "regression": ("text", "score", [0.5, 1.0, -2.0, 3.0, 0.0, 4.5]),
    "tagging": ("words", "tags", [["a", "b"], ["b"], ["a", "a", "b"], ["b", "b"], ["a"], ["b", "a"]]),
    "spans": ("words", "tags", [["B-X", "I-X"], ["O"], ["B-X", "O", "B-X"], ["O", "O"], ["B-X"], ["O", "B-X"]]),
}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """A corpus of each type; of words some are of no width, and no tokenizer gives them a token."""
    made = {}
    for kind, (read, target, values) in GOLD.items():
        texts = [f"text {i}" for i in range(6)]
        counts = [len(value) if read == "words" else 0 for value in values]
        words = [["\u200b" if (i + n) % 3 == 0 else f"w{n}" for n in range(count)] for i, count in enumerate(counts)]
        rows = [{read: (words if read == "words" else texts)[i], "y": values[i]} for i in range(6)]
        entry = {"words": "words"} if read == "words" else {"texts": ["text"]}
        entry |= {"targets": {"y": target}, "group_by": "row"}
        made[kind] = prepared(tmp_path_factory.mktemp(kind), entry, train=rows, validation=rows, test=rows)
    return made


def drawn(kind: str, data, labels: list[str]):
    """Return predictions of six rows as a head gives them; a word may have none."""
    read, target, values = GOLD[kind]
    number = st.floats(-5, 5, allow_subnormal=False)
    if target == "label":
        return np.array(data.draw(st.lists(st.integers(0, 1), min_size=6, max_size=6)))
    if target == "score":
        return np.array(data.draw(st.lists(number, min_size=6, max_size=6, unique=True)))
    if target == "label_set":
        share = st.lists(st.floats(1 / 64, 63 / 64, width=32).filter(lambda p: p != 0.5), min_size=2, max_size=2)
        return np.array(data.draw(st.lists(share, min_size=6, max_size=6)))
    return [[data.draw(st.integers(NO_TAG, len(labels) - 1)) for _ in tags] for tags in values]


def again(kind: str, metric: str, gold: list, frame: pd.DataFrame) -> float:
    """Return a metric by scikit-learn or seqeval, from what predictions.parquet has."""
    said = frame["prediction"].tolist()
    if kind in ("tagging", "spans"):
        if metric == "span_f1":
            spans = [["O" if tag is None else tag for tag in tags] for tags in said]
            return span_f1(gold, spans, mode="strict", scheme=IOB2, zero_division=0)
        pairs = (zip(*row, strict=True) for row in zip(gold, said, strict=True))
        return float(np.mean([a == b for row in pairs for a, b in row]))
    if kind == "multi_label_classification":
        truth, shares = np.array([[label in row for label in LABELS] for row in gold]), np.stack(frame["probabilities"])
        sets = shares > 0.5
        assert [list(row) for row in said] == [[*np.array(LABELS)[row]] for row in sets]
        if metric == "subset_accuracy":
            return sklearn.accuracy_score(truth, sets)
        if metric == "mean_average_precision":
            return sklearn.average_precision_score(truth, shares, average="macro")
        return sklearn.f1_score(truth, sets, average=metric.removeprefix("f1_"), zero_division=0)
    if kind == "regression":
        if metric == "r2":
            return sklearn.r2_score(gold, said)
        return pd.Series(gold).corr(pd.Series(said), method=metric)
    if metric == "accuracy":
        return sklearn.accuracy_score(gold, said)
    if metric == "mcc":
        return sklearn.matthews_corrcoef(gold, said)
    by = {"average": "binary", "pos_label": "b"} if metric == "f1" else {"average": "macro", "labels": LABELS}
    return sklearn.f1_score(gold, said, zero_division=0, **by)


@pytest.mark.parametrize("kind", GOLD)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_metric_is_that_of_the_written_predictions(corpora, tmp_path_factory, kind, data):
    corpus, labels = corpora[kind], corpora[kind].labels("y")
    entry = {"corpus": "mine", "target": "y", "type": kind, "metrics": list(METRICS_OF_TYPE[kind])}
    task = {"id": "mine", **TaskConfig.model_validate(entry).model_dump()}
    rows = np.arange(6)
    made = {split: Predictions(rows, drawn(kind, data, labels)) for split in ("validation", "test")}
    outcome = evaluate(task, corpus, made)
    path = tmp_path_factory.mktemp("run") / "predictions.parquet"
    predictions_frame(task, corpus, made).to_parquet(path)
    frame = pd.read_parquet(path)
    for split, scores in outcome["scores"].items():
        part, gold = frame[frame["split"] == split], [*map(_plain, corpus.frame(split)["y"])]
        for metric, value in scores.items():
            if value is not None:
                assert again(kind, metric, gold, part) == pytest.approx(value, abs=1e-6), metric
    if kind in ("tagging", "spans"):
        unread = {split: sum(tag == NO_TAG for tags in one.values for tag in tags) for split, one in made.items()}
        assert outcome.get("unread_words", {}) == {split: count for split, count in unread.items() if count}
        read = target_of(task).read(rows_of_split(path, "test")["prediction"], labels)
        assert [list(tags) for tags in read] == made["test"].values


def _plain(value):
    return list(value) if isinstance(value, np.ndarray) else value
