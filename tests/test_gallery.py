"""The reports in the documentation: no link leads to a file that is not published."""

import sys

import pytest

from conftest import HOME

sys.path.insert(0, str(HOME / "scripts"))
from gallery import LINK, PAGES, publish

DEMO = HOME / "docs/gallery/demo"


@pytest.mark.parametrize("page", PAGES)
def test_a_published_page_has_what_it_links_to(page):
    links = [link[1] for link in LINK.finditer((DEMO / page).read_text(encoding="utf-8"))]
    assert links and [link for link in links if not (DEMO / link).is_file()] == []


def test_a_link_out_of_the_report_becomes_its_text(tmp_path):
    made = tmp_path / "made"
    (made / "tables").mkdir(parents=True)
    (made / "tables/a.csv").write_text("x")
    (made / "report.html").write_text(
        '<a href="tables/a.csv">CSV</a> <a href="../../runs/r/">run</a> <a href="#s">s</a>'
    )
    (made / "examples.html").write_text('<a href="report.html#s">back</a>')
    publish(made, tmp_path / "out")
    assert (tmp_path / "out/report.html").read_text() == '<a href="tables/a.csv">CSV</a> run <a href="#s">s</a>'
    assert (tmp_path / "out/tables/a.csv").is_file() and "report.html#s" in (tmp_path / "out/examples.html").read_text()
