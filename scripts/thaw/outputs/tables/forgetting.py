"""A table of what fine-tuning forgets: the loss of the pretraining objective before and after a strategy's runs."""

import numpy as np

from thaw.core.errors import UserError
from thaw.outputs import wording
from thaw.outputs.frame.probe_frame import ProbeRecord, run_names
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table

LOSSES = {"masked_loss": "Masked tokens", "next_sentence_loss": "Next sentences"}
HEADER = "task subset encoder probe run seed before after"


def build(data, spec: dict) -> TextTable:
    """Return a row for each strategy: both losses on validation before its runs and after, means over seeds.

    Raises UserError where no probe measured a loss.
    """
    records = [one for one in data.probes if one.entry["kind"] in LOSSES]
    losses = [(record, by_seed) for record in records if (by_seed := _losses(record))]
    if not losses:
        raise UserError("a forgetting_table needs probes of kind masked_loss or next_sentence_loss with a result")
    names, groups = run_names(records, spec["labels"]), {}
    kinds = {record.cell["probe"]: record.entry["kind"] for record in records}
    shown = [kind for kind in LOSSES if kind in kinds.values()]
    for record, by_seed in losses:
        place = tuple(record.cell[name] for name in ("task", "subset", "encoder"))
        cells = groups.setdefault(place, {}).setdefault(names[record.cell["run"]], {})
        cells[kinds[record.cell["probe"]]] = _cells(by_seed)
    parts = [Group(_group(place, groups, spec["labels"]), [], _rows(runs, shown)) for place, runs in groups.items()]
    titles = [f"{LOSSES[kind]}, {when}" for kind in shown for when in ("before", "after")]
    lines = [line for record, by_seed in losses for line in _lines(record, by_seed)]
    return text_table(spec, titles, parts, _notes(), HEADER, lines)


def _losses(record: ProbeRecord) -> dict[int, tuple[float, float]]:
    """Return by seed the loss before and after."""
    kind = record.entry["kind"]
    of_seeds = {end["seed"]: next(iter(end["scores"].values())) for end in record.value("layers")}
    return {seed: (one["before"], one[kind]) for seed, one in of_seeds.items()}


def _lines(record: ProbeRecord, by_seed: dict[int, tuple[float, float]]) -> list[list]:
    """Return what the CSV says of a record: both losses by seed."""
    key = [record.cell[name] for name in ("task", "subset", "encoder", "probe", "run")]
    return [[*key, seed, f"{before:.6f}", f"{after:.6f}"] for seed, (before, after) in by_seed.items()]


def _cells(by_seed: dict[int, tuple[float, float]]) -> list[TextCell]:
    """Return the loss before, and after with its standard deviation over seeds."""
    before, after = np.array(list(by_seed.values())).T
    spread = wording.spread(after.std(ddof=min(1, len(after) - 1)), len(after), 2)
    return [
        TextCell(wording.number(before.mean(), 2), before.mean()),
        TextCell(wording.number(after.mean(), 2) + spread, after.mean()),
    ]


def _rows(runs: dict[str, dict[str, list[TextCell]]], shown: list[str]) -> list[Row]:
    return [
        Row({}, name, [cell for kind in shown for cell in cells.get(kind, [None, None])])
        for name, cells in runs.items()
    ]


def _group(place: tuple, groups: dict, labels: dict) -> str:
    """Return the parts of a cell that differ between groups, in print."""
    task, subset, encoder = place
    rows = wording.label(labels, "subsets", subset)
    names = (wording.task_name(labels, task), rows, wording.label(labels, "encoders", encoder))
    return ", ".join(name for n, name in enumerate(names) if len({key[n] for key in groups}) > 1)


def _notes() -> list[str]:
    return [
        "Loss in nats of the encoder's own pretraining heads on texts of validation, before fine-tuning and after it, "
        "with the same masks; mean ± standard deviation (n − 1) over seeds, from 3 on. Higher is worse: what the "
        "strategy has forgotten of its pretraining, on texts of the task."
    ]
