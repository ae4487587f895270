"""(d) Training steps in fp32, in which Thaw computes by default."""

from ..options import Options
from . import steps


def measure(options: Options) -> dict:
    """Return what the part `steps` returns; of its gains none has a goal here."""
    found = steps.compare("steps_fp32", options, "fp32")
    numbers = {key.replace("step_", "step_fp32_"): found["numbers"][key] for key in found["numbers"] if "matmul" in key}
    return found | {"numbers": numbers}
