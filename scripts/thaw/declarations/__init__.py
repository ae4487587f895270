"""What each kind is: types of task, heads, probes, outputs. Neither torch nor pandas is imported."""
