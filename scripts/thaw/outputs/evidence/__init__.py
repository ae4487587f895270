"""What is behind the scores of a report: errors by label, learning curves, calibration, slices, examples."""
