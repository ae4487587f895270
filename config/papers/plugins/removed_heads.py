"""A table of fine-tuned models without a share of their attention heads: score, parameters and time."""

from thaw.declarations.output_kind import OF_PROBES, OutputKind

TABLES = {
    "head_removal_table": OutputKind(
        "thaw.papers.removed_heads:build",
        "score, parameters and time of fine-tuned models without a share of their attention heads",
        **OF_PROBES,
    ),
}


from thaw.core.errors import UserError
from thaw.outputs import wording
from thaw.outputs.frame.printed_names import Names
from thaw.outputs.frame.probe_frame import PROBED, run_names
from thaw.outputs.render.typed_table import Cell, Group, Row, Table

TITLES = ["Least important first", "In random order", "Parameters, M", "Time, %"]
NOTE = (
    "Score × 100 on validation with the run's own head, mean ± standard deviation (n − 1) over seeds, from 3 on; "
    "nothing is trained again. Parameters: of the encoder without the least important heads. Time: of a pass over "
    "the examples, in % of the whole model's, the median of five passes on the machine that measured it."
)


def build(data, spec: dict) -> Table:
    """Return a row for each share of heads, in a group for each strategy: means over seeds.

    Raises UserError where no probe of kind head_removal has a result.
    """
    import pandas

    records = [one for one in data.probes if one.entry["kind"] == "head_removal" and one.value("layers")]
    if not records:
        raise UserError("a head_removal_table needs a probe of kind head_removal on encoders that runs have adapted")
    cells, groups = pandas.DataFrame([record.cell for record in records]), []
    names = Names(spec, cells, run_names(records, spec["labels"]))
    for record in records:
        cell = record.cell
        words = names.title_words(cell, "subset", "encoder", "probe")
        words.append(wording.metric_name(spec["labels"], record.task["metrics"][0]))
        common = {key: cell[key] for key in PROBED}
        lines = pandas.DataFrame([common | line for line in _lines(record)])
        whole = lines.loc[lines["share"] == 0, "seconds"].mean()
        rows = [_row(part, whole) for _, part in lines.groupby("share", sort=False)]
        groups.append(Group(f"{', '.join(words)}: {names.of('run', cell['run'])}", rows))
    return Table.of_spec(spec, TITLES, groups, [NOTE], of="Heads removed")


def _lines(record) -> list[dict]:
    """Return by seed and share: both scores x 100, parameters and seconds of a pass."""
    lines = []
    for end in (end for end in record.value("layers") if "removed" in end):
        random = {one["share"]: one["score"] for one in end["removed"] if one["order"] == "random"}
        for one in (one for one in end["removed"] if one["order"] == "importance"):
            scores = {"score": _points(one["score"]), "random": _points(random[one["share"]])}
            costs = {"parameters": one["parameters"], "seconds": one["seconds"]}
            lines.append({"seed": end["seed"], "share": one["share"], **scores, **costs})
    return lines


def _points(score: float | None) -> float:
    return float("nan") if score is None else 100 * score  # undefined, as a correlation of equal predictions


def _row(part, whole: float) -> Row:
    """Return the line of a share of heads. Args: its lines, one a seed; mean seconds of the whole model."""
    numbers = part[["score", "random", "parameters", "seconds"]]
    mean, sd = numbers.mean(skipna=False), numbers.std(skipna=False)
    cells = [Cell(mean[name], sd=wording.shown_sd(sd[name], len(part))) for name in ("score", "random")]
    cells += [Cell(mean["parameters"] / 1e6, digits=2), Cell(100 * mean["seconds"] / whole, digits=0)]
    return Row(f"{100 * part['share'].iloc[0]:.0f} %", cells, part.to_dict("records"))
