"""(d) Training steps in fp32, in which Thaw computes by default."""

from ..options import Options
from . import steps


def measure(options: Options) -> dict:
    """Return what the part `steps` returns; of its gains none has a goal here."""
    found = steps.compare("steps_fp32", options, "fp32")
    return found | {"numbers": {"step_fp32_vs_matmul": found["numbers"]["step_vs_matmul"]}}
