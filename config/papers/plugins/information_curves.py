"""Figure: mutual information of layers with the labels or with the last layer, one panel per estimator."""

from pydantic import Field

from thaw.declarations.output_kind import OF_PROBES, OutputKind
from thaw.declarations.output_options import SplitOptions


class LastLayerOptions(SplitOptions):
    """Mutual information by layer."""

    last: bool | None = Field(None, description="what a layer shares with the last one, not with labels")


FIGURES = {
    "information_figure": OutputKind(
        "thaw.papers.information_curves:build",
        "mutual information by layer: EDGE and k-means in panels of their own, with what shuffled labels give and what "
        "a held-out probe proves",
        LastLayerOptions,
        **OF_PROBES,
    ),
}


from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame.layer_values import estimates
from thaw.outputs.frame.printed_names import Names
from thaw.outputs.frame.probe_frame import ProbeRecord, over_seeds, run_names

ESTIMATORS = {"edge": "EDGE", "kmeans": "k-means"}
WITH_LAST = {"with_last": "binned, not absolute", "cka_with_last": "CKA"}
AXES = {"with_last": "Bits shared with the last layer", "cka_with_last": "CKA with the last layer"}
LINE = ["encoder", "run"]
PANEL = ["task", "subset", "probe", "estimator"]
PROVED = 2  # standard errors over rows, on both sides of the lower bound


def build(data, spec: dict) -> panels.Figure:
    """Return bits by layer: a panel for each task, probe and estimator, a line for each encoder that was probed."""
    last = bool(spec.get("last"))
    kinds = WITH_LAST if last else ESTIMATORS
    frame = points(data.probes, spec["split"], list(kinds))
    names = Names(spec, frame, run_names(data.probes, spec["labels"]))
    marks = panels.marks_of_lines(frame, LINE)

    def draw(axis, cell, rows) -> None:
        for line, part in rows.groupby(LINE, sort=False):
            _line(axis, part, *marks[line], last, len(marks) == 1)
        axis.set_ylabel(AXES.get(cell["estimator"], "Bits shared with the labels"))
        panels.layer_axis(axis, int(rows["layer"].max()))
        axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))

    def title(cell: dict) -> str:
        words = names.title_words(cell, "subset") + names.probe_if_several(cell, "estimator")
        return f"{', '.join(words)}: {kinds[cell['estimator']]}"

    drawn = panels.grouped(frame, PANEL, title, draw)
    legend = [
        panels.entry("; ".join([names.of("encoder", line.encoder), *names.several(line._asdict(), "run")]), mark)
        for line, mark in marks.items()
    ]
    return panels.compose(drawn, frame, legend if last else legend + _explained(), wide=2)


def _explained() -> list:
    """Return the legend entries of lower bound, shuffled labels and unreliable estimates."""
    look = {"color": figure_style.GREY, "linewidth": 1}
    return [
        panels.entry("lower bound of a held-out probe", linestyle=figure_style.BROKEN[0], **look),
        panels.entry("shuffled labels (subtracted)", linestyle=figure_style.BROKEN[1], **look),
        panels.hollow_entry("below the lower bound, or noise"),
    ]


def points(records: list[ProbeRecord], split: str, kinds: list[str]):
    """Return a row for each line, layer and estimator: means over seeds, and a flag.

    Further columns: low and high over seeds (mean ± standard deviation from three seeds on, else the range), lowest and
    highest of the sweep. The flag is `below bound` if the estimate is below the lower bound, `noise` if it is not above
    that of shuffled labels. split: "test" (the first of a task) or "validation".
    """
    import pandas

    keys = [*PANEL, *LINE, "split", "layer"]
    table = pandas.DataFrame(estimates(records, split, kinds))
    means = table.groupby(keys, sort=False).mean().rename(columns={"value": "bits"})
    means = means.join(over_seeds(table, keys).set_index(keys)[["low", "high", "seeds"]])
    means["flag"] = ""
    labelled = means.index.get_level_values("estimator").isin(list(ESTIMATORS))
    means.loc[labelled & (means["bits"] < means["bound"]), "flag"] = "below bound"
    means.loc[labelled & (means["bits"] <= means["noise"]), "flag"] = "noise"
    return means.reset_index()


def _line(axis, part, colour, marker, last: bool, alone: bool) -> None:
    """Draw one line with its sweep, its seeds, shuffled labels and the lower bound."""
    layers = part["layer"]
    if "lowest" in part and part["lowest"].notna().all():
        axis.fill_between(layers, part["lowest"], part["highest"], color=colour, alpha=0.15, linewidth=0)
    bars = panels.bars(part["bits"], part["low"], part["high"])
    axis.errorbar(layers, part["bits"], yerr=bars, color=colour, zorder=4, capsize=2, elinewidth=0.9)
    for flagged, face in ((part["flag"] != "", "white"), (part["flag"] == "", colour)):
        look = {"facecolor": face, "edgecolor": [colour], "marker": marker, "s": 26, "zorder": 5}
        axis.scatter(layers[flagged], part["bits"][flagged], **look)
    if not last:
        axis.plot(layers, part["shuffled"], color=colour, linestyle=figure_style.BROKEN[1], linewidth=1)
        error = PROVED * part["bound_error"]
        shade = "black" if alone else colour
        axis.plot(layers, part["bound"], color=shade, linestyle=figure_style.BROKEN[0], linewidth=1)
        axis.fill_between(layers, part["bound"] - error, part["bound"] + error, color=shade, alpha=0.08, linewidth=0)
