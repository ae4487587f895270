"""How many seeds statements need, whatever the scores are."""

FEWEST_OF_INTERVAL = 3  # with fewer seeds an interval says nothing of seeds: it is of the test rows alone
