"""Undefined scores are named where they are left out."""

import pandas

from thaw.outputs.tables.footnotes import undefined_note

LABELS = {"strategies": {"full": "Full"}, "tasks": {"sts": "STS"}}


def frame(*values) -> pandas.DataFrame:
    """Return runs of one strategy, a seed for each score on test; None is undefined."""
    place = {"subset": "all", "encoder": "tiny", "head": "linear"}
    row = place | {"kind": "run", "main": True, "missing": "", "role": "test", "strategy": "full", "variant": "base"}
    return pandas.DataFrame([row | {"task": "sts", "seed": n, "value": value} for n, value in enumerate(values)])


def test_strategies_with_undefined_scores_are_named_with_their_runs():
    (note,) = undefined_note(frame(0.5, None, float("nan"), 0.6), LABELS, "Tests leave these runs out")
    assert note.endswith(": Full on STS (2 runs). Tests leave these runs out.")
    assert undefined_note(frame(0.5, 0.6), LABELS, "") == []


def test_seeds_of_several_encoders_and_both_splits_of_a_run_are_counted_once_each():
    one = frame(None, 0.5)
    both = pandas.concat([one, one.assign(role="validation"), one.assign(encoder="other")])
    assert "Full on STS (2 runs)" in undefined_note(both, LABELS, "")[0]


def test_a_run_that_is_missing_is_not_undefined():
    assert undefined_note(frame(None).assign(missing="not run"), LABELS, "") == []
