"""The one place that compares strategies: from validation results and costs to an answer. Formulas: `decide.py`."""
