"""How many seeds a decision needs, whatever the scores are: known before anything runs."""

from math import ceil, log2

ALPHA = 0.05


def fewest_seeds(families: int = 1) -> int:
    """Return with how many seeds a sign-flip test can decide: its p cannot go below 2 / 2^n.

    Args: families of tests over seeds of their own, which share the error.
    """
    return ceil(log2(2 * families / ALPHA))


FEWEST_SEEDS = fewest_seeds()
FEWEST_OF_INTERVAL = 3  # with fewer seeds an interval says nothing of seeds: it is of the test rows alone
FEWEST_OF_RULES = 5  # a rule chooses in one; the best strategy is looked for in half of the others, scored in the rest
