"""Full fine-tuning by the tuned Trainer with torch.compile, compiling included, next to the same without it."""

from functools import partial

from .. import rivals, work
from ..options import Options
from ..texts import tasks
from .table import TUNED, compare


def measure(options: Options) -> dict:
    """Return times and scores of Thaw and of both, in one process."""
    peers = {"tuned": TUNED["tuned"], "compiled": partial(rivals.trainer, "compiled")}
    return compare("compiled", tasks(options)[:1], options, {work.FULL: work.full()}, peers) | {"numbers": {}}
