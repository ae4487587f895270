"""One set of strategies: demo, first.yaml, grid, drafts of `thaw new`, README and the advisor's prior name the same."""

import pytest
import yaml

import answers
import replay
import unseen
from thaw.cli.new_command import strategies
from thaw.planning.configuration import read_config
from thaw.planning.run_plan import named_points

TEXTS = {"linear_probe", "linear_probe_all_layers", "lora", "top_k", "full"}
PAIRS = {"lora_separate", "top_k_separate", "full_separate"}
DRAFTS = {"draft of texts": "classification", "draft of pairs": "pair_regression"}
SHOWN = {
    "config/config.yaml": TEXTS | {"top_k_separate"},
    "config/experiments/first.yaml": TEXTS | PAIRS,
    "config/experiments/grid.yaml": TEXTS | PAIRS,
    "draft of texts": TEXTS,
    "draft of pairs": TEXTS | PAIRS,
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_names_the_standard_set(name, home):
    chosen = yaml.safe_load(strategies({DRAFTS[name]})) if name in DRAFTS else read_config([str(home / name)], {})
    named = {named_points(item)[0] for item in chosen["strategies"]}
    others = named - TEXTS - PAIRS
    assert named - others == SHOWN[name] and (not others or name.endswith("grid.yaml"))


def test_the_readmes_rows_are_of_the_set():
    assert {point.split()[0] for point in unseen.README_ROWS} - {"bag_of_words", "majority"} == TEXTS


def test_the_advisor_was_measured_on_the_set():
    """Its prior is from the grid's record, by which its decisions are replayed."""
    assert {point.split()[0] for point in replay.STANDARD} == TEXTS | PAIRS
    record = answers.Record(answers.recorded("grid"))
    for task in record.tasks:
        assert {point.split()[0] for point in replay.of_task(record, task, replay.STANDARD)} >= TEXTS
