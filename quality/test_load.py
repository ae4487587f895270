"""A thousand finished runs of two hundred tasks in tables, figures and report, within bounds of time and size."""

import time

import pytest

import browser
from load import Large
from tiny import tiny_encoder

OUTPUTS = ["main_table", "advice", "layers", "cost"]


@pytest.mark.slow
def test_a_thousand_runs_make_tables_figures_and_a_report_that_opens_at_once(tmp_path):
    place = Large(tmp_path, tiny_encoder("bert", tmp_path / "tiny"), tasks=200, seeds=1, outputs=OUTPUTS)
    assert place.finish() == 1000
    begin = time.perf_counter()
    place.snakemake()
    seconds = time.perf_counter() - begin
    folder = place.folder / "results/outputs/mine"
    page = (folder / "report.html").read_text()
    table = (folder / "tables/main_table.md").read_text()
    assert all(f"task {number:03d}" in text for number in (1, 100, 200) for text in (page, table))
    assert place.planned() == {}
    print(f"\n1,000 runs: tables, figures and report in {seconds:.0f} s, the report {len(page) / 1e6:.1f} MB")
    runs = folder / "runs.html"
    assert seconds < 300 and len(page) < 5e6 and runs.stat().st_size < 5e6
    if not browser.CHROMIUM:
        pytest.skip("no Chromium: the time of the first screen is not measured")
    painted = browser.first_paint(folder / "report.html", tmp_path / "profile")
    print(f"first screen after {painted:.2f} s")
    assert painted < 1
