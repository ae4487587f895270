"""A table of parameters: how many of an encoder's are in its embeddings, in each layer and in its pooler."""

from thaw.encoders.parameter_counts import parameter_counts
from thaw.outputs import wording
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table

HEADER = "encoder layers embeddings layer pooler total"
TITLES = ["Layers", "Embeddings", "A layer", "Pooler", "All", "A layer's share, %"]
NOTE = (
    "Counted in the pretrained weights. A layer: mean over layers; a final norm belongs to the last one. A pooler "
    "trains with the head, and only where a head reads it; an encoder without one has a dash."
)


def build(data, spec: dict) -> TextTable:
    """Return the parameters of the runs' encoders by component, a line for each (Lee et al. 2019, section 2)."""
    rows, lines, labels = [], [], spec["labels"].get("encoders", {})
    for name in data.runs.loc[data.runs["kind"] == "run", "encoder"].drop_duplicates():
        found = parameter_counts(data.results / "encoders" / name)
        layer = found.in_layers / max(1, found.layers)
        total = found.embeddings + found.in_layers + found.pooler
        cells = [
            str(found.layers),
            wording.count(found.embeddings),
            wording.count(layer),
            wording.count(found.pooler) if found.pooler else wording.DASH,
            wording.count(total),
            f"{100 * layer / total:.1f}",
        ]
        rows.append(Row({}, labels.get(name, name), [TextCell(cell) for cell in cells]))
        lines.append([name, found.layers, found.embeddings, f"{layer:.1f}", found.pooler, total])
    return text_table(spec, TITLES, [Group("", [], rows)], [NOTE], HEADER, lines, of="Encoder")
