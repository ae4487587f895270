"""Predictions made elsewhere: they score as the result that made them, in every format; mistakes have their place."""

import json
from pathlib import Path

import pandas
import pytest

from conftest import HOME
from corpora import prepared
from thaw.core.digests import canonical, digest, file_sha256
from thaw.core.errors import UserError
from thaw.evaluation.external_predictions import read_predictions
from thaw.evaluation.result_files import task_with_defaults
from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan
from tiny_corpus import run_in_process

LABELS = ["no", "yes"]


def row(text: str, label: str, score: int, words: str, tags: str) -> dict:
    """Return an example of both corpora."""
    return {"text": text, "label": label, "score": score, "words": words, "tags": tags}


ROWS = {
    "train": [row(f"train {i}", LABELS[i % 2], i, "one two", "O B-X") for i in range(6)],
    "validation": [row(f"new {i}", LABELS[i % 2], i, "a b c", "O O B-X") for i in range(3)],
    "test": [row("train 1" if i == 2 else f"test {i}", LABELS[i // 3], i, "a b", "B-X O") for i in range(5)],
}
TARGETS = {"label": ("classification", "accuracy"), "score": ("regression", "pearson"), "tags": ("spans", "span_f1")}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """A corpus of texts with a label and a score, and one of words with tags; one test sentence stands in train."""
    texts = {"texts": ["text"], "targets": {"label": "label", "score": "score"}}
    words = {"words": "words", "targets": {"tags": "tags"}}
    folders = [tmp_path_factory.mktemp(name) for name in ("texts", "words")]
    made = [prepared(folder, entry, **ROWS) for folder, entry in zip(folders, (texts, words), strict=True)]
    return {"label": made[0], "score": made[0], "tags": made[1]}


def task(target: str, **changes) -> dict:
    """Return a task's entry as a spec holds it."""
    kind, metric = TARGETS[target]
    return {"id": "mine", "corpus": "mine", "target": target, "type": kind, "metrics": [metric]} | changes


def written(path: Path, frame: pandas.DataFrame) -> Path:
    """Write a frame in the format that the path's ending says."""
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")
    return path


def perfect(corpora, target: str, *splits: str) -> pandas.DataFrame:
    """Return the gold targets of some splits as predictions, in no order."""
    frames = [corpora[target].frame(split).assign(split=split) for split in splits]
    frame = pandas.concat(frames).rename(columns={target: "prediction"})
    return frame[["split", "row", "prediction"]].sample(frac=1, random_state=3)


def scored(corpora, target: str, path: Path, out: Path) -> dict:
    """Run the step on a file and return its metrics.json."""
    corpus = corpora[target]
    spec = {"version": 1, "external": "ours", "task": task(target), "data": corpus.card["digest"]}
    spec |= {"format": path.suffix[1:], "sha256": file_sha256(path)}
    arguments = ("--predictions", path, "--data", corpus.folder, "--out", out)
    run_in_process("external", "--spec", canonical(spec), *arguments)
    found = json.loads((out / "metrics.json").read_text())
    assert (found["spec"], found["digest"]) == (spec, digest(spec))
    return found


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("target", TARGETS)
def test_every_format_and_kind_of_prediction(corpora, tmp_path, target, suffix):
    frame = perfect(corpora, target, "validation", "test")
    if target == "tags" and suffix in (".csv", ".tsv"):
        frame["prediction"] = frame["prediction"].map(" ".join)
    found = scored(corpora, target, written(tmp_path / f"ours{suffix}", frame), tmp_path / "out")
    metric = TARGETS[target][1]
    assert {split: scores[metric] for split, scores in found["scores"].items() if split != "validation"} == {
        "test": 1.0,
        **({"test_unseen": 1.0} if target != "tags" else {}),
    }
    assert found["rows"]["test"] == 5 and found["rows"]["validation"] == 3
    kept = pandas.read_parquet(tmp_path / "out/predictions.parquet")
    assert list(kept[kept["split"] == "test"]["row"]) == [0, 1, 2, 3, 4]
    assert not (tmp_path / "out/cost.json").exists()


def test_a_single_column_is_the_test_split_in_its_order(corpora, tmp_path):
    path = written(tmp_path / "ours.csv", pandas.DataFrame({"prediction": ["no", "no", "no", "yes", "no"]}))
    found = scored(corpora, "label", path, tmp_path / "out")
    assert found["scores"] == {"test": {"accuracy": 0.8}, "test_unseen": {"accuracy": 0.75}}
    assert found["flags"] == []


def test_the_predictions_of_a_result_score_as_that_result(corpora, tmp_path):
    spec = {"version": 1, "baseline": "bag_of_words", "task": task("label"), "subset": {}}
    spec["data"] = corpora["label"].card["digest"]
    folders = ("--data", corpora["label"].folder, "--out", tmp_path / "baseline")
    run_in_process("baseline", "--spec", canonical(spec), *folders)
    theirs = json.loads((tmp_path / "baseline/metrics.json").read_text())
    ours = scored(corpora, "label", tmp_path / "baseline/predictions.parquet", tmp_path / "out")
    theirs["scores"].pop("train")
    assert ours["scores"] == theirs["scores"] and ours["flags"] == theirs["flags"]


HEAD = "split,row,prediction\n"
RIGHT = HEAD + "".join(f"test,{i},{'no' if i < 3 else 'yes'}\n" for i in range(5))
MISTAKES = {
    "unknown label": ("label", RIGHT.replace("3,yes", "3,yse"), ":5: column 'prediction': 'yse' is no label"),
    "unknown split": ("label", RIGHT.replace("test,1", "tset,1"), ":3: column 'split': 'tset' is no split of"),
    "no such row": ("label", RIGHT.replace("test,4", "test,5"), ":6: column 'row': test has no row '5'; expected"),
    "no number": ("label", RIGHT.replace("test,4", "test,x"), ":6: column 'row': test has no row 'x'"),
    "a row twice": ("label", RIGHT + "test,2,no\n", ":7: column 'row': row 2 of test is here a second time;"),
    "a row missing": ("label", RIGHT.replace("test,2,no\n", ""), "row 2 of test has no prediction; 4 of 5 rows have"),
    "no test split": ("label", RIGHT.replace("test", "train") + "train,5,no\n", "no row is of a test split (test)"),
    "wrong count": ("label", "prediction\nno\nno\n", ":3: column 'prediction': the file ends with 2 predictions;"),
    "no column": ("label", "answer\nno\n", ":1: column 'prediction': is missing; there are answer"),
    "half of the columns": ("label", "row,prediction\n0,no\n", ":1: column 'split': is missing"),
    "no number for a score": ("score", "prediction\n1\n2\nthree\n4\n5\n", ":4: column 'prediction': 'three' is not"),
    "too few tags": ("tags", "prediction\n" + "B-X O\n" * 4 + "O\n", ":6: column 'prediction': 1 tags for 2 words"),
    "unknown tag": ("tags", "prediction\n" + "B-X I-Y\n" * 5, ":2: column 'prediction': word 2: 'I-Y' is no"),
    "empty": ("label", "", ":1: is empty; expected a header line that names the columns"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_its_file_line_and_column(corpora, tmp_path, mistake):
    target, text, expected = MISTAKES[mistake]
    path = tmp_path / "ours.csv"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_predictions(path, "csv", task_with_defaults(task(target), {}), corpora[target])
    assert expected in str(caught.value) and str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_single_column_needs_a_single_test_split(corpora, tmp_path):
    path = tmp_path / "ours.csv"
    path.write_text("prediction\nno\n")
    several = task_with_defaults(task("label", test=["test", "train"]), {})
    with pytest.raises(UserError, match="several test splits .test, train.; give split, row, prediction"):
        read_predictions(path, "csv", several, corpora["label"])


def test_a_file_that_changed_is_refused(corpora, tmp_path, monkeypatch):
    path = tmp_path / "ours.csv"
    path.write_text(RIGHT)
    monkeypatch.setattr("test_external.file_sha256", lambda _: "0" * 64)
    with pytest.raises(UserError, match="ours.csv is not the file that was planned with"):
        scored(corpora, "label", path, tmp_path / "out")


def planned(changes=None, **entries):
    """Return the plan of the demo with external predictions."""
    return load_plan(read_config([str(HOME / "tests/base.yaml")], {"external": entries} | (changes or {})), HOME)


def shown(plan, experiment: str) -> list[dict]:
    """Return the names of the predictions from elsewhere that the outputs of an experiment read."""
    return [one["names"] for one in plan.job("collect", experiment).spec["results"] if one["step"] == "external"]


def test_the_plan_scores_them_by_hash_and_shows_them_by_label(tmp_path):
    path = tmp_path / "ours.csv"
    path.write_text("prediction\nno\n")
    plan = planned(our_lstm={"label": "Our LSTM", "predictions": {"acceptability": str(path)}})
    job = plan.job("external", "acceptability/our_lstm")
    assert job.spec["sha256"] == file_sha256(path) and str(tmp_path) not in job.canonical
    assert job.inputs["predictions"] == [str(path)]
    assert shown(plan, "demo") == [{"external": "our_lstm", "task": "acceptability"}]
    assert plan.job("table", "demo/main_table").spec["labels"]["external"] == {"our_lstm": "Our LSTM"}
    assert "results/external/acceptability/our_lstm/metrics.json" in plan.status.collected("demo")


def test_scaled_down_those_of_tasks_that_are_left_out_are_left_out_too(tmp_path):
    path = tmp_path / "ours.csv"
    path.write_text("prediction\nno\n")
    changes = {"tasks": ["acceptability", "qqp"], "scale_down": {"local_only": True}}
    both = {"predictions": {"acceptability": str(path), "qqp": str(path)}}
    plan = planned(changes, ours=both, theirs={"predictions": {"qqp": str(path)}})
    assert list(plan.jobs["external"]) == ["acceptability/ours"]
    assert shown(plan, "demo_scaled") == [{"external": "ours", "task": "acceptability"}]
