"""The results of an experiment as frames: one row a run, aggregated, with flags and what is missing."""
