"""A table of parameter counts: embeddings, each layer and pooler of an encoder."""

from thaw.declarations.output_kind import OutputKind

TABLES = {
    "parameter_table": OutputKind(
        "thaw.papers.parameters:build",
        "how many parameters of each encoder are in its embeddings, a layer and its pooler",
    ),
}


from thaw.core import layout
from thaw.encoders.parameter_counts import parameter_counts
from thaw.outputs.render.typed_table import Cell, Group, Row, Table, said
from thaw.words import wording

TITLES = ["Layers", "Embeddings", "Per layer", "Pooler", "Total", "Share of a layer, %"]
NOTE = (
    "Counted in the pretrained weights. Per layer: mean over layers; a final norm counts with the last layer. The "
    "pooler is trained only with a head that uses it; –: no pooler."
)


def build(data, spec: dict) -> Table:
    """Return the parameters of the runs' encoders by component, a line for each (Lee et al. 2019, section 2)."""
    rows = []
    for name in data.runs.loc[data.runs["kind"] == "run", "encoder"].drop_duplicates():
        counts = parameter_counts(data.results / layout.folder("fetch", {"encoder": name}))
        layer = counts.in_layers / max(1, counts.layers)
        total = counts.embeddings + counts.in_layers + counts.pooler
        record = {"encoder": name, "layers": counts.layers, "embeddings": counts.embeddings}
        record |= {"layer": layer, "pooler": counts.pooler, "total": total}
        cells = [Cell(value, "count") for value in list(record.values())[1:]]
        cells[3] = cells[3] if counts.pooler else said(wording.DASH)
        label = wording.label(spec["labels"], "encoders", name)
        rows.append(Row(label, [*cells, Cell(100 * layer / total)], [record]))
    return Table.of_spec(spec, TITLES, [Group("", rows)], [NOTE], of="Encoder")
