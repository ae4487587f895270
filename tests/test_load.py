"""A thousand finished runs of two hundred tasks in one table and one report, within bounds of time and size."""

import time

import pytest

from load import Large
from tiny import tiny_encoder


@pytest.mark.slow
def test_a_thousand_runs_make_one_table_and_a_report_that_can_be_read(tmp_path):
    place = Large(tmp_path, tiny_encoder("bert", tmp_path / "tiny"), tasks=200, seeds=1, outputs=["main_table"])
    assert place.finish() == 1000
    begin = time.perf_counter()
    place.snakemake()
    seconds = time.perf_counter() - begin
    page = (place.folder / "results/outputs/mine/report.html").read_text()
    table = (place.folder / "results/outputs/mine/tables/main_table.md").read_text()
    assert all(f"task {number:03d}" in text for number in (1, 100, 200) for text in (page, table))
    assert place.planned() == {}
    print(f"\n1,000 runs: table and report in {seconds:.0f} s, the report {len(page) / 1e6:.1f} MB")
    examples = place.folder / "results/outputs/mine/examples.html"
    assert seconds < 300 and len(page) < 5e6 and examples.stat().st_size < 5e6
