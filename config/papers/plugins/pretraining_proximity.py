"""Figure: gain of full fine-tuning against the proximity of a task to the pretraining data."""

from thaw.declarations import output_options as options
from thaw.declarations.output_kind import Addition, OutputKind, Requirement

FIGURES = {
    "gain_figure": OutputKind(
        "thaw.papers.pretraining_proximity:build",
        "gain of full fine-tuning over training only the head, against how near each task is to what was pretrained "
        "(logme, masked_loss, next_sentence_loss)",
        options.ReferenceOptions,
        needs=(Requirement.PROBES, Requirement.FULL_AND_FROZEN),
        adds=(Addition.PROBES,),
    ),
}


from functools import partial

from thaw.core.errors import UserError
from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame.paired_differences import Contrasts
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.probe_frame import PRETRAINED, Names, ProbeRecord
from thaw.outputs.frame.runs_frame import CELL, head_alone

# by kind of probe: the score of the pretrained encoder that says how near, and the axis
MEASURES = {
    "masked_loss": ("before", "Loss at masked tokens, nats"),
    "next_sentence_loss": ("before", "Loss of next sentences, nats"),
    "logme": ("logme", "LogME of the last layer, nats"),
}
PLACE, FROZEN = CELL[:3], CELL[3:]


def build(data, spec: dict) -> panels.Figure:
    """Return for each measure of nearness the gain of thawing against it, a point for each task.

    Args: spec with `reference`, the strategy that trains everything. Raises UserError where no task has both.
    """
    frame = nearness(data.probes).merge(gains(data.runs, spec["reference"], data.predictions), on=PLACE)
    if frame.empty:
        raise UserError(
            f"a gain_figure needs runs of {spec['reference']} and of a strategy that trains the head alone, with as "
            "many seeds, and a measure that the encoder has: logme, or what it was pretrained with"
        )
    names, marks = Names(spec, frame), figure_style.marks(frame["task"])
    drawn = []
    for _, rows in frame.groupby([*PLACE[1:], "probe", "measure", *FROZEN], sort=False):
        first = rows.iloc[0]
        words = names.several(first, *PLACE[1:], *FROZEN[:2]) + names.probe_if_several(first, "measure")
        drawn.append(panels.Panel(", ".join(words), partial(_points, rows=rows, marks=marks)))
    legend = [panels.entry(names.of("task", task), mark, linestyle="none") for task, mark in marks.items()]
    return panels.compose(drawn, frame, legend)


def _points(axis, rows, marks: dict) -> None:
    """Draw a point with its bars for each task."""
    for row in rows.itertuples():
        colour, marker = marks[row.task]
        # The mean of equal numbers can be below them by its last bit, and an interval over rows need not hold the gain.
        bars = {"xerr": [[max(0, row.near - row.near_low)], [max(0, row.near_high - row.near)]]}
        bars["yerr"] = [[max(0, row.gain - row.low)], [max(0, row.high - row.gain)]]
        axis.errorbar(row.near, row.gain, **bars, color=colour, marker=marker, elinewidth=0.9, zorder=4)
    axis.axhline(0, color=figure_style.GREY, linewidth=0.7)
    axis.set_xlabel(MEASURES[rows["measure"].iloc[0]][1])
    axis.set_ylabel("Gain of fine-tuning, points")
    axis.margins(x=0.15)


def nearness(records: list[ProbeRecord]):
    """Return mean, low and high over seeds of what was before any run, by task, encoder, probe and measure."""
    import pandas

    rows = []
    for record in records:
        cell, spec = record.cell, record.record["spec"]
        measure = spec["probe"]["kind"]
        if measure == "logme" and cell["run"] != PRETRAINED:
            continue
        for end in (end for end in record.value("layers") if end["layer"] == spec["layers"]):
            (scores,) = end["scores"].values()
            near = {"measure": measure, "near": scores[MEASURES[measure][0]]}
            rows.append({name: cell[name] for name in (*PLACE, "probe")} | near)
    table = pandas.DataFrame(rows, columns=[*PLACE, "probe", "measure", "near"])
    groups = table.groupby([*PLACE, "probe", "measure"], sort=False)["near"]
    return groups.agg(near="mean", near_low="min", near_high="max").reset_index()


def gains(runs, whole: str, predictions: PredictionFiles):
    """Return a row for each task and strategy that trains only the head: what training everything gains over it.

    `gain`, in points of the main metric on the task's first test split, is the difference of means over the seeds that
    both have; `low` and `high` bound its 95 % interval, by a bootstrap over seeds and examples.
    """
    import pandas

    contrasts, rows = Contrasts(runs, "test", predictions), []
    tested = contrasts.shown
    tested = tested[tested["split"] == tested.groupby("task")["split"].transform("first")]
    for (*cell, metric, split), _ in head_alone(tested).groupby([*CELL, "metric", "split"], sort=False):
        contrast = contrasts.between((*cell[:4], whole, "base"), tuple(cell), split)
        if contrast:
            ci = contrast.ci
            gain = {"metric": metric, "split": split, "gain": ci.value, "low": ci.low, "high": ci.high}
            rows.append(dict(zip(CELL, cell, strict=True)) | gain | {"seeds": contrast.spread.seeds})
    return pandas.DataFrame(rows, columns=[*CELL, "metric", "split", "gain", "low", "high", "seeds"])
