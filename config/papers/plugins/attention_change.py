"""Figure: how alike the attention of each head is before and after adaptation, a grid of layers and heads."""

from thaw.declarations.output_kind import OF_PROBES, OutputKind

FIGURES = {
    "attention_figure": OutputKind(
        "thaw.papers.attention_change:build",
        "how alike the attention of each head is before and after adaptation, a grid of layers and heads",
        **OF_PROBES,
    ),
}


from thaw.core.errors import UserError
from thaw.outputs.figures import panels
from thaw.outputs.frame.probe_frame import BETWEEN_SEEDS, PRETRAINED, PROBED, Names, ProbeRecord, run_names

GRID = [*PROBED, "probe", "against"]


def build(data, spec: dict) -> panels.Figure:
    """Return a grid for each task and strategy, and to its right that of two seeds; colours have one scale."""
    maps = heads(data.probes)
    names = Names(spec, maps, run_names(data.probes, spec["labels"]))
    low = min(maps["cosine"].min(), 0.99)

    def title(cell: dict) -> str:
        words = ", ".join(names.title_words(cell, "subset", "encoder") + names.probe_if_several(cell, *PROBED))
        against = "two seeds" if cell["against"] == BETWEEN_SEEDS else "with pretrained"
        return f"{words}\n{names.of('run', cell['run'])}\n{against}"

    def draw(axis, cell, rows) -> None:
        panels.head_grid(axis, rows, "cosine", vmin=low, vmax=1.0)

    return panels.compose(
        panels.grouped(maps, GRID, title, draw), maps, wide=2, colours="Cosine of maps; 1: no change", digits=6
    )


def heads(records: list[ProbeRecord]):
    """Return a row for each run, layer and head: the mean cosine over seeds, with pretrained and between two seeds."""
    import pandas

    rows = []
    for record in records:
        for end in record.value("layers"):
            for name, values in end["heads"].items():
                common = record.cell | {"against": PRETRAINED if name == record.value("main") else BETWEEN_SEEDS}
                rows += [common | {"layer": end["layer"], "head": n, "cosine": v} for n, v in enumerate(values)]
    if not rows:
        raise UserError("no attention maps were compared")
    table = pandas.DataFrame(rows).astype({"cosine": float})
    return table.groupby([*GRID, "layer", "head"], sort=False)["cosine"].mean().reset_index()
