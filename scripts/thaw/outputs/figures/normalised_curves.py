"""Figure: scores by layer on a scale of their own for each task, pretrained and adapted side by side.

As in figure 1 of Peters et al. 2019: a panel for the pretrained encoder and for each strategy, a line for each task.
"""

from pathlib import Path

from thaw.core.files import write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.figures.probe_curves import points, read, run_names, ticks

SCALED = ("mean", "low", "high")


def normalised_figure(paths: list[Path], spec: dict, prefix) -> None:
    """Draw scores by layer, each task from 0, its lowest mean of all panels, to 1, its highest.

    Args: the metrics.json of probes; spec as step `figure` gets it. Raises UserError where there is no result.
    """
    from matplotlib.lines import Line2D

    records = read(paths)
    found = scaled(points(records, paths, spec["split"])[0], spec["labels"])
    runs = run_names(records, spec["labels"])
    found["panel"] = [_panel(row, runs, spec, found) for row in found.itertuples()]
    lines = list(dict.fromkeys(found["line"]))
    marks = figure_style.marks(lines)
    shown = [name for run in runs for name in dict.fromkeys(found.loc[found["run"] == run, "panel"])]
    with figure_style.panels(shown) as (figure, axes):
        for axis, name in zip(axes, shown, strict=True):
            for line, part in found[found["panel"] == name].groupby("line", sort=False):
                colour, marker = marks[line]
                axis.plot(part["layer"], part["scaled_mean"], color=colour, marker=marker, zorder=4)
                axis.fill_between(
                    part["layer"], part["scaled_low"], part["scaled_high"], color=colour, alpha=0.15, linewidth=0
                )
            axis.set_ylim(-0.1, 1.1)
            axis.set_xlabel("Layer; 0: embeddings")
            axis.set_xticks(ticks(int(found["layer"].max())))
            axis.set_ylabel("Score, lowest 0, highest 1")
        handles = [Line2D([], [], color=c, marker=m, label=line) for line, (c, m) in marks.items()]
        figure_style.legend(figure, handles)
        figure_style.save(figure, prefix)
    columns = [name for name in found.columns if name not in ("line", "panel")]
    write_text(f"{prefix}.csv", found[columns].round(4).to_csv(index=False, lineterminator="\n"))


def scaled(found, labels: dict):
    """Return the rows of `points` with `scaled_` columns, and the name of each one's line: its task and measure.

    A task is scaled over all its layers and encoders of one probe; where nothing differs, it is 0.
    """
    keys = [found[name] for name in ("task", "subset", "measure", "probe")]
    low = found.groupby(keys, sort=False)["mean"].transform("min")
    span = found.groupby(keys, sort=False)["mean"].transform("max") - low
    for name in SCALED:
        found[f"scaled_{name}"] = ((found[name] - low) / span.where(span > 0)).fillna(0.0)
    tasks = [wording.task_name(labels.get("tasks", {}), task) for task in found["task"]]
    found["line"] = [
        f"{task} ({wording.metric_name(labels, measure)})"
        for task, measure in zip(tasks, found["measure"], strict=True)
    ]
    return found


def _panel(row, runs: dict[str, str], spec: dict, found) -> str:
    """Return the name of the panel that a row stands in: what adapted the encoder, and what else differs."""
    told = [runs[row.run]]
    told += [spec["labels"].get("encoders", {}).get(row.encoder, row.encoder)] * (found["encoder"].nunique() > 1)
    told += [spec["probes"].get(row.probe, row.probe)] * (found["probe"].nunique() > 1)
    return "; ".join(told)
