"""Undefined scores are named where they are left out."""

import pandas

from thaw.outputs.frame.undefined import undefined_note

LABELS = {"strategies": {"full": "Full"}, "tasks": {"sts": "STS"}}


def frame(*values) -> pandas.DataFrame:
    """Return runs of one strategy, a seed for each score on test; None is undefined."""
    row = {"kind": "run", "main": True, "missing": "", "role": "test", "strategy": "full", "variant": "base"}
    return pandas.DataFrame([row | {"task": "sts", "seed": n, "value": value} for n, value in enumerate(values)])


def test_strategies_with_undefined_scores_are_named_with_their_seeds():
    (note,) = undefined_note(frame(0.5, None, float("nan"), 0.6), LABELS, "Tests leave these seeds out")
    assert note.endswith(": Full on STS (2 seeds). Tests leave these seeds out.")
    assert undefined_note(frame(0.5, 0.6), LABELS, "") == []


def test_a_run_that_is_missing_is_not_undefined():
    assert undefined_note(frame(None).assign(missing="not run"), LABELS, "") == []
