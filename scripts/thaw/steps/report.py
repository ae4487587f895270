"""Step `report`: the one self-contained page of an experiment, and the same as an article in LaTeX."""

import argparse
import json
from pathlib import Path

from thaw.core.files import write_text
from thaw.core.runtime import log, run_step
from thaw.outputs.frame.runs_frame import read_runs
from thaw.outputs.report import report_page


def main() -> None:
    """Read runs.csv, the cards, and the tables and figures in the folder of --out; write page and article."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    parser.add_argument("--runs", required=True, type=Path, help="runs.csv")
    parser.add_argument("--results", required=True, type=Path)
    parser.add_argument("--command", required=True, help="what makes files again, up to their names")
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    runs = read_runs(arguments.runs)
    content = report_page.content(runs, arguments.spec, arguments.results, arguments.out.parent)
    page, paper = report_page.page(content, arguments.command), report_page.paper(content)
    write_text(arguments.out.with_name("paper.tex"), paper)
    write_text(arguments.out, page)
    log(f"report: {arguments.out}")


if __name__ == "__main__":
    run_step(main)
