"""Which tasks help each other: gains by hand from written runs, and correlations of written gains."""

import pandas
import pytest

import scored_runs
from plans import plan_of
from thaw.core.errors import UserError
from thaw.core.files import write_json, write_parquet
from thaw.outputs.frame.output_data import OutputData
from thaw.papers.task_pairs import build, foretold

SCORES = {
    "full": [60.0, 61, 62],
    "linear_probe": [50.0, 50, 50],
    "with_other": [70.0, 71, 72],
    "after_other": [60.5, 61, 61.5],
}
PAIRS = {
    "with_other": {"source": "other", "way": "together"},
    "after_other": {"source": "other", "way": "first", "subset": "all"},
}
LABELS = {"tasks": {"odd": "Odd", "other": "Other"}, "strategies": {}}
SPEC = {"reference": "full", "labels": LABELS, "pairs": {"odd": PAIRS}, "corpora": {"odd": "odd", "other": "other"}}
TEXTS = {"odd": ["a b", "a b"], "other": ["a b c d", "c d a b"]}


@pytest.fixture
def data(tmp_path):
    runs = scored_runs.write_scores(tmp_path, SCORES)
    other = runs[runs["strategy"].isin(["full", "linear_probe"])].assign(task="other", train_rows=500)
    for name, texts in TEXTS.items():
        write_json(tmp_path / f"data/{name}/card.json", {"texts": ["text"], "splits": {"train": {"rows": 2}}})
        write_parquet(tmp_path / f"data/{name}/train.parquet", pandas.DataFrame({"text": texts}))
    return OutputData(tmp_path, pandas.concat([runs.assign(train_rows=100), other]))


def test_a_gain_is_the_difference_to_the_control_and_one_over_0_is_marked(data):
    figure = build(data, SPEC)
    together, first, *said = figure.records
    assert (together["gain"], first["gain"]) == (10.0, 0.0) and together["low"] > 0 and first["low"] < 0 < first["high"]
    assert (together["answer"], first["answer"]) == ("higher", "open")
    for one in (together, first):  # other: full is 11 points above the linear probe
        assert (one["source_rows"], one["source_gain"], one["seeds"]) == (500, 11.0, 3) and 0 <= one["divergence"] <= 1
    texts = [text.get_text() for axis in figure.drawn.get_axes() for text in axis.texts]
    assert texts[0].startswith("10.0\n[") and texts[1].startswith("≈0.0\n[")
    assert [one["rho"] for one in said] == [None] * 6, "one source has no order"
    assert len(figure.drawn.get_axes()) == 2, "the matrices: a property of one source does not differ"


def gains(columns: list[list[float]], values: list[float]):
    """Return the frame of sources 0, 1, ... by targets. Args: gains by target; the property of each source."""
    rows = [
        {"source": str(n), "target": str(t), "gain": gain, "rows": values[n]}
        for t, own in enumerate(columns)
        for n, gain in enumerate(own)
    ]
    return pandas.DataFrame(rows)


def test_correlations_are_of_ranks_within_targets():
    """By hand: ranks (1, 2, 3) against (1, 2, 3), (3, 2, 1) and (1, 3, 2) correlate by 1, -1 and 0.5."""
    found = foretold(gains([[1, 2, 9], [50, 40, 30], [0, 2, 1], [5, 5, 5]], [10, 20, 30]), "rows")
    assert found["rho"] == pytest.approx(0.5 / 3) and found["targets"] == 3, "equal gains have no order"
    assert (found["low"], found["high"]) == pytest.approx((-0.25, 0.75))


def test_the_plan_says_the_source_of_each_pair():
    chosen = {"tasks": ["stsb", "sick_e"], "strategies": ["full_200", "with_sick_e", "after_sick_e", "joint_pairs"]}
    plan = plan_of(**chosen, subsets=["n500_s300"], seeds=[1], baselines=[], outputs=["task_pairs"], sources=["hub"])
    (job,) = plan.jobs["figure"].values()
    after = {"source": "sick_e", "way": "first", "subset": "n500_s300"}
    assert job.spec["pairs"]["stsb"] == {"with_sick_e": {"source": "sick_e", "way": "together"}, "after_sick_e": after}
    assert job.spec["corpora"] == {"stsb": "stsb", "sick_e": "sick"}


def test_a_pair_without_a_control_is_said(data):
    with pytest.raises(UserError, match="a task_pair_figure needs runs of none with the seeds of those of a pair"):
        build(data, SPEC | {"reference": "none"})
