"""What scores say: intervals, tests, effect sizes, variance components, thresholds."""
