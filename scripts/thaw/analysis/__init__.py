"""Analysis: metrics, baselines and cost."""
