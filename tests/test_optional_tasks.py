"""Optional tasks without data are left out, with what is run on them alone."""

import pytest
import yaml

from thaw.core.errors import UserError
from thaw.planning.configuration import load_plan, read_config

CATALOGUE = {
    "tasks.yaml": {
        "corpora": {
            "far": {
                "texts": ["text"],
                "targets": {"label": "label"},
                "hub": {"id": "a/b", "splits": {"train": "train"}},
            },
        },
        "tasks": {
            "far": {"corpus": "far", "target": "label", "type": "classification", "metrics": ["accuracy"]},
            "near_and_far": {
                "corpus": "acceptability",
                "target": "label",
                "type": "classification",
                "metrics": ["accuracy"],
                "also": [{"task": "far"}],
            },
        },
    },
}
SELECTION = {
    "experiment": "large",
    "title": "A large one",
    "tasks": ["far", "acceptability", "near_and_far"],
    "encoders": ["bert_base_uncased", "roberta_base"],
    "strategies": ["linear_probe", "frozen_separate", "full"],
    "seeds": [1, 2, 3],
    "baselines": ["majority"],
    "outputs": ["main_table", "layers"],
    "sources": ["files", "hub"],
}


@pytest.fixture
def large(home, tmp_path):
    """Return a function that plans the large experiment with some keys replaced."""
    for name, content in CATALOGUE.items():
        (tmp_path / name).write_text(yaml.safe_dump(content))

    def planned(**changes):
        # a task on pairs, so that frozen_separate has one before it is left out
        selection = SELECTION | {"tasks": [*SELECTION["tasks"], "mrpc"], "catalogues": [str(tmp_path)]} | changes
        (tmp_path / "large.yaml").write_text(yaml.safe_dump(selection))
        return load_plan(read_config([str(tmp_path / "large.yaml")]), home)

    return planned


def test_optional_tasks_without_data_are_left_out_with_what_is_run_on_them_alone(large):
    optional = {"optional_tasks": ["mrpc", "far", "near_and_far"], "probes": ["linear"]}
    changes = optional | {"outputs": ["main_table"], "strategies": ["linear_probe", "frozen_separate"]}
    changes |= {"only": {"frozen_separate": ["mrpc"]}, "data_dir": "none", "sources": ["synthetic", "hub"]}
    plan = large(**changes | {"sources": ["synthetic", "files"]})
    assert {run.task for run in plan.runs} == {"acceptability"}
    said = "Task {} was left out: corpus {} has no source here."
    gone = {"mrpc": "mrpc", "far": "far", "near_and_far": "far"}
    idle = "frozen_separate was left out: it is run with mrpc alone, not selected here."
    assert plan.left_out == [*(said.format(*one) for one in gone.items()), idle]
    with_hub = large(**changes | {"tasks": ["acceptability", "mrpc"], "optional_tasks": ["mrpc"]})
    assert {run.task for run in with_hub.runs} == {"acceptability", "mrpc"} and with_hub.left_out == []
    with pytest.raises(UserError, match="tasks: none is left. Task far was left out: corpus far has"):
        large(tasks=["far"], sources=["files"], optional_tasks=["far"])
    with pytest.raises(UserError, match="optional_tasks: acceptabilty is none of the tasks; did you mean"):
        large(optional_tasks=["acceptabilty"])
