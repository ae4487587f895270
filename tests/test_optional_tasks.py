"""Optional tasks without data are left out, with what is run on them alone."""

import pytest

from plans import plan_of
from thaw.core.errors import UserError

TASKS = """corpora: {far: {texts: [text], targets: {label: label}, hub: {id: a/b, splits: {train: train}}}}
tasks:
  far: {corpus: far, target: label, type: classification, metrics: [accuracy]}
  near_and_far: {base: acceptability, also: [{task: far}]}
"""


def test_optional_tasks_without_data_are_left_out_with_what_is_run_on_them_alone(tmp_path):
    (tmp_path / "tasks.yaml").write_text(TASKS)
    usual = {"catalogues": [str(tmp_path)], "outputs": ["main_table"], "probes": ["linear"], "data_dir": "none"}
    usual |= {"strategies": ["linear_probe", "frozen_separate"], "only": {"frozen_separate": ["mrpc"]}}
    optional = {"optional_tasks": ["mrpc", "far", "near_and_far"], "sources": ["synthetic", "files"]}
    plan = plan_of(**usual | optional | {"tasks": ["far", "acceptability", "near_and_far", "mrpc"]})
    assert {run.task for run in plan.runs} == {"acceptability"}
    said = "Task {} was left out: corpus {} has no source here."
    gone = {"mrpc": "mrpc", "far": "far", "near_and_far": "far"}
    idle = "frozen_separate was left out: it is run with mrpc alone, not selected here."
    assert plan.left_out == [*(said.format(*one) for one in gone.items()), idle]
    both = {"tasks": ["acceptability", "mrpc"], "optional_tasks": ["mrpc"], "sources": ["synthetic", "hub"]}
    plan = plan_of(**usual | both)
    assert {run.task for run in plan.runs} == {"acceptability", "mrpc"} and plan.left_out == []
    with pytest.raises(UserError, match="tasks: none is left. Task far was left out: corpus far has"):
        plan_of(**usual | {"tasks": ["far"], "sources": ["files"], "optional_tasks": ["far"]})
    with pytest.raises(UserError, match="optional_tasks: acceptabilty is none of the tasks; did you mean"):
        plan_of(**usual | {"optional_tasks": ["acceptabilty"]})
