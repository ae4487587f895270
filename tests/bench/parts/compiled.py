"""Full fine-tuning by the tuned Trainer with torch.compile, compiling included, next to the same without it."""

from .. import rivals, work
from ..options import Options
from ..texts import tasks
from .table import compare


def measure(options: Options) -> dict:
    """Return times and scores of Thaw and of both, in one process."""
    peers = {recipe: lambda *job, recipe=recipe: rivals.trainer(recipe, *job) for recipe in ("tuned", "compiled")}
    return compare("compiled", tasks(options)[:1], options, {work.FULL: work.full()}, peers) | {"numbers": {}}
