"""The one price of a run: the processor's seconds, and what is shared."""

import time

import pandas
import pytest
import torch

import invented
from thaw.compute_cost.flops import Shape, encoder_flops
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.files import read_json, write_json
from thaw.features.extract import pass_seconds
from thaw.outputs.frame import price
from thaw.outputs.frame.collection import rows
from thaw.outputs.frame.runs_frame import COLUMNS, read_runs


def test_a_stopwatch_counts_work_and_no_waiting():
    watch = Stopwatch()
    with watch("load"):
        time.sleep(0.3)
    waited = watch.processor
    with watch("train"):
        begin = time.process_time()
        while time.process_time() - begin < 0.3:
            pass
    time.sleep(0.1)  # outside all parts
    assert waited < 0.15 and 0.3 <= watch.processor - waited < 0.4


@pytest.fixture
def timed(invented_frame):
    """Six runs on the CPU of ten seconds each, in which the processor worked for nine."""
    runs = invented_frame[invented_frame["kind"] == "run"].drop_duplicates("folder").head(6)
    return runs.assign(device="cpu", total_seconds=10.0, processor_seconds=9.0)


def test_idle_machines_and_older_results_have_no_note(timed):
    assert price.note(timed) == []
    assert price.note(timed.assign(processor_seconds=float("nan"))) == []
    assert price.note(timed.assign(device="NVIDIA T4", processor_seconds=1.0)) == [], "the card works"
    assert price.note(timed.assign(total_seconds=4.0, processor_seconds=1.0)) == [], "most of it is starting"


def test_a_busy_machine_is_noted(timed):
    timed.loc[timed.index[:2], "processor_seconds"] = 4.9
    (note,) = price.note(pandas.concat([timed, timed], ignore_index=True))
    assert note.startswith("The machine was busy: in 2 of 6 runs the processor worked for less than half")


@pytest.fixture
def priced(tmp_path):
    """Return what reads runs.csv of invented records, whose cards say how many tokens were read by which encoder."""
    invented.write_runs(tmp_path)
    invented.write_cards(tmp_path)

    def frame():
        made = pandas.DataFrame(rows(invented.collect_spec(), tmp_path, tmp_path / "logs"), columns=COLUMNS)
        made.to_csv(tmp_path / "runs.csv", index=False)
        runs = read_runs(tmp_path / "runs.csv")
        return runs[(runs["task"] == "odd") & (runs["kind"] == "run") & (runs["role"] == "test")]

    return tmp_path, frame


def test_a_price_is_of_the_processor_with_the_run_that_it_starts_from(priced):
    """Of 22 s by the clock but the total the processor worked 11: of 20 s of training 10, and 0.5 s of extraction."""
    results, frame = priced
    folder = results / "runs/odd/all/tiny/linear"
    before = frame().set_index(["strategy", "variant", "seed"])["price_seconds"]
    assert before["top_k", "k01", 1] == 20 + 0.5 and before["stack_then_finetune", "base", 1] == 80 + 2
    for name in ("top_k/k01", "frozen/base"):
        path = folder / name / "seed1/cost.json"
        write_json(path, read_json(path) | {"processor_seconds": 11.0 if "top" in name else 2.0})
    after = frame().set_index(["strategy", "variant", "seed"])["price_seconds"]
    assert after["top_k", "k01", 1] == 10 + 0.5 and after["top_k", "k01", 2] == 20 + 0.5
    assert after["stack_then_finetune", "base", 1] == 80 + 1, "half of the 4 s of the probe were work"
    write_json(path, read_json(path) | {"hardware": {"device": "NVIDIA T4"}})
    assert frame().set_index(["strategy", "variant", "seed"])["price_seconds"]["stack_then_finetune", "base", 1] == 82


def test_waiting_for_data_is_no_training():
    """A job waits 10 s for a store that another one writes, trains for a second, evaluates for half of one."""
    seconds = {"load": 10.0, "train": 1.0, "evaluate": 0.5, "total": 12.0}
    record = {"seconds": seconds, "processor_seconds": 1.5, "flops": 1, "hardware": {"device": "cpu"}}
    assert price.of_training(record | {"processor_train_seconds": 1.0}, "cost.json").seconds == 1.0
    assert price.of_training(record, "cost.json").seconds == pytest.approx(1.5 / 11.5), "older results noted no parts"


def test_a_pass_has_the_processors_seconds_on_a_cpu_and_those_of_the_clock_elsewhere():
    assert pass_seconds(2.0, 1.0, torch.device("cpu")) == [2.0, 1.0]
    assert pass_seconds(2.0, 1.0, torch.device("cuda")) == [2.0, 2.0]


def test_the_extraction_of_rows_that_train_and_choose_is_counted_by_formula(priced):
    """200 rows of train and 100 of validation, of 9 tokens each, up to layer 6, for six readers; once more apart."""
    results, frame = priced
    assert frame()["extraction_flops"].isna().sum() == 3 * 2, "the encoder is gone; the other two read nothing"
    config = {"model_type": "bert", "num_hidden_layers": 6, "hidden_size": 8, "intermediate_size": 32}
    write_json(results / "encoders/tiny/config.json", config)
    found = frame().set_index(["strategy", "variant", "seed"])["extraction_flops"]
    whole = encoder_flops(Shape.of(config), [9] * 300)
    assert found["top_k", "k03", 1] == pytest.approx(whole / 6) and found["full", "base", 1] == 0
