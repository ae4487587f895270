"""LoRA in all layers, and in the top two above states that are kept: against the tuned Trainer with PEFT."""

from .. import work
from ..options import Options
from ..texts import tasks
from .table import TUNED, compare


def measure(options: Options) -> dict:
    """Return times and scores of both, the Trainer in as many processes as Thaw has jobs."""
    strategies = {f"bench_lora_{top}": work.lora(top) for top in (work.LAYERS, 2)}
    peers = {"peft_side_by_side": TUNED["tuned_side_by_side"]}
    return compare("lora", tasks(options), options, strategies, peers) | {"numbers": {}}
