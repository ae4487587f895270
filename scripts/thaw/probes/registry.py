"""Which function a probe's kind stands for, and the name of the score that its curve shows."""

from thaw.probes.control import control
from thaw.probes.linear import linear
from thaw.probes.mdl import mdl
from thaw.probes.reading import Reading

PROBES = {"linear": linear, "control": control, "mdl": mdl}


def measure(reading: Reading) -> str:
    """Return the name of the score that stands for a layer."""
    return {"control": "selectivity", "mdl": "compression"}.get(reading.entry.kind, reading.task["metrics"][0])
