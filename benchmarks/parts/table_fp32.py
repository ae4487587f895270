"""(a) again with the defaults of both sides, which compute in fp32, and Thaw's with its default threads of a job."""

from dataclasses import replace

from thaw.schema.experiment import ComputeConfig

from .. import rivals, work
from ..options import Options
from ..texts import tasks
from .table import Sides, compare

DEFAULTS: Sides = {"default": lambda *job: rivals.trainer("default", *job)}


def measure(options: Options) -> dict:
    """Return the whole table's times on both sides, its rows one by one, and the scores."""
    strategies = work.in_fp32(work.table(work.LAYERS))
    used = {"threads": min(ComputeConfig().threads, options.cores)}
    options = replace(options, **used)
    found = compare("table_fp32", tasks(options), options, strategies, DEFAULTS, store={})
    seconds = found["seconds"]
    return found | {"used": used, "numbers": {"table_vs_trainer_default": seconds["default"] / seconds["ours"]}}
