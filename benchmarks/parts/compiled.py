"""Full fine-tuning by the tuned Trainer with torch.compile, compiling included, next to the same without it."""

from dataclasses import replace
from functools import partial

from .. import rivals, work
from ..options import Options
from ..texts import tasks
from .table import TUNED, compare


def measure(options: Options) -> dict:
    """Return times and scores of Thaw and of both, in one process."""
    peers = {"tuned": TUNED["tuned"], "compiled": partial(rivals.trainer, "compiled")}
    used = {"threads": options.cores}  # as the Trainer's: nothing else is to be computed
    found = compare("compiled", tasks(options)[:1], replace(options, **used), {work.FULL: work.full()}, peers)
    return found | {"numbers": {}, "used": used}
