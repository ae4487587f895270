"""Our aggregation returns what papers print: the thresholds of Lee et al. from their runs, Tenney's layers and bits.

known/lee2019_runs.csv holds the scores of the authors' own runs, exp_results/ of https://github.com/ljj7975/transformers
at commit 4c40497c.
"""

import csv
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from thaw.core.errors import UserError
from thaw.outputs.tables.reproduction import Measured
from thaw.planning.papers import printed_tables
from thaw.schema.catalogue import shipped
from thaw.statistics import aggregation

MODELS = ["bert_base", "bert_large", "roberta_base", "roberta_large"]


@pytest.fixture(scope="module")
def runs(home):
    """Return {model: {row: {task: scores}}} of the authors' runs."""
    found = defaultdict(lambda: defaultdict(dict))
    with (home / "tests/known/lee2019_runs.csv").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            scores = [float(score) for score in line["scores"].split()]
            found[line["model"]][line["row"]][line["task"]] = scores
    return found


@pytest.fixture(scope="module")
def printed(home):
    """Return a function that gives {row: {column: number}} of a paper's table."""

    def table(paper: str, name: str) -> dict:
        found, _ = printed_tables.read(shipped(home), paper)
        numbers = defaultdict(dict)
        for number in printed_tables.printed(found.tables[name]):
            numbers[number.row][number.column] = number.value
        return numbers

    return table


def least(runs: dict, task: str, share: float, rule) -> int | None:
    """Return the least k of one model on one task."""
    scores = {int(row[1:]): rule(tasks[task]) for row, tasks in runs.items() if row != "full" and task in tasks}
    return aggregation.least(scores, rule(runs["full"][task]), share)


@pytest.mark.parametrize("model", MODELS)
def test_the_authors_rule_gives_their_scores(runs, printed, model):
    table = printed("lee2019", f"sweep_{model}")
    compared = 0
    for row, numbers in table.items():
        for task, value in numbers.items():
            if value is not None:
                ours = 100 * aggregation.mean_without_failed(runs[model][row][task])
                assert ours == pytest.approx(value, abs=0.0051), (row, task)
                compared += 1
    assert compared == sum(len(tasks) for tasks in runs[model].values())


class NoSpread:
    """Predictions of which every draw has the score itself: the authors published none, and the number is asked."""

    @staticmethod
    def draws(rows, metric: str, split: str) -> np.ndarray:
        """Return the mean score, as often as there are draws."""
        return np.full(10, rows["value"].mean())


@pytest.mark.parametrize("model", MODELS)
def test_the_papers_table_gives_the_thresholds_from_the_authors_runs(runs, printed, model):
    """The same through what a report calls: rows of runs.csv in, a row of the paper's table out."""
    due = printed("lee2019", "thresholds")
    tasks = [task for task, k in due[f"{model}_90"].items() if task != "most" and k is not None]
    address = {"subset": "all", "encoder": model, "head": "linear", "metric": "score", "split": "test", "kind": "run"}
    frame = pandas.DataFrame(
        address | {"task": task, "strategy": "full", "variant": "base", "seed": seed, "value": score}
        if row == "full"
        else address | {"task": task, "strategy": "top_k", "variant": row, "seed": seed, "value": score}
        for row, by_task in runs[model].items()
        for task in tasks
        for seed, score in enumerate(by_task[task])
    )
    sweep = {row: int(row[1:]) for row in runs[model] if row != "full"}
    cells = [
        {"printed": 1, "at": [task, model, "linear", "top_k", "k00", "score", "test"], "sweep": sweep, "full": "full"}
        for task in tasks
    ]
    columns = [{"label": task, "scale": "number", "over": None} for task in tasks]
    rows = [{"label": share, "least": share / 100, "cells": cells} for share in (90, 95)]
    comparison = {"subset": "all", "columns": columns, "rows": rows, "aggregation": "lee2019"}
    found = Measured(frame, comparison, SimpleNamespace(predictions=NoSpread())).all()
    for number, share in enumerate((90, 95)):
        by_rule = {task: found[number, column].rule for column, task in enumerate(tasks)}
        assert by_rule == {task: due[f"{model}_{share}"][task] for task in tasks}


def test_the_plain_mean_changes_a_conclusion(runs):
    tasks = ["sst2", "mrpc", "stsb", "qnli", "rte"]
    by_rule = {}
    for rule in (aggregation.mean, aggregation.mean_without_failed):
        by_rule[rule.__name__] = {task: least(runs["roberta_base"], task, 0.9, rule) for task in tasks}
    assert by_rule["mean"]["rte"] == 4 and by_rule["mean_without_failed"]["rte"] == 5


@pytest.mark.parametrize(
    "scores, kept",
    [([0.5, 0.0, 0.46], [0.5, 0.46]), ([0.5, 0.45], [0.5]), ([0.0, 0.0], []), ([0.9], [0.9]), ([], [])],
)
def test_failed_runs_are_those_at_zero_and_at_most_nine_tenths_of_the_best(scores, kept):
    assert aggregation.without_failed(scores) == kept


def test_a_share_is_reached_only_above_it_and_needs_a_full_model():
    assert aggregation.least({0: 0.45, 1: 0.450001}, 0.5, 0.9) == 1
    assert aggregation.least({0: 0.1, 1: None}, 0.5, 0.9) is None
    with pytest.raises(UserError, match="a full model with a score above 0, not 0.0"):
        aggregation.least({0: 0.1}, 0.0, 0.9)
