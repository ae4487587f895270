"""Ensembles: predictions combined on small numbers, the step on real runs, the plan, and the row in the table."""

import json

import numpy as np
import pandas
import pytest

from corpora import prepared
from plans import plan_of
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.evaluation.result_files import averaged, scored_rows, task_with_defaults
from tiny_corpus import ENTRIES, METRICS, Bench, run_in_process, tiny_corpus

ROWS = {
    "classification": [{"text": "a b", "label": "no"}, {"text": "c d", "label": "yes"}],
    "regression": [{"text": "a b", "score": 1.0}, {"text": "c d", "score": 2.0}],
    "spans": [{"words": ["Anna", "x"], "tags": ["B-PER", "O"]}, {"words": ["y"], "tags": ["O"]}],
}


def task_of(kind: str) -> dict:
    target = next(iter(ENTRIES[kind]["targets"]))
    return task_with_defaults(
        {"id": "t", "corpus": "mine", "target": target, "type": kind, "metrics": [METRICS[kind]]}, {}
    )


def ensemble_predictions(folder, kind: str, members: list[dict]):
    """Return what comes of members with these columns on both rows of validation and test."""
    corpus = prepared(folder, ENTRIES[kind], **dict.fromkeys(("train", "validation", "test"), ROWS[kind]))
    files = []
    for number, columns in enumerate(members):
        parts = [pandas.DataFrame({"split": split, "row": [0, 1], **columns}) for split in ("validation", "test")]
        files.append(folder / f"{number}.parquet")
        pandas.concat(parts).to_parquet(files[-1])
    return averaged(files, task_of(kind), corpus, scored_rows(task_of(kind), corpus, {}))["test"]


def test_probabilities_are_averaged(tmp_path):
    likely = [[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.5, 0.5]], [[0.3, 0.7], [0.1, 0.9]]]
    members = [{"prediction": ["no", "yes"], "probabilities": each} for each in likely]
    found = ensemble_predictions(tmp_path, "classification", members)
    assert found.probabilities == pytest.approx(np.mean(likely, axis=0)) and found.values.tolist() == [1, 1]


def test_scores_are_averaged(tmp_path):
    found = ensemble_predictions(tmp_path, "regression", [{"prediction": [1.0, 2.0]}, {"prediction": [2.0, 5.0]}])
    assert found.values.tolist() == [1.5, 3.5]


def test_a_run_without_a_row_is_refused(tmp_path):
    with pytest.raises(UserError, match="does not hold the 2 rows of validation"):
        ensemble_predictions(tmp_path, "regression", [{"prediction": [1.0, 2.0], "row": [0, 2]}])


def test_the_step_scores_real_runs(tmp_path):
    bench = Bench(tmp_path, "bert", tiny_corpus(tmp_path / "corpus", "classification"), "classification")
    runs = [bench.step("train", bench.spec({}, seed=seed), tmp_path / f"seed{seed}") for seed in (1, 2)]
    spec = {"version": 1, "ensemble": "two", "task": bench.spec({})["task"], "subset": {}, "by": "mean"}
    spec |= {"data": bench.upstream["data"], "members": [read_json(run / "metrics.json")["digest"] for run in runs]}
    files = [run / "metrics.json" for run in runs]
    folders = ("--data", bench.corpus.folder, "--out", tmp_path / "two")
    run_in_process("ensemble", "--spec", json.dumps(spec), "--members", *files, *folders)
    found = read_json(tmp_path / "two/metrics.json")
    assert set(found["scores"]) == {"validation", "test"} and found["rows"]["test"] == 8
    first, second, both = (pandas.read_parquet(folder / "predictions.parquet") for folder in (*runs, tmp_path / "two"))
    shares = [np.stack(frame["probabilities"]) for frame in (first, second)]
    assert np.stack(both["probabilities"]) == pytest.approx(np.mean(shares, axis=0), abs=1e-6)


def planned(members: list, **changes):
    """Plan the demo with an ensemble."""
    wish = {"ensembles": {"two": {"label": "Two", "members": members, **changes}}, "seeds": [1, 2]}
    wish |= {"tasks": ["acceptability"], "strategies": ["full"]}
    return plan_of(**wish)


def test_the_plan_has_the_members_and_shows_the_ensemble():
    plan = planned([{"strategy": "full"}, {"strategy": "top_k", "value": 4, "seeds": [2]}])
    job = plan.job("ensemble", "acceptability/all/two")
    folders = ["full/base/seed1", "full/base/seed2", "top_k/k04/seed2"]
    cell = "results/runs/acceptability/all/minilm/linear"
    assert job.inputs["members"] == [f"{cell}/{folder}/metrics.json" for folder in folders]
    assert "results/ensembles/acceptability/all/two/metrics.json" in plan.status.collected()
    assert f"{cell}/top_k/k04/seed2/metrics.json" not in plan.status.collected(), "a member alone is not shown"
    assert plan.job("table", "demo/main_table").spec["labels"]["ensembles"] == {"two": "Two"}
    assert job.digest != planned([{"strategy": "full"}]).job("ensemble", "acceptability/all/two").digest
