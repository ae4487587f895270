"""Whether the sides of the table score alike: its strategies with more seeds, scored on all rows of test; no seconds.

Other programs may run next to it.
"""

from dataclasses import replace

from .. import work
from ..options import Options
from ..texts import tasks
from .table import TUNED, compare

SEEDS = 8
PEERS = ("tuned_side_by_side", "boundary_loop")


def measure(options: Options) -> dict:
    """Return the scores of all sides and whether they are equivalent."""
    used = {"seeds": SEEDS, "rounds": 1}
    eight, peers = replace(options, **used), {peer: TUNED[peer] for peer in PEERS}
    found = compare("quality", tasks(eight, whole_test=True), eight, work.table(work.LAYERS), peers)
    return {"numbers": {}, "used": used} | {key: found[key] for key in ("cells", "quality", "passes")}
