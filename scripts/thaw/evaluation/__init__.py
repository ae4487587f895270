"""What a run scored: metrics, its result files, baselines, predictions from elsewhere, ensembles."""
