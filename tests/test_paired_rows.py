"""Runs that are compared: the rows that they were scored on."""

import numpy as np
import pandas

import scored_runs
from thaw.core.files import read_json, write_json
from thaw.outputs.frame.prediction_files import PredictionFiles

GROUPS = np.repeat(np.arange(40), np.r_[100, 61, np.ones(38, int) + (np.arange(38) == 0)])


def test_runs_that_were_scored_on_other_rows_have_draws_of_these_rows(tmp_path):
    """What a run scores on resampled rows is its own, whichever run was read first."""
    runs = pandas.concat(
        [scored_runs.write_scores(tmp_path, {"first": [70.0]}, name, GROUPS) for name in ("d1", "d2")],
        ignore_index=True,
    )
    for draw, folder in enumerate(runs["folder"], 1):
        path = tmp_path / folder / "metrics.json"
        record = read_json(path)
        write_json(path, {"spec": record["spec"] | {"subset": {"rows": 50, "draw": draw, "scored": 100}}})
    both = PredictionFiles(tmp_path).by_row(runs, "accuracy", "test")
    alone = PredictionFiles(tmp_path).by_row(runs[1:], "accuracy", "test")
    assert np.array_equal(both[1], alone[0], equal_nan=True)
    assert abs(np.nanmean(both, axis=1) - [0.7, 0.7]).max() < 0.15
