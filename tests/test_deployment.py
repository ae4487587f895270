"""What serving takes: milliseconds against a pass of the encoder, MB against files, the price of a million texts."""

import csv
import io
import json

import pytest

import test_advice
from thaw.compute_cost.deployment import Deployment
from thaw.core import layout
from thaw.decision import record
from thaw.declarations.output_options import AdviceOptions
from thaw.outputs.frame.price import extraction_rate
from thaw.outputs.render import table_formats
from thaw.words import answer_text
from tiny_corpus import Bench, tiny_corpus

NOT_KNOWN = float("nan")


@pytest.fixture
def served(tmp_path):
    """Runs whose encoder read 400 texts of a gigaflop each in two seconds, for the frozen arm as much as its pass."""
    frame = test_advice.runs_of(tmp_path, test_advice.RATES)
    full = frame["strategy"] == "full"
    frame["inference_flops"] = 1e9 * (1 + full)
    frame["trained_parameters"] = 250_000.0 + 21_750_000 * full
    frame["extraction_seconds"], frame["extraction_flops"] = 2.0 / 4, 400 * 1e9 / 4  # four runs share the pass
    return frame


def test_milliseconds_are_those_of_the_encoders_pass_for_a_text_of_its_operations(tmp_path, served):
    assert extraction_rate(served) == pytest.approx(400e9 / 2.0)
    made = test_advice.answer_of(tmp_path, served).deployment
    assert made["frozen"].milliseconds == pytest.approx(1e3 * 2.0 / 400)
    assert made["full"].milliseconds == pytest.approx(2 * 1e3 * 2.0 / 400)


def test_a_million_texts_cost_as_many_hours_as_they_take(tmp_path, served):
    answer = test_advice.answer_of(tmp_path, served, machine_hour=0.72, currency="EUR")
    hours = 1_000_000 * 0.005 / 3600
    assert answer.deployment["frozen"].million == pytest.approx(hours * 0.72) == pytest.approx(1.0)
    assert "A million texts cost 2 EUR, at 10 ms each." in answer_text.reasons(answer)
    record.write(tmp_path / "advice.json", [answer])
    assert record.read_file(tmp_path / "advice.json")[0].deployment == answer.deployment


LORA = {"train": ["head"], "insert": {"kind": "lora", "rank": 2, "targets": "query_value"}}


@pytest.mark.parametrize("phase", [{"train": ["head"]}, {"train": ["head", {"top": "k"}]}, {"train": ["all"]}, LORA])
def test_megabytes_are_those_of_the_tensors_that_a_run_leaves(tmp_path, phase):
    bench = Bench(tmp_path, "bert", tiny_corpus(tmp_path / "data", "classification"), "classification")
    folder = bench.step("train", bench.spec(phase, keep=True), tmp_path / "run")
    cost = json.loads((folder / "cost.json").read_text())
    own = Deployment.of(NOT_KNOWN, NOT_KNOWN, cost["parameters"]["trained"], None, "")
    files = [folder / "head.safetensors", *folder.glob(f"{layout.ENCODER}*")]
    assert sum(map(_tensor_bytes, files)) == pytest.approx(1e6 * own.megabytes)
    assert (own.milliseconds, own.million) == (None, None)


def _tensor_bytes(file) -> int:
    """Return the bytes of a safetensors file without its header, whose length its first eight bytes say."""
    return file.stat().st_size - 8 - int.from_bytes(file.read_bytes()[:8], "little")


def test_the_price_list_has_the_units_and_what_nobody_measured_is_left_out(tmp_path, served):
    table = test_advice.table_of(tmp_path, served, machine_hour=0.72, currency="EUR")
    assert [column.label for column in table.columns][-3:] == ["ms a text", "MB a task", "EUR a million texts"]
    lines = {line["arm"]: line for line in csv.DictReader(io.StringIO(table_formats.FORMATS["csv"](table)))}
    assert float(lines["full"]["megabytes"]) == 88.0 and float(lines["frozen"]["milliseconds"]) == pytest.approx(5)
    bare = test_advice.table_of(tmp_path, served.assign(inference_flops=NOT_KNOWN, after_flops=1.0))
    assert [column.label for column in bare.columns][-1] == "Price"
    assert set(bare.answers[0].deployment.values()) == {Deployment(None, None, None, "")}
    unread = served.assign(extraction_seconds=0.0)
    table = test_advice.table_of(tmp_path, unread, machine_hour=0.72, currency="EUR")
    assert table.answers[0].deployment["frozen"] == Deployment(None, 1.0, None, "EUR")
    assert table.columns[-1].label == "MB a task" and answer_text.NO_MILLION in table.notes


def test_a_price_has_a_currency():
    for options in ({"machine_hour": 0.4}, {"currency": "EUR"}):
        with pytest.raises(ValueError, match="machine_hour and currency go together"):
            AdviceOptions(**options)
