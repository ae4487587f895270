"""Depths of thawing at lengths of 14, 64, 128 and 512 tokens: sentences of one label joined, each text of that length.

The longer the texts, the fewer of them, so that each length has about as many tokens.
"""

from dataclasses import replace

from .. import work
from ..options import Options
from ..texts import joined, tasks
from .table import TUNED, compare

LENGTHS = (14, 64, 128, 512)
PEERS = ("tuned_side_by_side", "boundary_loop")
USUAL = 25  # tokens of a sentence of SST-2


def measure(options: Options) -> dict:
    """Return the table's times and rows at each length."""
    used = {"rounds": 1, "seeds": 1}
    sentences, once = tasks(options)[0], replace(options, **used)
    found, peers = {}, {name: TUNED[name] for name in PEERS}
    for tokens in LENGTHS[: -1 if options.quick else None]:
        rows = max(2 * work.BATCH, options.rows * USUAL // tokens)
        name = f"length_{tokens}"
        text = joined(sentences, tokens, rows)
        found[tokens] = compare(name, [text], once, work.depths(), peers) | {"rows_of_train": rows}
    return {"numbers": {}, "used": used, "lengths": found}
