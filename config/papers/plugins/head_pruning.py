"""Figure: importance of attention heads, and the score after removing heads."""

from thaw.declarations.output_kind import OF_PROBES, OutputKind

FIGURES = {
    "heads_figure": OutputKind(
        "thaw.papers.head_pruning:build",
        "importance of attention heads, and the score without those that matter least",
        **OF_PROBES,
    ),
}


from functools import partial

from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame.probe_frame import PROBED, Names, ProbeRecord, run_names
from thaw.words import wording

ORDERS = {"importance": "least important first", "random": "in random order"}
KEYS = [*PROBED, "probe"]


def build(data, spec: dict) -> panels.Figure:
    """Return for each task, encoder and probe a grid of heads, and the score by share of heads removed."""
    frame, marks = points(data.probes), figure_style.marks(ORDERS)
    names, drawn = Names(spec, frame, run_names(data.probes, spec["labels"])), []
    for key, part in frame.groupby(KEYS, sort=False):
        cell = dict(zip(KEYS, key, strict=True))
        title = ", ".join(names.title_words(cell, *PROBED[1:]) + names.probe_if_several(cell, *PROBED))
        for kind, rows in part.groupby("kind"):
            if kind == "head":
                drawn.append(panels.Panel(f"{title}\nimportance of heads", partial(_grid, rows=rows)))
            else:
                draw = partial(_curves, rows=rows, marks=marks, labels=spec["labels"])
                drawn.append(panels.Panel(f"{title}\nwithout heads", draw))
    legend = [panels.entry(f"heads removed {ORDERS[order]}", mark) for order, mark in marks.items()]
    removed = frame[frame["kind"] == "removed"]
    legend = [] if removed.empty else legend + panels.band_entry(removed, deviation=False)
    return panels.compose(drawn, frame, legend, wide=2)


def points(records: list[ProbeRecord]):
    """Return a row for each head (kind `head`) and for each share removed (`removed`): mean, low and high over seeds.

    The value of a head is its importance over the norm of its layer's, that of a share the score x 100.
    """
    import pandas

    rows = []
    for record in records:
        common = {name: record.cell[name] for name in KEYS} | {"measure": record.task["metrics"][0]}
        for end in record.value("layers"):
            own = common | {"kind": "head", "layer": end["layer"]}
            rows += [own | {"head": head, "value": value} for head, value in enumerate(end["heads"])]
            for entry in end.get("removed", []):
                score = None if entry["score"] is None else 100 * entry["score"]
                removed = {"kind": "removed", "order": entry["order"], "share": entry["share"], "value": score}
                rows.append(common | removed)
    table = pandas.DataFrame(rows).astype({"value": float})
    groups = table.groupby([name for name in table.columns if name != "value"], sort=False, dropna=False)["value"]
    return groups.agg(mean="mean", low="min", high="max", seeds="count").reset_index()


def _grid(axis, rows) -> None:
    panels.head_grid(axis, rows, "mean", vmin=0)
    axis.get_figure().colorbar(axis.images[-1], ax=axis, label="Importance, of its layer's norm")


def _curves(axis, rows, marks: dict, labels: dict) -> None:
    """Draw the score by share of heads removed, in both orders."""
    for order, part in rows.groupby("order", sort=False):
        panels.curve(axis, 100 * part["share"], part, marks[order])
    axis.set_xlabel("Heads removed, %")
    axis.set_ylabel(f"{wording.metric_name(labels, rows['measure'].iloc[0])} × 100, validation")
