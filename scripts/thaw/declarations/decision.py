"""How many seeds a decision needs, whatever the scores are: known before anything runs."""

from math import ceil, log2

ALPHA = 0.05
# a sign-flip test over n seeds cannot go below 2 / 2^n, which is above 0.05 with five
FEWEST_SEEDS = ceil(log2(2 / ALPHA))
FEWEST_OF_INTERVAL = 3  # with fewer seeds an interval says nothing of seeds: it is of the test rows alone
FEWEST_OF_RULES = 5  # a rule chooses in one; the best strategy is looked for in half of the others, scored in the rest
