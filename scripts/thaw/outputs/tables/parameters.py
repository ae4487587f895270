"""A table of parameters: how many of an encoder's lie in its embeddings, in each layer and in its pooler."""

from thaw.core import layout
from thaw.encoders.loading import find_pooler
from thaw.encoders.transformers import Encoder
from thaw.outputs import wording
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table

HEADER = "encoder layers embeddings layer pooler total"
TITLES = ["Layers", "Embeddings", "A layer", "Pooler", "All", "A layer's share, %"]
NOTE = (
    "Counted in the pretrained weights. A layer: mean over layers; a final norm belongs to the last one. A pooler "
    "trains with the head, and only where a head reads it; an encoder without one has a dash."
)


def table(runs, spec: dict, answers: PredictionFiles) -> TextTable:
    """Return the parameters of the runs' encoders by component, a line for each (Lee et al. 2019, section 2).

    Args: runs as `read_runs` gives them; spec as step `table` gets it; where the results lie.
    """
    rows, lines, labels = [], [], spec["labels"].get("encoders", {})
    for name in runs.loc[runs["kind"] == "run", "encoder"].drop_duplicates():
        layers, embeddings, layer, pooler = counted(answers.results / layout.folder("fetch", {"encoder": name}))
        total = embeddings + layers * layer + pooler
        share = f"{100 * layer / total:.1f}"
        cells = [
            str(layers),
            wording.count(embeddings),
            wording.count(layer),
            wording.count(pooler) if pooler else wording.DASH,
        ]
        texts = [TextCell(cell) for cell in (*cells, wording.count(total), share)]
        rows.append(Row({}, labels.get(name, name), texts))
        lines.append([name, layers, embeddings, f"{layer:.1f}", pooler, f"{total:.0f}"])
    return text_table(spec, TITLES, [Group("", [], rows)], [NOTE], HEADER, lines, of="Encoder")


def counted(folder) -> tuple[int, int, float, int]:
    """Return an encoder's number of layers, and the parameters of embeddings, of a layer (mean) and of the pooler."""
    sizes = {
        name: sum(parameter.numel() for _, parameter in named)
        for name, named in Encoder.load(folder).components().items()
    }
    embeddings = sizes.pop("embeddings", 0)
    pooler = sum(tensor.numel() for tensor in find_pooler(folder).values())
    return len(sizes), embeddings, sum(sizes.values()) / max(1, len(sizes)), pooler
