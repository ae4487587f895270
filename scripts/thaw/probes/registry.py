"""What each kind of probe reads, which function it stands for, the name of its score, and how a probe is run."""

import math

from thaw.core import plugins
from thaw.core.errors import UserError
from thaw.probes.attention_similarity import attention_similarity
from thaw.probes.control import control
from thaw.probes.domain_divergence import domain_divergence
from thaw.probes.edge import edge
from thaw.probes.edge_reading import EdgeReading
from thaw.probes.encoder_comparison import EncoderComparison
from thaw.probes.head_importance import head_importance
from thaw.probes.linear_probe import linear
from thaw.probes.logme import logme
from thaw.probes.masked_losses import masked_loss, next_sentence_loss
from thaw.probes.mdl import mdl
from thaw.probes.mutual_information import mutual_information
from thaw.probes.reading import Reading
from thaw.probes.similarity import cka, rsa, svcca
from thaw.probes.structural import TreeReading, structural
from thaw.probes.weight_distance import weight_distance
from thaw.training.run_inputs import Inputs

# from what is read and a seed to rows of layers.csv, and for each layer what it scores
PROBES = {
    "linear": linear,
    "control": control,
    "mdl": mdl,
    "mutual_information": mutual_information,
    "surface": linear,
    "edge": edge,
    "structural": structural,
    "domain_divergence": domain_divergence,
    "logme": logme,
    "head_importance": head_importance,
}
READINGS = {"edge": EdgeReading, "structural": TreeReading}  # what is read, where it is no Reading

# the score that stands for a layer, where it is not the task's first metric
MEASURES = {"control": "selectivity", "mdl": "compression", "mutual_information": "bound", "logme": "logme"}
MEASURES |= {"edge": EdgeReading.main, "structural": TreeReading.main, "domain_divergence": "correlation"}
MEASURES |= {"head_importance": "importance"}

# from a Comparison to the same
COMPARED = {
    "cka": cka,
    "rsa": rsa,
    "svcca": svcca,
    "attention_similarity": attention_similarity,
    "weight_distance": weight_distance,
    "masked_loss": masked_loss,
    "next_sentence_loss": next_sentence_loss,
}


def measure(reading: Reading | EdgeReading | TreeReading) -> str:
    """Return the name of the score that stands for a layer."""
    kind, metric = reading.entry.kind, reading.task["metrics"][0]
    return (
        plugins.parse_plugin(kind).stated("measure", metric) if plugins.is_plugin(kind) else MEASURES.get(kind, metric)
    )


def fitted(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return the rows and ends of a reading's probe; what one's own returns must look like what ours return."""
    kind = reading.entry.kind
    found = plugins.resolve(kind, PROBES)(reading, seed)
    if plugins.is_plugin(kind) and not _looks_right(found, reading, seed):
        part = plugins.parse_plugin(kind)
        raise UserError(
            f"{part.place}: {kind} must return two lists of dicts, rows for layers.csv and for each layer that is read "
            "one end with its layer, the seed, and scores {split: {measure: number}} that have "
            f"{measure(reading)!r}"
        )
    return found


def _looks_right(found, reading: Reading, seed: int) -> bool:
    """Tell whether a pair of rows and ends is what `run` writes: one end a layer, with a number for its measure."""
    try:
        rows, ends = found
        scores = [score for end in ends for score in end["scores"].values()]
        told = [score[measure(reading)] for score in scores]
        layers = [(end["layer"], end["seed"]) for end in ends] == [(number, seed) for number in reading.numbers]
        return layers and all(isinstance(row, dict) for row in rows) and all(map(_is_number, told)) and bool(told)
    except (TypeError, ValueError, KeyError, AttributeError):
        return False


def _is_number(value) -> bool:
    """Tell whether a value is a number that JSON keeps, or None."""
    return value is None or (isinstance(value, int | float) and math.isfinite(value))


def run(spec: dict, pretrained: Inputs, adapted: dict[int, Inputs]) -> tuple[list[dict], dict]:
    """Return the rows of layers.csv, and what metrics.json says beside the spec.

    Args: spec of a probe; what is read of the pretrained encoder; by seed, what runs made of it. Where there are runs
    they are what is probed, each with its own seed.
    """
    kind = spec["probe"]["kind"]
    if kind in COMPARED:
        rows, layers = COMPARED[kind](EncoderComparison(spec, pretrained, adapted))
        return rows, {"main": kind, "layers": layers, "majority": {}}
    rows, layers, read = [], [], READINGS.get(kind, Reading)
    reading = None if adapted else read(spec, pretrained)
    for seed in spec["seeds"]:
        reading = read(spec, adapted[seed]) if adapted else reading
        more, ends = fitted(reading, seed)
        rows, layers = rows + more, layers + ends
    return rows, {"main": measure(reading), "layers": layers, "majority": reading.majority()}
