"""Training: phase after phase of one run, each resumed from its boundary."""
