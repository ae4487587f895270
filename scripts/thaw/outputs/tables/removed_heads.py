"""A table of fine-tuned models without a share of their attention heads: score, parameters and time."""

import numpy as np

from thaw.core.errors import UserError
from thaw.outputs import wording
from thaw.outputs.frame.printed_names import Names
from thaw.outputs.frame.probe_frame import PROBED, ProbeRecord, run_names
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table

HEADER = "task subset encoder run seed share score random parameters seconds"
ORDERS = ("importance", "random")


def build(data, spec: dict) -> TextTable:
    """Return a row for each share of heads, in a group for each strategy: means over seeds.

    Raises UserError where no probe of kind head_removal has a result.
    """
    import pandas

    records = [one for one in data.probes if one.entry["kind"] == "head_removal" and one.value("layers")]
    if not records:
        raise UserError("a head_removal_table needs a probe of kind head_removal on encoders that runs have adapted")
    cells, groups, lines = pandas.DataFrame([record.cell for record in records]), [], []
    names = Names(spec, cells, run_names(records, spec["labels"]))
    for record in records:
        of_record, cell = _lines(record), record.cell
        words = names.title_words(cell, "subset", "encoder", "probe")
        words.append(wording.metric_name(spec["labels"], record.task["metrics"][0]))
        groups.append(Group(f"{', '.join(words)}: {names.of('run', cell['run'])}", [], _rows(of_record)))
        lines += [[*(cell[key] for key in PROBED), *line] for line in of_record]
    titles = ["Least important first", "In random order", "Parameters, M", "Time, %"]
    return text_table(spec, titles, groups, _notes(), HEADER, lines, of="Heads removed")


def _lines(record: ProbeRecord) -> list[list]:
    """Return by seed and share: both scores x 100, parameters and seconds of a pass."""
    lines = []
    for end in (end for end in record.value("layers") if "removed" in end):
        orders = {name: {one["share"]: one for one in end["removed"] if one["order"] == name} for name in ORDERS}
        for share, one in orders["importance"].items():
            scores = [_points(order[share]["score"]) for order in orders.values()]
            lines.append([end["seed"], share, *scores, one["parameters"], one["seconds"]])
    return lines


def _points(score: float | None) -> float:
    return np.nan if score is None else 100 * score  # undefined, as a correlation of equal predictions


def _rows(lines: list[list]) -> list[Row]:
    rows, whole = [], np.mean([line[-1] for line in lines if line[1] == 0])
    for share in dict.fromkeys(line[1] for line in lines):
        mine = np.array([line[2:] for line in lines if line[1] == share], dtype=float)
        score, random, parameters, seconds = mine.mean(0)
        spreads = [wording.spread(sd, len(mine)) for sd in mine[:, :2].std(0, ddof=min(1, len(mine) - 1))]
        shown = [f"{wording.number(one)}{spread}" for one, spread in zip((score, random), spreads, strict=True)]
        shown += [wording.number(parameters / 1e6, 2), wording.number(100 * seconds / whole, 0)]
        cells = zip(shown, (score, random, parameters, seconds), strict=True)
        rows.append(Row({}, f"{100 * share:.0f} %", [TextCell(text, value) for text, value in cells]))
    return rows


def _notes() -> list[str]:
    return [
        "Score × 100 on validation with the run's own head, mean ± standard deviation (n − 1) over seeds, from 3 on; "
        "nothing is trained again. Parameters: of the encoder without the least important heads. Time: of a pass over "
        "the examples, in % of the whole model's, the median of five passes on the machine that measured it.",
    ]
