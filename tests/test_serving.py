"""Several tasks on one frozen trunk: which layers are executed, which k is chosen, and what the table says of it."""

import csv
import io

import pandas
import pytest

import invented
from test_papers import planned
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.runs_frame import COLUMNS
from thaw.outputs.render import table_formats
from thaw.outputs.tables import serving

# task: {k: (validation, test)}, and of the full model
SCORES = {"entities": {1: (70, 71), 2: (79.5, 78), 3: (80, 77)}, "odd": {1: (85, 84), 2: (84, 86), 3: (83, 82)}}
FULL = {"entities": 80, "odd": 84}


@pytest.fixture(scope="module")
def frame() -> pandas.DataFrame:
    rows = []
    for task, points in SCORES.items():
        scored = {("top", f"k{k:02d}", k): both for k, both in points.items()} | {("all", "base", 6): (FULL[task],) * 2}
        for (strategy, variant, thawed), both in scored.items():
            for role, value in zip(("validation", "test"), both, strict=True):
                row = dict.fromkeys(COLUMNS, 0.0) | dict.fromkeys(("flags", "missing", "optimizer", "pairs"), "")
                row |= {"kind": "run", "task": task, "subset": "all", "encoder": "tiny", "head": "linear", "seed": 1}
                row |= {"strategy": strategy, "variant": variant, "thawed": thawed, "embeddings": strategy == "all"}
                row |= {"split": role, "role": role, "main": True, "value": value / 100, "metric": "accuracy"}
                rows.append(row | {"synthetic": False})
    return pandas.DataFrame(rows)


@pytest.mark.parametrize(
    "thawed, layers, count", [([2, 1], 6, 5 + 3), ([6, 6], 6, 12), ([0, 0, 0], 12, 12), ([3, 5, 8], 12, 9 + 16)]
)
def test_layers_below_all_thawed_ones_are_executed_once(thawed, layers, count):
    assert serving.executed(thawed, layers) == count


def test_the_choices_their_scores_and_what_they_execute(frame):
    spec = invented.shown("serving", "serving_table") | {"sweep": "top", "reference": "all", "margin": 1.0}
    table = serving.build(OutputData("", frame), spec | {"layers": {"tiny": 6}})
    header, *lines = csv.reader(io.StringIO(table_formats.to_csv(table)))
    by_choice = {line[3]: dict(zip(header, line, strict=True)) for line in lines}
    assert by_choice["One model per task"]["layers"] == "12" and by_choice["One model per task"]["mean"] == "82.0"
    best = by_choice["Best k per task"]
    assert best["thawed"] == "3 1" and best["layers"] == str(5 + 4) and float(best["mean"]) == (77 + 84) / 2
    near = by_choice["Smallest k within 1 of it"]
    assert near["thawed"] == "2 1" and float(near["overhead"]) == pytest.approx(100 * (5 + 3) / 12, abs=1e-3)
    assert float(near["relative"]) == pytest.approx(100 * 81 / 82, abs=1e-3)
    (row,) = (row for row in table.groups[0].rows if row.name == "k = 2 for all")
    assert [cell.text for cell in row.cells] == ["78.0 (2)", "86.0 (2)", "82.0", "100.0", "8 of 12", "66.7"]
    linked = [cell.link for cell in row.cells]
    assert linked == [f"{task}.run.all.tiny.linear.top.k02" for task in SCORES] + [""] * 4
    assert table.groups[0].rows[0].cells[1].link == "odd.run.all.tiny.linear.all.base"


def test_the_plan_says_how_many_layers_an_encoder_has(home, tmp_path):
    spec = planned(home, "wei2022", tmp_path).job("table", "wei2022/wei2022_serving").spec
    assert spec["layers"] == {"bert_base_uncased": 12} and spec["sweep"] == "wei_top_k"
