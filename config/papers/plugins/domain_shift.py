"""Figure: score against the divergence of words, a point for each domain that was trained on and scored."""

from thaw.declarations import output_options as options
from thaw.declarations.output_kind import OF_PROBES, OutputKind

FIGURES = {
    "domain_figure": OutputKind(
        "thaw.papers.domain_shift:build",
        "divergence of words against score, a panel for each task, a point for each domain that was trained on and "
        "scored",
        options.SplitOptions,
        **OF_PROBES,
    ),
}


from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame.probe_frame import PROBED, Names, ProbeRecord, run_names
from thaw.words import wording

PANEL = [*PROBED, "probe"]


def build(data, spec: dict) -> panels.Figure:
    """Return the last layer's scores against divergence, a panel for each task and encoder; the CSV has all layers."""
    frame = points(data.probes, spec["split"])
    names = Names(spec, frame, run_names(data.probes, spec["labels"]))
    last = frame[frame["layer"] == frame.groupby(["task", "encoder"])["layer"].transform("max")]
    marks = figure_style.marks(last["tested"])

    def draw(axis, cell, rows) -> None:
        for row in rows.itertuples():
            colour, marker = marks[row.tested]
            face = colour if row.trained == row.tested else "white"
            axis.plot(row.divergence, row.score, marker, color=colour, markerfacecolor=face, zorder=4)
            axis.vlines(row.divergence, row.low, row.high, color=colour, linewidth=0.9)
        axis.set_xlabel("Word divergence, bits")
        axis.set_ylabel(f"{wording.metric_name(spec['labels'], rows['measure'].iloc[0])} × 100")

    def title(cell: dict) -> str:
        return "\n".join(names.title_words(cell, *PROBED[1:]) + names.probe_if_several(cell, *PROBED))

    legend = [panels.entry(f"scored on {domain}", mark, linestyle="none") for domain, mark in marks.items()]
    legend.append(panels.hollow_entry("fitted to another domain, or to all"))
    return panels.compose(panels.grouped(last, PANEL, title, draw), frame, legend)


def points(records: list[ProbeRecord], split: str):
    """Return a row for each pair of domains and layer: divergence and score x 100, means over seeds, low and high.

    split: "test" (the first of a task) or "validation".
    """
    import pandas

    rows = []
    for record in records:
        name = record.cell | {"measure": record.task["metrics"][0]}
        for end in record.value("layers"):
            cells = [cell for cell in end["cells"] if cell["split"] == record.split(split)]
            rows += [name | cell | {"layer": end["layer"]} for cell in cells]
    keys = [*name, "split", "layer", "trained", "tested"]
    groups = pandas.DataFrame(rows).astype({"score": float}).groupby(keys, sort=False)
    frame = groups["score"].agg(["mean", "min", "max", "count"]) * [100, 100, 100, 1]
    frame.columns = ["score", "low", "high", "seeds"]
    frame.insert(0, "divergence", groups["divergence"].mean())
    return frame.reset_index()
