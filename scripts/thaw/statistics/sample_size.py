"""How many seeds and rows would decide what is undecided."""

from dataclasses import dataclass

MOST_SEEDS = 100  # beyond these it is the test set that is too small


@dataclass(frozen=True)
class Needed:
    """How many seeds more, and how many test rows in all; rows is None where those that are there are enough."""

    seeds: int
    rows: int | None
