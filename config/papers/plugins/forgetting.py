"""A table of what fine-tuning forgets: the loss of the pretraining objective before and after a strategy's runs."""

from thaw.declarations.output_kind import OF_PROBES, OutputKind

TABLES = {
    "forgetting_table": OutputKind(
        "thaw.papers.forgetting:build",
        "the loss at masked tokens and of next sentences before and after fine-tuning, by strategy",
        **OF_PROBES,
    ),
}


import numpy as np

from thaw.core.errors import UserError
from thaw.outputs.frame.probe_frame import ProbeRecord, run_names
from thaw.outputs.render.typed_table import Cell, Group, Row, Table
from thaw.words import wording

LOSSES = {"masked_loss": "Masked tokens", "next_sentence_loss": "Next sentences"}
NOTE = (
    "Loss in nats of the encoder's own pretraining heads on texts of validation, before fine-tuning and after it, "
    "with the same masks; mean ± standard deviation (n − 1) over seeds, from 3 on. Higher is worse: what the "
    "strategy has forgotten of its pretraining, on texts of the task."
)


def build(data, spec: dict) -> Table:
    """Return a row for each strategy: both losses on validation before its runs and after, means over seeds.

    Raises UserError where no probe measured a loss.
    """
    records = [one for one in data.probes if one.entry["kind"] in LOSSES]
    losses = [(record, by_seed) for record in records if (by_seed := _losses(record))]
    if not losses:
        raise UserError("a forgetting_table needs probes of kind masked_loss or next_sentence_loss with a result")
    names, groups = run_names(records, spec["labels"]), {}
    shown = [kind for kind in LOSSES if kind in {record.entry["kind"] for record in records}]
    for record, by_seed in losses:
        cell = record.cell
        rows = groups.setdefault(tuple(cell[name] for name in ("task", "subset", "encoder")), {})
        name = names[cell["run"]]
        row = rows.setdefault(name, Row(name, [None] * (2 * len(shown))))
        place = 2 * shown.index(record.entry["kind"])
        row.cells[place : place + 2] = _cells(by_seed)
        key = {name: cell[name] for name in ("task", "subset", "encoder", "probe", "run")}
        row.records += [key | {"seed": seed, "before": one, "after": two} for seed, (one, two) in by_seed.items()]
    parts = [Group(_group(place, groups, spec["labels"]), list(rows.values())) for place, rows in groups.items()]
    titles = [f"{LOSSES[kind]}, {when}" for kind in shown for when in ("before", "after")]
    return Table.of_spec(spec, titles, parts, [NOTE])


def _losses(record: ProbeRecord) -> dict[int, tuple[float, float]]:
    """Return by seed the loss before and after."""
    of_seeds = {end["seed"]: next(iter(end["scores"].values())) for end in record.value("layers")}
    return {seed: (one["before"], one[record.entry["kind"]]) for seed, one in of_seeds.items()}


def _cells(by_seed: dict[int, tuple[float, float]]) -> list[Cell]:
    """Return the loss before, and after with its standard deviation over seeds."""
    before, after = np.array(list(by_seed.values())).T
    sd = wording.shown_sd(after.std(ddof=min(1, len(after) - 1)), len(after))
    return [Cell(before.mean(), digits=2), Cell(after.mean(), digits=2, sd=sd)]


def _group(place: tuple, groups: dict, labels: dict) -> str:
    """Return the parts of a cell that differ between groups, in print."""
    task, subset, encoder = place
    rows = wording.label(labels, "subsets", subset)
    names = (wording.task_name(labels, task), rows, wording.label(labels, "encoders", encoder))
    return ", ".join(name for n, name in enumerate(names) if len({key[n] for key in groups}) > 1)
