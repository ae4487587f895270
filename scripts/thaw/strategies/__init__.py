"""Strategies: the words of a phase (selectors, schedules) turned into parameter groups and rates."""
