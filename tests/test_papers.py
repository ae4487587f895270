"""The experiments of papers, and the pages of what they need and address."""

import re

import pytest

import paper_plans
from conftest import HOME
from thaw.planning.configuration import load_plan, read_config

PAPERS = ["peters2019", "peters2019_layers", "peters2019_domains", "lee2019", "lee2019_roberta", "lee2019_rates"]
PAPERS += ["wang2019", "wei2022", "wei2022_students", "houlsby2019", "ulmfit", "kovaleva2019"]


def planned(home, name: str, data, **changes):
    """Return the plan of a paper's experiment, some of its keys replaced."""
    config = read_config([str(home / f"config/experiments/{name}.yaml")], {"data_dir": str(data)})
    return load_plan(config | changes, home)


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
