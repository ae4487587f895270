"""Outputs that cannot be drawn: refused by the plan where it can know, else a gap that is tried again."""

import json

import pytest

import invented
from conftest import run_step
from plans import plan_of
from thaw.core.digests import canonical
from thaw.core.failed_outputs import failures, note_failure, reason
from thaw.outputs.report import report_page
from thaw.planning.questions import Questions

BARE = {"strategies": ["linear_probe"], "seeds": [1], "tasks": ["acceptability"]}


def planned(outputs, results="results", **changes):
    config = BARE | {"outputs": outputs, "baselines": []} | changes
    return plan_of(str(results), **config)


def test_of_an_experiment_with_optional_tasks_it_is_left_out_and_said_so():
    changes = {"subsets": ["n100_d1"], "tasks": [*BARE["tasks"], "mrpc"], "optional_tasks": ["mrpc"]}
    changes |= {"sources": ["synthetic", "files"]}
    plan = planned(["main_table", "sizes"], **changes)
    assert [output["id"] for output in plan.job("report", "demo").spec["outputs"]] == ["main_table"]
    assert plan.left_out[-1].startswith("Output sizes was left out: it needs training subsets of two sizes")


@pytest.fixture
def results(invented_results, tmp_path):
    """Return a results folder in which a table failed for a reason that the plan cannot know."""
    (tmp_path / "runs.csv").write_bytes((invented_results / "outputs/invented/runs.csv").read_bytes())
    return tmp_path


def draw(results, step: str, spec: dict):
    arguments = ["--runs", results / "runs.csv", "--results", results, "--out", results / f"{step}s/mine"]
    return run_step(step, "--spec", canonical(spec), *arguments)


@pytest.mark.parametrize("step, kind", [("table", "strategy_table"), ("figure", "layer_figure")])
def test_a_gap_says_why_and_is_tried_again(results, step, kind):
    good, prefix = invented.shown("mine", kind), results / f"{step}s/mine"
    done = draw(results, step, good | {"split": "nowhere"})
    assert "FAILED, a placeholder is drawn instead" in done.stderr and done.returncode == 0
    why = "no run has a score on split nowhere; choose another for this output"
    assert reason(prefix) == why and failures(prefix) == 1
    assert why in (results / f"{step}s/mine.csv").read_text()
    assert "Traceback" not in done.stderr, "the user can mend it: no trace of ours"
    broken = draw(results, step, {key: value for key, value in good.items() if key != "labels"})
    assert "Traceback" in broken.stderr and reason(prefix).startswith("KeyError: 'labels'") and failures(prefix) == 2
    draw(results, step, good)
    assert reason(prefix) == "" and failures(prefix) == 2, "its spec has the number, and it is not drawn once more"


def test_a_gap_changes_the_spec_until_it_is_drawn(tmp_path):
    plan = planned(["main_table"], results=tmp_path)
    plain = Questions(plan).canonical("table", "demo/main_table")
    note_failure(tmp_path / "outputs/demo/tables/main_table", "why")
    again = Questions(plan).canonical("table", "demo/main_table")
    assert again != plain and json.loads(again) == json.loads(plain) | {"failures": 1}


def test_the_report_names_the_gap_and_why(invented_results, tmp_path, invented_frame):
    invented.draw_report(invented_results, tmp_path)
    note_failure(tmp_path / "figures/layers", "R&D went wrong")
    content = report_page.content(invented_frame, invented.report_spec(), invented_results, tmp_path)
    page = report_page.page(content, "snakemake --")
    assert "Figure 1 could not be drawn." in page and page.count("R&amp;D went wrong") == 2
    assert '<img src="data:' not in page.partition('id="layers"')[2]
