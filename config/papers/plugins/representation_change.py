"""Figure: how much runs changed of each layer, and how far two seeds are from each other."""

from thaw.declarations.output_kind import OF_PROBES, OutputKind

FIGURES = {
    "change_figure": OutputKind(
        "thaw.papers.representation_change:build",
        "how far each layer of an adapted encoder is from the pretrained one, and two seeds from each other",
        **OF_PROBES,
    ),
}


from thaw.core.errors import UserError
from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame.probe_frame import BETWEEN_SEEDS, PRETRAINED, Names, ProbeRecord, run_names

# labels of the axes
MEASURES = {
    "cka": "CKA; 1: no change",
    "rsa": "RSA; 1: no change",
    "svcca": "SVCCA; 1: no change",
    "attention_similarity": "Cosine; 1: no change",
    "weight_distance": "Distance, share of the norm",
}
CHANGE = ["task", "subset", "encoder", "probe", "run", "against", "measure", "layer"]
PANEL = ["task", "subset", "encoder", "probe"]
SEEDS = panels.REFERENCE | {"linewidth": 1.0}  # the look of what compares two seeds


def build(data, spec: dict) -> panels.Figure:
    """Return each measure by layer, a panel per task and probe, a line per strategy.

    Solid lines compare with the pretrained encoder, broken lines two seeds of the same strategy; bands are the range
    over seeds.
    """
    frame, runs = changes(data.probes), run_names(data.probes, spec["labels"])
    names, marks = Names(spec, frame, runs), figure_style.marks(runs)

    def draw(axis, cell, rows) -> None:
        for (run, against), part in rows.groupby(["run", "against"], sort=False):
            colour, marker = marks[run]
            whole = against == PRETRAINED
            look = {"marker": marker} if whole else SEEDS | {"color": colour}
            axis.plot(part["layer"], part["mean"], zorder=4 if whole else 3, **({"color": colour} | look))
            axis.fill_between(part["layer"], part["low"], part["high"], color=colour, alpha=0.15, linewidth=0)
        measure = rows["measure"].iloc[0]
        axis.set_ylabel(MEASURES[measure])
        panels.layer_axis(axis, int(rows["layer"].max()))
        if measure == "weight_distance":
            axis.set_ylim(bottom=0)

    def title(cell: dict) -> str:
        words = [names.of("probe", cell["probe"]), *names.several(cell, "encoder", "subset")]
        return f"{names.of('task', cell['task'])}\n{', '.join(words)}"

    drawn = panels.grouped(frame, PANEL, title, draw)
    legend = [panels.entry(f"{runs[run]}, with pretrained", mark) for run, mark in marks.items()]
    legend.append(panels.entry("Two seeds of the strategy, in its colour", **SEEDS))
    return panels.compose(drawn, frame, legend + panels.band_entry(frame, deviation=False), digits=6)


def changes(records: list[ProbeRecord]):
    """Return a row for each run, layer and what it is compared with: mean, low, high and number of seeds.

    Low and high are the range. Raises UserError where nothing was measured.
    """
    import pandas

    rows = []
    for record in records:
        kind = record.value("main")
        for end in record.value("layers"):
            (values,) = end["scores"].values()
            common = {**record.cell, "measure": kind, "layer": end["layer"]}
            for against, name in ((PRETRAINED, kind), (BETWEEN_SEEDS, BETWEEN_SEEDS)):
                rows.append(common | {"against": against, "value": values[name]})
    if not rows:
        raise UserError("nothing was compared: no encoder of this experiment has what these probes compare")
    groups = pandas.DataFrame(rows).astype({"value": float}).groupby(CHANGE, sort=False)["value"]
    return groups.agg(mean="mean", low="min", high="max", seeds="count").reset_index()
