"""Full fine-tuning and the last two layers by rivals with torch.compile, and by the same without; compiling counts."""

from dataclasses import replace
from functools import partial

from .. import rivals, work
from ..options import Options
from ..texts import tasks
from .table import TUNED, compare

PEERS = {
    "tuned": TUNED["tuned"],
    "compiled": partial(rivals.trainer, "compiled"),
    "boundary_loop": rivals.boundary_loops,
    "compiled_loop": partial(rivals.boundary_loops, compiled=True),
}
STRATEGIES = {work.FULL: work.full(), "bench_top_2": work.top(2)}


def measure(options: Options) -> dict:
    """Return times and scores of Thaw and of the others, each in one process with all cores."""
    used = {"threads": options.cores}  # as the Trainer's: nothing else is to be computed
    found = compare("compiled", tasks(options)[:1], replace(options, **used), STRATEGIES, PEERS)
    return found | {"numbers": {}, "used": used}
