"""What each kind of probe reads, which function it stands for, the name of its score, and how a probe is run."""

from thaw.probes.alike import cka, rsa, svcca
from thaw.probes.attention import attention_similarity
from thaw.probes.comparison import Comparison
from thaw.probes.control import control
from thaw.probes.distance import weight_distance
from thaw.probes.edge import edge
from thaw.probes.edges import EdgeReading
from thaw.probes.forgetting import masked_loss
from thaw.probes.linear import linear
from thaw.probes.mdl import mdl
from thaw.probes.mutual_information import mutual_information
from thaw.probes.reading import Reading
from thaw.probes.structural import TreeReading, structural
from thaw.training.inputs import Inputs

# from what is read and a seed to rows of layers.csv, and for each layer what it scores
PROBES = {
    "linear": linear,
    "control": control,
    "mdl": mdl,
    "mutual_information": mutual_information,
    "surface": linear,
    "edge": edge,
    "structural": structural,
}
READINGS = {"edge": EdgeReading, "structural": TreeReading}  # what is read, where it is no Reading
NAMES = {"control": "selectivity", "mdl": "compression", "mutual_information": "bound"}
NAMES |= {"edge": EdgeReading.main, "structural": TreeReading.main}

# from a Comparison to the same
COMPARED = {
    "cka": cka,
    "rsa": rsa,
    "svcca": svcca,
    "attention_similarity": attention_similarity,
    "weight_distance": weight_distance,
    "masked_loss": masked_loss,
}


def measure(reading: Reading | EdgeReading | TreeReading) -> str:
    """Return the name of the score that stands for a layer."""
    return NAMES.get(reading.entry.kind, reading.task["metrics"][0])


def run(spec: dict, pretrained: Inputs, adapted: dict[int, Inputs]) -> tuple[list[dict], dict]:
    """Return the rows of layers.csv, and what metrics.json says beside the spec.

    Args: spec of a probe; what is read of the pretrained encoder; by seed, what runs made of it. Where there are runs
    they are what is probed, each with its own seed.
    """
    kind = spec["probe"]["kind"]
    if kind in COMPARED:
        rows, layers = COMPARED[kind](Comparison(spec, pretrained, adapted))
        return rows, {"main": kind, "layers": layers, "majority": {}}
    rows, layers, read = [], [], READINGS.get(kind, Reading)
    reading = None if adapted else read(spec, pretrained)
    for seed in spec["seeds"]:
        reading = read(spec, adapted[seed]) if adapted else reading
        more, ends = PROBES[kind](reading, seed)
        rows, layers = rows + more, layers + ends
    return rows, {"main": measure(reading), "layers": layers, "majority": reading.majority()}
