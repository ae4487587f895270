"""Which results runs.csv holds, what their rows say, and what stands in place of those that are not there."""

import shutil

import pandas
import pytest

import invented
from conftest import run_step
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.outputs.frame import collection, runs_frame

RUNS = len(invented.POINTS) * len(invented.SEEDS)


def of(frame, **values):
    """Return the rows that have these values."""
    for name, value in values.items():
        frame = frame[frame[name] == value]
    return frame


def collected(results, tmp_path, **changes):
    """Return the table that a changed spec makes of some records, as it is read back."""
    rows = collection.rows(invented.collect_spec(**changes), results, tmp_path / "logs")
    pandas.DataFrame(rows, columns=runs_frame.COLUMNS).to_csv(tmp_path / "runs.csv", index=False)
    return runs_frame.read_runs(tmp_path / "runs.csv")


@pytest.fixture
def copied(invented_results, tmp_path):
    """A copy of the invented results that a test may change."""
    folder = tmp_path / "results"
    shutil.copytree(invented_results, folder)
    return folder


def test_every_score_and_cost_has_its_row(invented_frame):
    frame = invented_frame
    assert list(frame.columns) == runs_frame.COLUMNS
    assert len(of(frame, kind="run", task="entities")) == 4 * RUNS
    assert len(of(frame, kind="run", task="odd")) == 5 * RUNS  # the transfer set too
    stack = of(frame, strategy="stack_then_finetune")
    assert set(stack["after_seconds"]) == {2.0} and set(stack["extraction_seconds"]) == {0.0}
    assert set(of(frame, task="odd")["synthetic"]) == {False} and set(of(frame, task="odd")["carved"]) == {True}


def test_what_a_prediction_costs_is_there_where_the_run_noted_it(copied, tmp_path):
    path = copied / "runs/odd/all/tiny/linear/full/base/seed1/cost.json"
    write_json(path, read_json(path) | {"inference": {"layers": 4, "flops": 123.5}})
    frame = collected(copied, tmp_path)
    known = of(frame, task="odd", strategy="full", seed=1)
    assert set(known["inference_layers"]) == {4} and set(known["inference_flops"]) == {123.5}
    assert of(frame, task="odd", strategy="full", seed=2)["inference_flops"].isna().all()


def test_a_baseline_names_the_encoder_that_it_is_compared_with(invented_frame):
    rows = invented_frame[invented_frame["kind"] == "baseline"]
    found = rows[["task", "strategy", "encoder", "head"]].drop_duplicates().values.tolist()
    assert ["odd", "cosine", "tiny", ""] in found and ["entities", "random_encoder", "tiny", ""] in found
    assert ["odd", "majority", "", ""] in found and "cosine" not in set(of(rows, task="entities")["strategy"])
    assert of(invented_frame, kind="ensemble")["strategy"].unique().tolist() == ["all_full"]


def test_each_split_has_its_role(invented_frame):
    rows = of(invented_frame, task="odd", strategy="full", seed=1)
    roles = {"train": "train", "validation": "validation", "dev": "test", "dev_unseen": "unseen"}
    assert dict(zip(rows["split"], rows["role"], strict=True)) == roles | {"third/test": "transfer"}


def test_a_run_reads_the_view_that_its_record_names(invented_frame):
    dev = of(invented_frame, task="odd", split="dev", kind="run")
    assert set(of(dev, strategy="frozen")["pairs"]) == {"separate"} and set(of(dev, strategy="full")["pairs"]) == {
        "joint"
    }
    assert set(of(dev, strategy="frozen")["truncated"]) == {0} and set(of(dev, strategy="full")["truncated"]) == {10}
    assert set(of(invented_frame, task="entities")["pairs"]) == {""}


def test_the_extraction_is_shared_equally_among_its_readers(invented_frame):
    each = invented_frame.drop_duplicates(["kind", "task", "strategy", "variant", "seed"])
    seconds = {name: set(of(each, task="odd", strategy=name)["extraction_seconds"]) for name in ("frozen", "cosine")}
    # joint: six readers of six seconds; apart, three seconds, read by frozen and the cosine; of 600 rows the 200 of
    # train and 100 of validation are paid for
    assert seconds == {"frozen": {(1.0 + 0.75) / 2}, "cosine": {0.75 / 2}}
    assert each["extraction_seconds"].sum() == pytest.approx((6 + 6 + 3 + 6 + 6) / 2)


def test_a_missing_result_is_one_sentence(invented_results, tmp_path):
    arguments = ["--results", invented_results, "--logs", tmp_path, "--out", tmp_path / "runs.csv"]
    done = run_step("collect", "--spec", canonical(invented.collect_spec(seeds=[3])), *arguments, check=False)
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    assert "seed3/metrics.json is missing" in done.stderr and not (tmp_path / "runs.csv").exists()


def test_where_results_may_be_missing_their_rows_say_why(copied, tmp_path):
    folder = "odd/all/tiny/linear"
    for point in ("full/base/seed1", "full/base/seed2", "top_k/k01/seed1"):
        (copied / "runs" / folder / point / "metrics.json").unlink()
    log = tmp_path / f"logs/train/{folder}/full/base/seed1.log"
    log.parent.mkdir(parents=True)
    log.write_text("12:00:00 train\nerror: an older one\nerror: no space left on device: x\n")
    stale = f"runs/{folder}/top_k/k03/seed2"
    frame = collected(copied, tmp_path, missing=True, stale=[stale])
    gaps = frame[frame["missing"] != ""]
    assert set(gaps["split"]) == {"validation", "dev"} and gaps["value"].isna().all() and set(gaps["n"]) == {0}
    reasons = {(row.strategy, row.variant, row.seed): row.missing for row in gaps.itertuples()}
    assert reasons == {
        ("full", "base", 1.0): "train: no space left on device: x",
        ("full", "base", 2.0): "not run",
        ("top_k", "k01", 1.0): "not run",
        ("top_k", "k03", 2.0): "made under other settings",
    }


def test_a_job_that_failed_before_a_run_is_its_reason(copied, tmp_path):
    shutil.rmtree(copied / "runs/odd/all/tiny")
    log = tmp_path / "logs/features/tiny/real/joint.log"
    log.parent.mkdir(parents=True)
    log.write_text("Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory\n")
    frame = collected(copied, tmp_path, missing=True)
    assert set(of(frame, task="odd", kind="run")["missing"]) == {"features: CUDA out of memory"}


def test_without_any_run_there_is_nothing_to_show(copied, tmp_path):
    shutil.rmtree(copied / "runs")
    with pytest.raises(UserError, match="no run of this experiment has a result yet"):
        collection.rows(invented.collect_spec(missing=True), copied, tmp_path)


@pytest.mark.parametrize("broken, message", [('{"spec"', "not valid JSON"), ("{}", "is missing")])
def test_a_broken_result_names_its_file(copied, tmp_path, broken, message):
    path = copied / "runs/odd/all/tiny/linear/full/base/seed2/cost.json"
    path.write_text(broken)
    with pytest.raises(UserError, match=message) as error:
        collection.rows(invented.collect_spec(), copied, tmp_path)
    assert str(path) in str(error.value)


def test_a_record_without_a_corpus_card_may_be_missing_too(copied, tmp_path):
    shutil.rmtree(copied / "data/real")
    for room in ("runs", "baselines", "ensembles"):
        shutil.rmtree(copied / room / "odd")
    frame = collected(copied, tmp_path, missing=True)
    assert set(of(frame, task="odd")["value"].isna()) == {True} and set(of(frame, task="odd")["missing"]) == {"not run"}


def test_a_runs_csv_of_another_shape_is_refused(tmp_path):
    (tmp_path / "runs.csv").write_text("task,value\na,1\n")
    with pytest.raises(UserError, match="column kind is missing"):
        runs_frame.read_runs(tmp_path / "runs.csv")
