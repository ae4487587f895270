"""One set of strategies: demo, first.yaml, grid, drafts of `thaw new`, README and the advisor's prior name the same."""

import json

import pytest
import yaml

import answers
import record_tables
import replay
from thaw.cli.new_command import strategies
from thaw.planning.configuration import load_plan, read_config
from thaw.planning.run_plan import named_points
from thaw.schema.entry import spec_of

TEXTS = {"linear_probe", "linear_probe_all_layers", "lora", "top_k", "full"}
PAIRS = {"lora_separate", "top_k_separate", "full_separate"}
SHOWN = {
    "config/config.yaml": TEXTS | {"top_k_separate"},
    "config/experiments/first.yaml": TEXTS | PAIRS,
    "config/experiments/grid.yaml": TEXTS | PAIRS,
    "draft of texts": TEXTS,
    "draft of pairs": TEXTS | PAIRS,
}
OF_A_PLAN = ("components", "boundary", "reads", "vectors")  # what a phase has in a spec by encoder and head


def planned(name: str, home, named_files):
    """Return the plan of a shown experiment; of a draft, that of the demo's or the grid's tasks with its strategies."""
    drafted = {"draft of texts": "classification", "draft of pairs": "pair_regression"}
    chosen = {"data_dir": str(named_files), "seeds": [1]}
    if name in drafted:
        chosen |= yaml.safe_load(strategies({drafted[name]}))
    return load_plan(read_config([str(home / (name if name not in drafted else "config/config.yaml"))], chosen), home)


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_names_the_standard_set_with_its_settings(name, home, named_files, catalogue):
    plan = planned(name, home, named_files)
    named = {named_points(item)[0] for item in plan.experiment.strategies}
    others = named - TEXTS - PAIRS
    assert named - others == SHOWN[name] and (not others or name.endswith("grid.yaml"))
    for run in (run for run in plan.runs if run.strategy in SHOWN[name]):
        width = catalogue.get("encoders", run.encoder, "test").width
        (phase,) = catalogue.get("strategies", run.strategy, "test").at_width(width).phases
        (spec,) = plan.job(run.step, run.key).spec["phases"]
        settings = {key: value for key, value in spec.items() if key not in OF_A_PLAN}
        assert settings == json.loads(json.dumps(spec_of(phase, frozenset({"train"})))), run.name


def test_the_readmes_rows_are_of_the_set():
    shown = record_tables.LAYOUTS["small"].points
    assert {point.split()[0] for point in shown} - {"bag_of_words"} == TEXTS


def test_the_advisor_was_measured_on_the_set():
    """Its prior is from the grid's record, by which its decisions are replayed."""
    assert {point.split()[0] for point in replay.STANDARD} == TEXTS | PAIRS
    record = answers.Record(answers.recorded("grid"))
    for task in record.tasks:
        assert {point.split()[0] for point in replay.of_task(record, task, replay.STANDARD)} >= TEXTS


def test_rates_and_updates_are_those_of_the_grid(catalogue):
    rates = {"lora": 2e-3, "top_k": 8e-4, "full": 2e-4}
    for name, rate in rates.items():
        for one in (name, f"{name}_separate"):
            (phase,) = catalogue.get("strategies", one, "test").at_width(384).phases
            assert (phase.rate, phase.head_rate, phase.updates, phase.judge) == (rate, 1e-3, 400, 8)
            assert (phase.batch_size, phase.precision) == (16, "bf16")
