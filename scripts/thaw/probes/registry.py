"""Which function a probe's kind stands for, and the name of the score that its curve shows."""

from thaw.probes.control import control
from thaw.probes.linear import linear
from thaw.probes.mdl import mdl
from thaw.probes.mutual_information import mutual_information
from thaw.probes.reading import Reading

PROBES = {"linear": linear, "control": control, "mdl": mdl, "mutual_information": mutual_information}

NAMES = {"control": "selectivity", "mdl": "compression", "mutual_information": "bound"}


def measure(reading: Reading) -> str:
    """Return the name of the score that stands for a layer."""
    return NAMES.get(reading.entry.kind, reading.task["metrics"][0])
