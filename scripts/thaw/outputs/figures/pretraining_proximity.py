"""Figure: how near a task is to what an encoder was pretrained on, beside what thawing the encoder gains on it."""

from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.figures.probe_curves import PRETRAINED, read, run_key
from thaw.outputs.frame.paired_differences import Contrasts
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.runs_frame import CELL, head_alone
from thaw.statistics.bootstrap import interval

# by kind of probe: the score of the pretrained encoder that tells how near, and the axis
MEASURES = {
    "masked_loss": ("before", "Loss at masked tokens, nats"),
    "next_sentence_loss": ("before", "Loss of next sentences, nats"),
    "logme": ("logme", "LogME of the last layer, nats"),
}
PLACE, FROZEN = CELL[:3], CELL[3:]


def gain_figure(paths: list[Path], runs, spec: dict, answers: PredictionFiles, prefix) -> None:
    """Draw for each measure of nearness the gain of thawing against it, a point for each task.

    Args: the metrics.json of probes; runs as `read_runs` gives them; spec as step `figure` gets it, with `whole`, the
    strategy that trains everything; the answers of the runs. Raises UserError where no task has both.
    """
    from matplotlib.lines import Line2D

    found = nearness(read(paths)).merge(gains(runs, spec["whole"], answers), on=PLACE)
    if found.empty:
        raise UserError(
            f"a gain_figure needs runs of {spec['whole']} and of a strategy that trains the head alone, with as many "
            "seeds, and a measure that the encoder has: logme, or what it was pretrained with"
        )
    panels = list(found.groupby([name for name in found if name in ("measure", *PLACE[1:], *FROZEN)], sort=False))
    marks = figure_style.marks(found["task"])
    several = [name for name in (*PLACE[1:], *FROZEN[:2]) if found[name].nunique() > 1]
    with figure_style.panels([_title(rows.iloc[0], spec["labels"], several) for _, rows in panels]) as (figure, axes):
        for axis, (_, rows) in zip(axes, panels, strict=True):
            for row in rows.itertuples():
                colour, marker = marks[row.task]
                bars = {"xerr": [[row.near - row.near_low], [row.near_high - row.near]]}
                bars["yerr"] = [[row.gain - row.low], [row.high - row.gain]]
                axis.errorbar(row.near, row.gain, **bars, color=colour, marker=marker, elinewidth=0.9, zorder=4)
            axis.axhline(0, color=figure_style.GREY, linewidth=0.7)
            axis.set_xlabel(MEASURES[rows["measure"].iloc[0]][1])
            axis.set_ylabel("Gain of thawing, points")
            axis.margins(x=0.15)
        tasks = spec["labels"].get("tasks", {})
        figure_style.legend(
            figure,
            [
                Line2D([], [], color=c, marker=m, linestyle="none", label=wording.task_name(tasks, task))
                for task, (c, m) in marks.items()
            ],
        )
        figure_style.save(figure, prefix)
    write_text(f"{prefix}.csv", found.round(4).to_csv(index=False, lineterminator="\n"))


def nearness(records: list[dict]):
    """Return a row for each task, encoder and measure: what it was before any run, mean, low and high over seeds."""
    import pandas

    rows = []
    for record in records:
        of, measure = record["spec"]["of"], record["spec"]["probe"]["kind"]
        if measure == "logme" and run_key(of) != PRETRAINED:
            continue
        ends = [end for end in record["layers"] if end["layer"] == record["spec"]["layers"]]
        for end in ends:
            (scores,) = end["scores"].values()
            rows.append({name: of[name] for name in PLACE} | {"measure": measure, "near": scores[MEASURES[measure][0]]})
    table = pandas.DataFrame(rows, columns=[*PLACE, "measure", "near"])
    groups = table.groupby([*PLACE, "measure"], sort=False)["near"]
    return groups.agg(near="mean", near_low="min", near_high="max").reset_index()


def gains(runs, whole: str, answers: PredictionFiles):
    """Return a row for each task and strategy that trains the head alone: what training everything gains over it.

    `gain`, in points of the main metric on the task's first test split, is the difference of means over the seeds that
    both have; `low` and `high` bound its 95 % interval, by a bootstrap over seeds and examples.
    """
    import pandas

    contrasts, rows = Contrasts(runs, "test", answers), []
    tested = contrasts.shown
    tested = tested[tested["split"] == tested.groupby("task")["split"].transform("first")]
    for (*cell, metric, split), _ in head_alone(tested).groupby([*CELL, "metric", "split"], sort=False):
        contrast = contrasts.between((*cell[:4], whole, "base"), tuple(cell), split)
        if contrast:
            found = interval(contrast.mean, contrast.draws)
            told = {"metric": metric, "split": split, "gain": found.value, "low": found.low, "high": found.high}
            rows.append(dict(zip(CELL, cell, strict=True)) | told | {"seeds": len(contrast.differences)})
    return pandas.DataFrame(rows, columns=[*CELL, "metric", "split", "gain", "low", "high", "seeds"])


def _title(row, labels: dict, several: list[str]) -> str:
    """Return a panel's title: what differs between panels beside the measure, on its axis."""
    names = {"strategy": "strategies", "encoder": "encoders", "head": "heads", "subset": "subsets"}
    return ", ".join(labels.get(names[name], {}).get(row[name], row[name]) for name in several)
