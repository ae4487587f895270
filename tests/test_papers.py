"""The experiments of papers: scaled down to the local data, and the pages of what they need and address."""

import re

import pytest

import paper_plans
from conftest import HOME
from thaw.planning.configuration import load_plan, read_config

PAPERS = ["peters2019", "peters2019_layers", "peters2019_domains", "lee2019", "lee2019_roberta", "lee2019_rates"]
PAPERS += ["wang2019", "wei2022", "wei2022_students", "houlsby2019", "ulmfit", "kovaleva2019"]


def planned(home, name: str, data, overlay: bool = False):
    """Return the plan of a paper's experiment, or of it under the overlay offline.yaml."""
    files = [f"config/experiments/{name}.yaml"] + ["config/experiments/offline.yaml"] * overlay
    return load_plan(read_config([str(home / file) for file in files], {"data_dir": str(data)}), home)


@pytest.mark.parametrize("name", PAPERS)
def test_scaled_down_it_runs_on_the_local_data_and_says_what_was_left_out(name, home, named_files):
    plan = planned(home, name, named_files, overlay=True)
    runs = plan.runs
    assert list(plan.jobs["report"]) == [f"{name}_scaled"]
    assert {run.encoder for run in runs} - {"minilm_random"} == {"minilm"} and {run.subset for run in runs} == {
        "n500_s300"
    }
    wanted = set(read_config([str(home / f"config/experiments/{name}.yaml")])["tasks"])
    gone = {task for task in wanted if any(s.startswith(f"Task {task} was left out") for s in plan.left_out)}
    assert {run.task for run in runs} == wanted - gone != set()


def test_make_papers_runs_them_all(home):
    (named,) = re.findall(r"^PAPERS := (.*)$", (home / "Makefile").read_text(), re.MULTILINE)
    assert named.split() == PAPERS


def test_an_optional_encoder_whose_files_are_missing_is_left_out_and_said_so(home, tmp_path):
    plan = planned(home, "peters2019", tmp_path)
    assert {run.encoder for run in plan.runs} == {"bert_base_uncased", "bert_base_cased"}
    assert "`thaw fetch` downloads it" in plan.left_out[0]


def test_the_page_of_papers_has_the_counts_of_addresses():
    page = paper_plans.PAGES["coverage"].read_text(encoding="utf-8")
    assert paper_plans.written(page, "coverage", paper_plans.coverage()) == page, "run scripts/paper_plans.py"


def test_the_counts_are_of_all_papers_with_numbers():
    assert sorted(path.stem for path in (HOME / "config/reference").glob("*.yaml")) == sorted(paper_plans.PAPERS)


@pytest.mark.slow
def test_the_page_of_clusters_has_what_papers_need():
    page = paper_plans.PAGES["needs"].read_text(encoding="utf-8")
    table = paper_plans.needs(paper_plans.plans())
    assert paper_plans.written(page, "needs", table) == page and "| `lee2019` |" in table, "run scripts/paper_plans.py"
