"""What scores say: intervals, tests, effect sizes, thresholds."""
