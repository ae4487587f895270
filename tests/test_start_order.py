"""Which jobs start first: those with the most left to compute in them and in what waits for them."""

import pytest

from thaw.core.home import HOME
from thaw.planning.configuration import load_plan, read_config
from thaw.planning.cost_estimate import operations
from thaw.planning.start_order import MOST, operations_left, priorities


@pytest.fixture(scope="module")
def plan():
    """The plan of an experiment with a strategy that starts from another one's run."""
    return load_plan(read_config([str(HOME / "tests/base.yaml")], {}), HOME)


def key_of(plan, step: str, strategy: str) -> str:
    """Return the key of the first job of a strategy."""
    return next(key for key in plan.jobs[step] if key.startswith(f"runs/acceptability/all/minilm/linear/{strategy}/"))


def test_a_job_counts_what_it_computes_and_the_longest_chain_that_waits_for_it(plan):
    left = operations_left(plan)
    first, alone = (("fit_heads", key_of(plan, "fit_heads", name)) for name in ("frozen_sgd", "frozen"))
    full, second = (("train", key_of(plan, "train", name)) for name in ("full", "stack_then_finetune"))
    assert left[full] == operations(plan, *full) and left[second] == operations(plan, *second) > 0
    assert left[first] == operations(plan, *first) + left[second] > left[alone]
    store = ("features", "minilm/acceptability/joint")
    assert left["fetch", "minilm"] >= left["prepare", "acceptability"] == left[store]
    assert left[store] == operations(plan, *store) + max(left[first], left[full])
    assert left["table", "demo/main_table"] == left["baseline", "acceptability/all/majority"] == 0.0


def test_priorities_are_shares_of_the_longest_chain(plan):
    left, priority = operations_left(plan), priorities(plan)
    longest = max(left, key=left.__getitem__)
    assert priority[longest] == MOST == max(priority.values()) and priority["report", "demo"] == 0.0
    shallow, deep, full = (("train", key_of(plan, "train", name)) for name in ("top_k/k01", "top_k/k02", "full"))
    assert 0 < priority[shallow] < priority[deep] < priority[full]
    assert priority[full] / priority[deep] == pytest.approx(left[full] / left[deep])
