"""The report in a real browser: nothing goes wrong, nothing leaves the page, tables sort, phones and paper fit."""

import shutil

import pytest

import invented
from browser import CHROMIUM

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
