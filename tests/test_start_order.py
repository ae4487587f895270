"""Which jobs start first: those with the most left to compute in them and in what waits for them."""

import re

import pytest

from plans import plan_of
from thaw.core.home import HOME
from thaw.core.steps import COMPUTING
from thaw.planning.cost_estimate import operations
from thaw.planning.run_progress import MOST, operations_left, priorities


@pytest.fixture(scope="module")
def plan():
    """The plan of an experiment with a strategy that starts from another one's run."""
    return plan_of()


def key_of(plan, step: str, strategy: str) -> str:
    """Return the key of the first job of a strategy."""
    return next(key for key in plan.jobs[step] if key.startswith(f"runs/acceptability/all/minilm/linear/{strategy}/"))


def test_a_job_counts_what_it_computes_and_the_longest_chain_that_waits_for_it(plan):
    left = operations_left(plan)
    first, alone = (("fit_heads", key_of(plan, "fit_heads", name)) for name in ("frozen_sgd", "linear_probe"))
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


def test_what_is_chosen_counts_the_runs_that_wait_for_the_choice():
    """Trials, the choice among them, and the runs that take its rates."""
    experiment = {"strategies": ["lee_full", {"lee_top_k": [2]}], "outputs": ["main_table"], "baselines": []}
    plan = plan_of(**experiment | {"tasks": ["acceptability"]})
    left, (choice,) = operations_left(plan), plan.jobs["select"]
    runs = {key: own for (step, key), own in left.items() if step == "train"}
    waiting = [own for key, own in runs.items() if "/lee_full/base/seed" in key or "/lee_top_k/" in key]
    trials = [own for key, own in runs.items() if own > max(waiting)]
    assert left["select", choice] == max(waiting) > 0 and len(trials) > 10
    assert len(waiting) + len(trials) == len(runs)


def test_each_rule_of_what_computes_has_a_priority():
    """Of the rules that call a step which computes with an encoder, or chooses what others wait for."""
    first = {"features", "fit_heads"}  # which have one that is higher
    steps, ordered = {*COMPUTING, "select"} - first, set()
    for file in (HOME / "workflow/rules").glob("*.smk"):
        for rule in re.split(r"^ *rule\b", file.read_text(encoding="utf-8"), flags=re.M):
            called = re.search(r"-m thaw\.steps (\w+) ", rule)
            if called and called[1] in steps:
                ordered.add(called[1])
                assert f'priority: longest_first("{called[1]}"' in rule, f"{file.name}: {called[1]}"
    assert ordered == steps
