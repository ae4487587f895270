"""The page of runs: links that resolve, and the way from a number to its runs."""

import html
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

import invented
from thaw.core.files import write_text
from thaw.outputs.frame import runs_frame
from thaw.outputs.report import runs_page


def write_evidence(results: Path) -> None:
    """Write predictions and a log of each invented run; pages link to them and read neither."""
    for folder in (results / "runs").glob("*/all/tiny/linear/*/*/seed*"):
        (folder / "predictions.parquet").touch()
        log, own = "fit_heads" if folder.parts[-3] == "frozen" else "train", folder.relative_to(results / "runs")
        write_text(results / f"logs/{log}" / (own.parent if log == "fit_heads" else own).with_suffix(".log"), "done\n")


@pytest.fixture(scope="module")
def results(invented_results, tmp_path_factory) -> Path:
    """The invented results with predictions and logs."""
    folder = tmp_path_factory.mktemp("runs") / "results"
    shutil.copytree(invented_results, folder)
    write_evidence(folder)
    return folder


@pytest.fixture(scope="module")
def report(results) -> Path:
    """The report with its page of runs, in the place where the workflow writes them."""
    return invented.draw_report(results, results / "outputs/invented")


def test_every_link_of_both_pages_resolves(report):
    anchors = {page.name: set(re.findall(r'\sid="([^"]+)"', page.read_text())) for page in report.parent.glob("*.html")}
    assert set(anchors) == {"report.html", "runs.html"}
    for page in anchors:
        links = [html.unescape(link) for link in re.findall(r'href="([^"]+)"', (report.parent / page).read_text())]
        assert len(links) > 50
        for link in links:
            path, _, anchor = link.partition("#")
            target = report.parent / unquote(path or page)
            assert target.exists(), link
            assert not anchor or anchor in anchors[target.name], link


def test_of_many_runs_each_task_has_a_page_and_the_first_leads_there(results, report, monkeypatch):
    runs = runs_frame.read_runs(report.with_name("runs.csv"))
    content = runs_page.content(runs, invented.report_spec(), results, None, report.parent)
    (whole,) = runs_page.pages(content).values()
    monkeypatch.setattr(runs_page, "ON_ONE_PAGE", 3)
    first, *others = (pages := runs_page.pages(content)).items()
    tasks = list(dict.fromkeys(section["column"].task for section in content["sections"]))
    assert [name for name, _ in others] == [f"runs-{task}.html" for task in tasks] and len(tasks) > 1
    anchors = {name: set(re.findall(r'\sid="([^"]+)"', page)) for name, page in pages.items()}
    links = re.findall(r'href="(runs-[^"#]+)#([^"]+)"', first[1])
    assert links and all(html.unescape(anchor) in anchors[name] for name, anchor in links)
    cells = set(re.findall(r'<tr id="([^"]+)"', whole))
    assert cells and all(cell in anchors[f"runs-{cell.split('.')[0]}.html"] for cell in cells), "as its script says"
    assert all(page in first[1].partition("const page")[2] for page, _ in others) and "const page" not in whole


def test_a_number_leads_to_its_runs_and_these_to_their_log_spec_and_predictions(report):
    page, runs = report.read_text(), report.with_name("runs.html").read_text()
    cell = re.search(r'<a href="runs\.html#(odd\.run\.all\.tiny\.linear\.top_k\.k03)">(?:<strong>)?76\.5', page)
    line = re.search(rf'<tr id="{re.escape(cell[1])}".*?</tr>', runs, re.DOTALL)[0]
    for seed in invented.SEEDS:
        folder = f"../../runs/odd/all/tiny/linear/top_k/k03/seed{seed}"
        for link in (f"{folder}/metrics.json", f"{folder}/predictions.parquet", f"{folder}/cost.json"):
            assert f'href="{link}"' in line
        assert f'href="../../logs/train/odd/all/tiny/linear/top_k/k03/seed{seed}.log"' in line
    frozen = re.search(r'<tr id="odd\.run\.all\.tiny\.linear\.frozen\.base".*?</tr>', runs, re.DOTALL)[0]
    assert frozen.count('href="../../logs/fit_heads/odd/all/tiny/linear/frozen/base.log"') == 2


def test_every_table_and_figure_has_links_to_its_formats(report):
    page = report.read_text()
    for name in ("main.csv", "main.tex", "main.md"):
        assert f'href="tables/{name}"' in page
    assert 'href="figures/layers.svg"' in page
    assert (report.parent / "tables/main.tex").read_text().split("\n")[2] in html.unescape(page), "the text to copy"
