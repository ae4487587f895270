"""Figure: what strategies lose by trained parameters, over tasks (Houlsby et al. 2019, figure 3)."""

from thaw.declarations import output_options as options
from thaw.declarations.output_kind import Addition, OutputKind, Requirement

FIGURES = {
    "quantile_figure": OutputKind(
        "thaw.papers.task_quantiles:build",
        "difference to full fine-tuning by trained parameters: median, 20th and 80th percentile over tasks",
        options.ReferenceSplitOptions,
        needs=(Requirement.FULL,),
        adds=(Addition.DRAWS,),
    ),
}


from functools import partial

from thaw.core.errors import UserError
from thaw.outputs import wording
from thaw.outputs.figures import figure_style, panels, strategy_panels
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.printed_names import Names

QUANTILES = {"low": 0.2, "mean": 0.5, "high": 0.8}  # of the paper
GROUP = ["subset", "encoder", "head"]


def build(data, spec: dict) -> panels.Figure:
    """Return the median over tasks of the score less the full model's, with the 20th and 80th percentile.

    One panel for each subset, encoder and head; a sweep is a line. Args: spec with `reference`, the strategy that
    trains everything. Raises UserError where no task has it and another strategy.
    """
    frame = differences(aggregate.summarise(data.runs, spec["split"], spec["order"]), spec["reference"])
    if frame.empty:
        raise UserError(f"a quantile_figure needs tasks with {spec['reference']} and another strategy")
    names, marks = Names(spec, frame), strategy_panels.marks_of(frame["strategy"].unique(), spec)
    drawn = []
    for _, rows in frame.groupby(GROUP, sort=False, dropna=False):
        title = ", ".join(names.several(rows.iloc[0], *GROUP)) or f"Tasks: {rows['tasks'].max()}"
        drawn.append(panels.Panel(title, partial(_points, rows=rows, marks=marks)))
    labels = spec["labels"]
    legend = [panels.entry(wording.label(labels, "strategies", name), mark) for name, mark in marks.items()]
    return panels.compose(drawn, frame, legend)


def differences(summary, whole: str):
    """Return for each group and point, but the full model, the quantiles over tasks of what it scores above that.

    Of several test splits of a task the mean counts.
    """
    fitted = summary[summary["fitted"] & summary["mean"].notna()]
    full = fitted[fitted["strategy"] == whole].set_index([*GROUP, "task", "split"])["mean"]
    fitted = fitted.merge(full.rename("whole").reset_index(), on=[*GROUP, "task", "split"])
    fitted = fitted.assign(difference=fitted["mean"] - fitted["whole"])
    others = fitted[(fitted["strategy"] != whole) & fitted["difference"].notna() & (fitted["parameters"] > 0)]
    point = [*GROUP, "strategy", "variant"]
    by_task = others.groupby([*point, "task"], sort=False, dropna=False)[["difference", "parameters"]].mean()
    groups = by_task.groupby(point, sort=False, dropna=False)
    table = groups["parameters"].mean().to_frame()
    for name, share in QUANTILES.items():
        table[name] = groups["difference"].quantile(share)
    return table.assign(tasks=groups.size()).reset_index()


def _points(axis, rows, marks: dict) -> None:
    """Draw each strategy: a line over its points, or one point, with bars between the percentiles."""
    for strategy, part in rows.sort_values("parameters").groupby("strategy", sort=False):
        colour, marker = marks[strategy]
        bars = panels.bars(part["mean"], part["low"], part["high"])
        axis.errorbar(
            part["parameters"], part["mean"], yerr=bars, color=colour, marker=marker, elinewidth=0.9, zorder=4
        )
    axis.axhline(0, color=figure_style.GREY, linewidth=0.7)
    panels.log_axis(axis, (1.0,))
    axis.set_xlabel("Trainable parameters (log scale)")
    axis.set_ylabel("Points above full fine-tuning")
