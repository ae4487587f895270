"""The overlay offline.yaml cuts an experiment to what is at hand, and says all that it did."""

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
    "strategies.yaml": {
        "strategies": {
            "top_eight": {"phases": [{"train": ["head", {"top": 8}]}]},
            "upper": {"sweep": {"k": [2, 4, 8]}, "phases": [{"train": ["head", {"top": "k"}]}], "keep": True},
            "after_two": {"after": {"strategy": "upper", "variant": "k02"}, "phases": [{"train": ["head"]}]},
            "after_eight": {"after": {"strategy": "upper", "variant": "k08"}, "phases": [{"train": ["head"]}]},
        }
    },
}
SELECTION = {
    "experiment": "large",
    "title": "A large one",
    "tasks": ["far", "acceptability", "near_and_far"],
    "encoders": ["bert_base_uncased", "roberta_base"],
    "strategies": ["linear_probe", {"top_k": [0, 3, 6, 9, 12]}, "frozen_separate", "top_eight", "upper", "full"],
    "seeds": [1, 2, 3],
    "baselines": ["majority"],
    "outputs": ["main_table", "layers"],
    "sources": ["files", "hub"],
}


@pytest.fixture
def large(home, tmp_path):
    """Return a function that plans the large experiment with some keys replaced, under offline.yaml or alone."""
    for name, content in CATALOGUE.items():
        (tmp_path / name).write_text(yaml.safe_dump(content))

    def planned(overlay: bool = True, **changes):
        # a task on pairs, so that frozen_separate has one before it is left out
        selection = SELECTION | {"tasks": [*SELECTION["tasks"], "mrpc"], "catalogues": [str(tmp_path)]} | changes
        (tmp_path / "large.yaml").write_text(yaml.safe_dump(selection))
        overlays = [str(home / "config/experiments/offline.yaml")] if overlay else []
        return load_plan(read_config([str(tmp_path / "large.yaml"), *overlays]), home)

    return planned


def test_a_large_experiment_becomes_a_small_one_that_says_so(large):
    plan = large()
    runs = plan.runs
    assert {run.task for run in runs} == {"acceptability"} and {run.encoder for run in runs} == {"minilm"}
    assert {run.subset for run in runs} == {"n500_s300"} and {run.seed for run in runs} == {1}
    points = [(run.strategy, run.variant) for run in runs]
    assert points == [
        ("linear_probe", "base"),
        *(("top_k", f"k0{k}") for k in (0, 2, 3, 5, 6)),
        *(("upper", f"k0{k}") for k in (2, 4)),
        ("full", "base"),
    ]
    assert plan.left_out == [
        "Task far was left out: corpus far has neither its files in data_dir nor a grammar.",
        "Task near_and_far was left out: corpus far has neither its files in data_dir nor a grammar.",
        "Task mrpc was left out: corpus mrpc has neither its files in data_dir nor a grammar.",
        "Encoder minilm replaces bert_base_uncased, roberta_base.",
        "Strategy top_k: 0, 3, 6, 9, 12 of 12 layers became 0, 2, 3, 5, 6 of 6.",
        "Strategy frozen_separate was left out: it is for pairs of texts, and no such task is left.",
        "Strategy top_eight was left out: minilm has 6 layers only.",
        "Strategy upper: 2, 4, 8 of 12 layers became 2, 4 of 6.",
    ]
    assert plan.job("report", "large_scaled").spec["left_out"] == plan.left_out


def test_its_runs_are_those_of_the_same_selection_written_by_hand(large):
    by_hand = large(
        overlay=False,
        tasks=["acceptability"],
        encoders=["minilm"],
        strategies=["linear_probe", {"top_k": [0, 2, 3, 5, 6]}, {"upper": [2, 4]}, "full"],
        subsets=["n500_s300"],
        seeds=[1],
        sources=["synthetic"],
    )
    scaled = large()
    for step in ("prepare", "fetch", "features", "fit_heads", "train", "baseline"):
        assert scaled.jobs[step] == by_hand.jobs[step], step


def test_what_is_at_hand_already_stays_as_it_is(large):
    plan = large(tasks=["acceptability"], encoders=["minilm"], strategies=["full"], subsets=["n500_s300"], seeds=[1])
    assert plan.left_out == [] and "left_out" not in plan.job("report", "large_scaled").spec


def test_optional_tasks_without_data_are_left_out_with_what_is_run_on_them_alone(large):
    optional = {"optional_tasks": ["mrpc", "far", "near_and_far"], "probes": ["linear"]}
    changes = optional | {"outputs": ["main_table"], "strategies": ["linear_probe", "frozen_separate"]}
    changes |= {"only": {"frozen_separate": ["mrpc"]}, "data_dir": "none", "sources": ["synthetic", "hub"]}
    plan = large(overlay=False, **changes | {"sources": ["synthetic", "files"]})
    assert {run.task for run in plan.runs} == {"acceptability"}
    said = "Task {} was left out: corpus {} has no source here."
    gone = {"mrpc": "mrpc", "far": "far", "near_and_far": "far"}
    idle = "frozen_separate was left out: it is run with mrpc alone, not selected here."
    assert plan.left_out == [*(said.format(*one) for one in gone.items()), idle]
    with_hub = large(overlay=False, **changes | {"tasks": ["acceptability", "mrpc"], "optional_tasks": ["mrpc"]})
    assert {run.task for run in with_hub.runs} == {"acceptability", "mrpc"} and with_hub.left_out == []
    with pytest.raises(UserError, match="tasks: none is left. Task far was left out: corpus far has"):
        large(overlay=False, tasks=["far"], sources=["files"], optional_tasks=["far"])
    with pytest.raises(UserError, match="optional_tasks: acceptabilty is none of the tasks; did you mean"):
        large(overlay=False, optional_tasks=["acceptabilty"])


def test_a_small_share_of_the_layers_still_thaws_one(large):
    plan = large(encoders=["bert_large_uncased"], strategies=[{"top_k": [0, 1, 24]}])
    assert [run.value for run in plan.runs] == [0, 1, 6]


def test_a_strategy_stays_where_the_variant_that_it_starts_from_has_layers(large):
    plan = large(strategies=["after_two", "after_eight"])
    points = [(run.strategy, run.variant) for run in plan.runs]
    assert points == [("upper", "k02"), ("after_two", "base")]
    assert "Strategy after_eight was left out: minilm has 6 layers only." in plan.left_out


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"tasks": ["far"], "strategies": ["full"]}, "local_only leaves no task; set data_dir"),
        ({"strategies": ["top_eight"]}, "no strategy is left; Strategy top_eight was left out: minilm has 6 layers"),
        ({"tasks": ["acceptabilty"]}, "did you mean 'acceptability'"),
        ({"strategies": [{"top_k": [13]}]}, "13 is not in its sweep for bert_base_uncased"),
    ],
)
def test_nothing_left_and_mistakes_of_before_are_errors(large, changes, message):
    with pytest.raises(UserError, match=message):
        large(**changes)
