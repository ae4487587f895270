"""The table of what fine-tuning forgets: losses before and after, by strategy, from the records of probes."""

import csv
import io

import pytest

import invented
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats
from thaw.papers import forgetting


def record(folder, kind: str, strategy: str, losses: dict[int, tuple[float, float]]):
    """Write what a probe says of a strategy's runs: the loss before and after, by seed; return the path."""
    run = {"task": "odd", "head": "linear", "strategy": strategy, "variant": "base"}
    of = {"task": "odd", "subset": "all", "encoder": "tiny", "probe": f"my_{kind}", "run": run}
    ends = [
        {"layer": 2, "seed": seed, "scores": {"validation": {"before": before, kind: after}}}
        for seed, (before, after) in losses.items()
    ]
    path = folder / f"{kind}_{strategy}.json"
    write_json(path, {"spec": {"of": of, "probe": {"kind": kind}, "layers": 2}, "layers": ends})
    return path


def test_losses_before_and_after_by_strategy(tmp_path):
    paths = [
        record(tmp_path, "masked_loss", "full", {1: (2.0, 3.0), 2: (2.0, 4.0), 3: (2.0, 3.5)}),
        record(tmp_path, "masked_loss", "top", {1: (2.0, 2.25)}),
        record(tmp_path, "next_sentence_loss", "full", {1: (0.5, 0.75)}),
        record(tmp_path, "cka", "full", {1: (0.0, 1.0)}),
    ]
    data = OutputData(tmp_path, probes=paths)
    table = forgetting.build(data, invented.shown("f", "forgetting_table"))
    (group,) = table.groups
    cells = {row.name: [cell.text if cell else "" for cell in row.cells] for row in group.rows}
    assert cells == {"Full": ["2.00", "3.50 ± 0.50", "0.50", "0.75"], "top": ["2.00", "2.25", "", ""]}
    lines = list(csv.DictReader(io.StringIO(table_formats.to_csv(table))))
    assert [(line["run"], line["seed"], line["after"]) for line in lines if line["probe"] == "my_masked_loss"] == [
        ("linear.full.base", "1", "3.0"),
        ("linear.full.base", "2", "4.0"),
        ("linear.full.base", "3", "3.5"),
        ("linear.top.base", "1", "2.25"),
    ]
    with pytest.raises(UserError, match="a forgetting_table needs probes of kind masked_loss or next_sentence_loss"):
        forgetting.build(OutputData(tmp_path, probes=paths[3:]), invented.shown("f", "forgetting_table"))
