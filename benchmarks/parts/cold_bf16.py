"""The most that workers which stay could gain where all is computed in bf16."""

from .. import work
from ..options import Options
from . import cold


def measure(options: Options) -> dict:
    """Return what the part `cold` returns."""
    return cold.compare("cold_bf16", options, work.table(work.LAYERS))
