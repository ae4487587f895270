"""A table of parameter counts: embeddings, each layer and pooler of an encoder."""

from thaw.core import layout
from thaw.encoders.parameter_counts import parameter_counts
from thaw.outputs import wording
from thaw.outputs.tables.table_model import Group, TextTable, text_row, text_table

HEADER = "encoder layers embeddings layer pooler total"
TITLES = ["Layers", "Embeddings", "Per layer", "Pooler", "Total", "Share of a layer, %"]
NOTE = (
    "Counted in the pretrained weights. Per layer: mean over layers; a final norm counts with the last layer. The "
    "pooler is trained only with a head that uses it; –: no pooler."
)


def build(data, spec: dict) -> TextTable:
    """Return the parameters of the runs' encoders by component, a line for each (Lee et al. 2019, section 2)."""
    rows, lines, labels = [], [], spec["labels"]
    for name in data.runs.loc[data.runs["kind"] == "run", "encoder"].drop_duplicates():
        counts = parameter_counts(data.results / layout.folder("fetch", {"encoder": name}))
        layer = counts.in_layers / max(1, counts.layers)
        total = counts.embeddings + counts.in_layers + counts.pooler
        cells = [
            str(counts.layers),
            wording.count(counts.embeddings),
            wording.count(layer),
            wording.count(counts.pooler) if counts.pooler else wording.DASH,
            wording.count(total),
            f"{100 * layer / total:.1f}",
        ]
        rows.append(text_row(wording.label(labels, "encoders", name), cells))
        lines.append([name, counts.layers, counts.embeddings, f"{layer:.1f}", counts.pooler, total])
    return text_table(spec, TITLES, [Group("", [], rows)], [NOTE], HEADER, lines, of="Encoder")
