"""What is behind the scores of a report: the files of runs, errors by label, examples."""
