"""Step `table`: one table of an experiment, as CSV, LaTeX, Markdown and HTML."""

import argparse
import json
from pathlib import Path

from thaw.outputs import (
    advice,
    comparisons,
    findings,
    formats,
    guidelines,
    papers,
    parameters,
    relative,
    serving,
    spread,
    tables,
)
from thaw.outputs.answers import Answers
from thaw.outputs.runs import read_runs
from thaw.records import write_text
from thaw.runtime import log, run_step

OF_SCORES = {"finding_table": findings.table, "serving_table": serving.table, "spread_table": spread.table}
OF_ANSWERS = {  # by kind, what reads more of the results than runs.csv
    "paper_table": papers.table,
    "advice_table": advice.table,
    "comparison_table": comparisons.table,
    "guideline_table": guidelines.table,
    "relative_table": relative.table,
    "parameter_table": parameters.table,
}


def main() -> None:
    """Read runs.csv, and write the table under the path prefix --out; the declared HTML last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    parser.add_argument("--runs", required=True, type=Path, help="runs.csv")
    parser.add_argument("--results", required=True, type=Path, help="where the answers of runs lie")
    parser.add_argument("--out", required=True, type=Path, help="path without the ending")
    arguments = parser.parse_args()
    spec, runs = arguments.spec, read_runs(arguments.runs)
    if made := OF_ANSWERS.get(spec["kind"]):
        table = made(runs, spec, Answers(arguments.results))
    else:
        table = OF_SCORES.get(spec["kind"], tables.table)(runs, spec)
    table.notes += spec.get("differs", [])
    for ending, written in formats.FORMATS.items():
        write_text(f"{arguments.out}.{ending}", written(table))
    log(f"table: {arguments.out}.{{{','.join(formats.FORMATS)}}}")


if __name__ == "__main__":
    run_step(main)
