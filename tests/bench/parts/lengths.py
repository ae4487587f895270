"""(a) again at sentence lengths 14, 64, 128 and 512: sentences of one label joined, every text of exactly that length.

The longer the texts, the fewer of them, so that each length has about as many tokens.
"""

from dataclasses import replace

from .. import work
from ..options import Options
from ..texts import joined, tasks
from .table import TUNED, compare

LENGTHS = (14, 64, 128, 512)
USUAL = 25  # tokens of a sentence of SST-2


def measure(options: Options) -> dict:
    """Return the table's times and rows at each length."""
    sentences, once = tasks(options)[0], replace(options, rounds=1)
    found, strategies = {}, work.table(work.LAYERS)
    for tokens in LENGTHS:
        rows = max(2 * work.BATCH, options.rows * USUAL // tokens)
        name = f"length_{tokens}"
        found[tokens] = compare(name, [joined(sentences, tokens, rows)], once, strategies, TUNED) | {
            "rows_of_train": rows
        }
    return {"numbers": {}, "lengths": found}
