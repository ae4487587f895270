"""How many seeds statements need, whatever the scores are."""

FEWEST_OF_INTERVAL = 3  # with fewer seeds an interval says nothing of seeds: it is of the test rows alone
FEWEST_OF_RULES = 5  # a rule chooses in one; the best strategy is looked for in half of the others, scored in the rest
