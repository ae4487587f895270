"""What a job costs: operations by our own formulas, seconds by part, peak memory."""
