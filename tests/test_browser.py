"""The report in a real browser: nothing goes wrong or leaves the page, all fits, and what is a click away is there."""

import csv
import io
import shutil

import pytest

import invented
from browser import CHROMIUM
from test_runs_page import write_evidence
from thaw.outputs.figures import cost_front
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.report import shown_outputs

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs Chromium, which is not installed here")

ROWS = "[...document.querySelectorAll('#main tbody')].map(part => [...part.rows].map(row => row.cells[0].textContent))"
CLOSED = "document.querySelectorAll('details:not([open])').length"


@pytest.fixture(scope="module")
def report(invented_results, tmp_path_factory):
    """A report in which something is missing, cut, flagged and made otherwise."""
    folder = tmp_path_factory.mktemp("browser")
    results = folder / "results"
    shutil.copytree(invented_results, results)
    shutil.rmtree(results / "runs/odd/all/tiny/linear/full/base/seed1")
    return invented.draw_report(results, folder, missing=True)


def test_nothing_goes_wrong_and_no_request_leaves_the_page(browser, report):
    browser.open(report, 1280)
    urls = [event["request"]["url"] for event in browser.happened("Network.requestWillBeSent")]
    assert urls[0] == report.resolve().as_uri() and all(url.startswith("data:") for url in urls[1:])
    for kind in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Network.loadingFailed"):
        assert browser.happened(kind) == []
    assert browser.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    links = "[...document.querySelectorAll('a[href^=\"#\"]')].filter(a => !document.querySelector(a.hash)).length"
    assert browser.evaluate(links) == 0


def test_a_click_on_a_head_sorts_within_each_part_of_the_table(browser, report):
    browser.open(report, 1280)
    head = "document.querySelectorAll('#main thead th')[2]"
    before = browser.evaluate(ROWS)
    turns = {}
    for _ in range(3):
        browser.evaluate(f"{head}.querySelector('button').click()")
        turns[browser.evaluate(f"{head}.getAttribute('aria-sort')")] = browser.evaluate(ROWS)
    baselines, runs, ensembles = turns["descending"]
    assert runs == ["Full", "Top k (k\u00a0=\u00a03)", "Stack", "Top k (k\u00a0=\u00a01)", "Frozen"]
    assert baselines == ["Bag of words", "Random weights, frozen", "Cosine similarity (no training)", "Majority class"]
    assert ensembles == ["All full"] and turns["ascending"][1] == runs[::-1]
    assert turns["ascending"][0][-1] == "Majority class", "what has no number goes last, whichever way"
    assert turns[None] == before


def test_a_table_sorts_by_keyboard_too(browser, report):
    browser.open(report, 1280)
    heads = "[...document.querySelectorAll('#main thead th')].map(head => head.getAttribute('aria-sort'))"
    browser.evaluate("document.querySelector('#main thead button').focus()")
    browser.press("Enter", 13, "\r")
    assert browser.evaluate(heads) == ["ascending", None, None]
    browser.evaluate("document.querySelectorAll('#main thead button')[1].focus()")
    browser.press(" ", 32, " ")
    assert browser.evaluate(heads) == [None, "descending", None]
    assert browser.evaluate(
        "[...document.querySelectorAll('table.sortable th button')].every(b => b.textContent.trim())"
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_overflows_the_page(browser, report, width):
    browser.open(report, width)
    browser.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    boxes = "[...document.querySelectorAll('table')].map(t => [t.scrollWidth, t.parentElement.clientWidth])"
    wide = [box for table, box in browser.evaluate(boxes) if table > box]
    assert bool(wide) == (width == 390), "on a phone wide tables scroll within their box"
    outside = "t => !t.parentElement.classList.contains('scroll')"
    assert browser.evaluate(f"[...document.querySelectorAll('table')].filter({outside}).length") == 0


def test_on_paper_everything_is_open_and_there_are_no_sort_marks(browser, report):
    browser.open(report, 1280)
    closed = browser.evaluate(CLOSED)
    browser.evaluate(f"addEventListener('beforeprint', () => window.closedOnPaper = {CLOSED})")
    assert browser.ask("Page.printToPDF")["data"].startswith("JVBERi0")  # %PDF- in base64
    assert browser.evaluate("closedOnPaper") == 0 and browser.evaluate(CLOSED) == closed > 0
    mark = "getComputedStyle(document.querySelector('#main th button'), '::before').display"
    assert browser.evaluate(mark) != "none"
    browser.ask("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate(mark) == "none"
    assert browser.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.ask("Emulation.setEmulatedMedia", media="")


COUNT = "document.querySelectorAll('%s').length"
SHOWN = "[...document.querySelectorAll('%s')].filter(part => part.offsetParent !== null).map(part => part.textContent)"


@pytest.fixture(scope="module")
def with_evidence(invented_results, invented_frame, tmp_path_factory):
    """A report whose figure is a cost figure, packed until it is asked for, with its page of runs."""
    results = tmp_path_factory.mktemp("evidence") / "results"
    shutil.copytree(invented_results, results)
    write_evidence(results)
    folder = results / "outputs/invented"
    invented.draw_report(results, folder)
    figure = cost_front.build(OutputData("", invented_frame), invented.shown("a", "cost_figure"))
    figure.write(folder / "figures/layers")

    def but_figures(write):
        return lambda path, content: write(path, content) if path.parent.name != "figures" else None

    with pytest.MonkeyPatch.context() as patch:
        for name in ("write_text", "write_json"):
            patch.setattr(invented, name, but_figures(getattr(invented, name)))
        patch.setattr(shown_outputs, "ON_DEMAND", 1000)
        return invented.draw_report(results, folder)


def click(browser, selector: str) -> None:
    browser.evaluate(f"document.querySelector({selector!r}).click()")


def test_a_click_on_a_number_shows_its_command_and_the_way_to_its_runs(browser, with_evidence):
    browser.open(with_evidence, 1280)
    click(browser, 'td a[href$="odd.run.all.tiny.linear.full.base"]')
    assert browser.evaluate("document.querySelector('.pop code').textContent").count("full/base/seed") == 2
    link = browser.evaluate("document.querySelector('.pop a').getAttribute('href') ?? ''")
    assert link.endswith("runs.html#odd.run.all.tiny.linear.full.base")
    box = browser.evaluate("(b => [b.left, b.right])(document.querySelector('.pop').getBoundingClientRect())")
    assert box[0] >= 0 and box[1] <= 1280
    click(browser, "h1")
    assert browser.evaluate(COUNT % ".pop") == 0


def test_filters_hide_rows_columns_and_baselines(browser, with_evidence):
    browser.open(with_evidence, 1280)
    names = "#main tbody:not(.name) th[scope=row]"
    before = browser.evaluate(SHOWN % names)
    assert "Full" in before and "Majority class" in before
    labels = browser.evaluate("[...document.querySelectorAll('#filters label')].map(label => label.textContent)")
    boxes = {text.strip(): n for n, text in enumerate(labels)}
    for name in ("Full", "baselines", "Entities (synthetic)"):
        browser.evaluate(f"document.querySelectorAll('#filters label input')[{boxes[name]}].click()")
    after = browser.evaluate(SHOWN % names)
    assert "Full" not in after and "Majority class" not in after and "Stack" in after
    heads = browser.evaluate(SHOWN % "#main thead th")
    assert len(heads) == 2 and "R&D" in heads[1]
    cells = "[...document.querySelector('#main tbody:last-of-type tr').cells].filter(cell => !cell.hidden).length"
    assert browser.evaluate(cells) == 2


def test_a_packed_figure_is_drawn_when_it_is_asked_for_with_a_tooltip_at_each_point(browser, with_evidence):
    browser.open(with_evidence, 1280)
    assert browser.evaluate(COUNT % ".stage img") == 0
    click(browser, "button.draw")
    for _ in range(50):
        if browser.evaluate(COUNT % ".stage img") == 1:
            break
        browser.evaluate("new Promise(done => setTimeout(done, 50))")
    assert browser.evaluate("document.querySelector('.stage img').naturalWidth") > 100
    assert browser.evaluate(COUNT % ".stage a.spot") == 2 * len(invented.POINTS)
    browser.evaluate("document.querySelector('.stage a.spot').focus()")
    tip = browser.evaluate("getComputedStyle(document.querySelector('.stage a.spot'), '::after').display")
    assert tip == "block" and browser.happened("Runtime.exceptionThrown") == []


def test_a_button_copies_the_table(browser, with_evidence):
    browser.open(with_evidence, 1280)
    browser.ask("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    assert browser.evaluate("document.getElementById('main.TeX').content.textContent").startswith("% table main")
    click(browser, "button[data-copy]")
    browser.evaluate("new Promise(done => setTimeout(done, 300))")
    assert browser.evaluate("document.querySelector('button[data-copy]').textContent") == "copied"


COPIED = """(async () => {
  let taken = '';
  navigator.clipboard.writeText = async text => { taken = text };
  document.querySelector('#cost_table .files button:nth-child(%d)').click();
  await new Promise(done => setTimeout(done, 100));
  return taken;
})()"""
WITHOUT = """[...document.querySelectorAll('table')].filter(table => !(
  table.closest('figure')?.nextElementSibling?.matches('.files') ||
  table.nextElementSibling?.matches('.files')
)).length"""


def test_a_table_without_files_is_copied_as_it_is_shown(browser, with_evidence):
    browser.open(with_evidence, 1280)
    assert browser.evaluate(WITHOUT) == 0
    rows = browser.evaluate("[...document.querySelectorAll('#cost_table tbody th')].map(head => head.textContent)")
    text, tex, markdown = (browser.evaluate(COPIED % place) for place in (1, 2, 3))
    read = list(csv.reader(io.StringIO(text)))
    assert [row[0] for row in read[1:]] == rows and read[0][:3] == ["Strategy", "Parameters", "Memory"]
    assert markdown.splitlines()[1].count("--:|") == len(read[0]) - 1 and len(markdown.splitlines()) == len(read) + 1
    assert tex.startswith("\\begin{tabular}{lrr") and r"R\&D\_50\%" in tex
    assert browser.happened("Runtime.exceptionThrown") == []
    browser.evaluate("document.querySelector('#filters label input').click()")
    assert len(browser.evaluate(COPIED % 1)) < len(text), "what a filter hides is copied"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_of_runs_fits_and_says_nothing_to_the_console(browser, with_evidence, width):
    browser.open(with_evidence.with_name("runs.html"), width)
    browser.evaluate("document.querySelectorAll('details.task').forEach(part => part.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.happened("Runtime.exceptionThrown") == browser.happened("Log.entryAdded") == []
    assert browser.evaluate(COUNT % "table.runs tbody tr") > 2


def test_a_link_to_a_cell_unfolds_its_task(browser, with_evidence):
    browser.open(with_evidence.with_name("runs.html"), 1280)
    anchor = "odd.run.all.tiny.linear.full.base"
    browser.evaluate("document.querySelectorAll('details.task').forEach(part => part.open = false)")
    browser.evaluate(f"location.hash = '{anchor}'; new Promise(done => setTimeout(done, 200))")
    assert browser.evaluate(f"document.getElementById('{anchor}').closest('details').open")
    assert -1 <= browser.evaluate(f"document.getElementById('{anchor}').getBoundingClientRect().top") <= 900
