"""Which runs an experiment has, and which of them it shows: the plan, its outputs, ensembles and merges agree."""

import pytest

from plans import plan_of
from thaw.outputs.frame.collection import selected
from thaw.planning.configuration import load_plan, read_config

ONE = {"tasks": ["acceptability", "entities"], "strategies": ["frozen", "full"], "seeds": [1, 2]}
ONE |= {"outputs": ["main_table"]}


def planned(**changes):
    """Return the plan of the tests' experiment on a task on texts and one on words."""
    return plan_of(**ONE | changes)


def tasks_of(plan, strategy: str) -> set[str]:
    """Return the tasks on which runs of a strategy are planned."""
    return {key.split("/")[1] for key in plan.jobs["train"] if f"/{strategy}/" in key}


@pytest.mark.parametrize("name", ["wang2019", "students_text", "intermediate_task"])
def test_the_runs_that_count_as_shown_are_those_of_which_tables_are_made(home, name):
    """These experiments have teachers, intermediate tasks and parts that `only` rules out."""
    plan = load_plan(read_config([str(home / f"config/experiments/{name}.yaml")], {}), home)
    collected = [one for one in selected(plan.job("collect", name).spec) if one.row["kind"] == "run"]
    assert sorted(run.folder for run in plan.shown) == sorted(one.folder for one in collected)
    preparatory = len(plan.runs) - len(collected)
    assert plan.job("report", name).spec["preparatory"] == preparatory > 0


def test_an_ensemble_is_on_the_tasks_that_its_members_are_run_on():
    member = {"strategy": "full"}
    ruled_out = planned(ensembles={"two": {"members": [member]}}, only={"full": ["acceptability"]})
    assert set(ruled_out.jobs["ensemble"]) == {"acceptability/all/two"}
    assert tasks_of(ruled_out, "full") == {"acceptability"}
    sets = {"tasks": ["acceptability", "similarity"], "strategies": ["full"], "heads": ["wang", "linear_mean"]}
    no_head = planned(**sets, ensembles={"two": {"members": [member | {"head": "wang"}]}})
    assert set(no_head.jobs["ensemble"]) == {"acceptability/all/two"}, "wang has no head for a regression"


def test_a_merge_takes_no_run_that_only_rules_out():
    merge = {"strategies": ["frozen", {"top_k": [2]}]}
    plan = planned(merges={"m": merge}, only={"top_k": ["acceptability"]})
    assert tasks_of(plan, "top_k") == {"acceptability"}


def test_only_runs_that_a_merge_may_take_keep_their_tensors():
    merge = {"encoder": "minilm", "strategies": [{"top_k": [2]}]}
    chosen = {"encoders": ["minilm", "bert_base_uncased"], "strategies": ["frozen", {"top_k": [2]}]}
    plan = planned(**chosen, merges={"m": merge})
    kept = {key for key, job in plan.jobs["train"].items() if job.spec["keep"]}
    assert kept == {f"runs/{task}/all/minilm/linear/top_k/k02/seed1" for task in ONE["tasks"]}
