"""A word of the tables of recommendations."""

TOO_FEW_SEEDS = "too few seeds"
