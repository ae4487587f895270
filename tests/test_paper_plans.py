"""The pages that say what papers' experiments need and address: as scripts/paper_plans.py writes them today."""

import sys

import pytest

from conftest import HOME

sys.path.insert(0, str(HOME / "scripts"))
import paper_plans


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
