"""Scores of predicted numbers against gold ones: correlations, and the share of the variance that is explained."""

import math

import numpy as np


def pearson(gold, predicted) -> float:
    """Return Pearson's linear correlation; NaN where either side is constant."""
    from scipy.stats import pearsonr

    return float(pearsonr(gold, predicted).statistic) if varies(gold) and varies(predicted) else math.nan


def spearman(gold, predicted) -> float:
    """Return Spearman's rank correlation, ties at their mean rank; NaN where either side is constant."""
    from scipy.stats import spearmanr

    return float(spearmanr(gold, predicted).statistic) if varies(gold) and varies(predicted) else math.nan


def r2(gold, predicted) -> float:
    """Return the coefficient of determination: 1 less the squared errors' share of the squared deviations of gold.

    It is 1 for no error, 0 for errors as large as those of the mean, and below 0 for larger ones. NaN where gold is
    constant.
    """
    gold, predicted = np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if not varies(gold):
        return math.nan
    return float(1 - np.square(gold - predicted).sum() / np.square(gold - gold.mean()).sum())


def varies(values) -> bool:
    """Return whether finite values differ by more than rounding: a correlation with less is noise."""
    values = np.asarray(values, dtype=np.float64)
    spread = np.ptp(values) if len(values) > 1 else 0.0
    return bool(np.isfinite(values).all() and spread > 1e-9 * max(1.0, np.abs(values).max(initial=0)))
