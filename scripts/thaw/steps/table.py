"""Step `table`: one table of an experiment, as CSV, LaTeX, Markdown and HTML."""

import argparse
import json
from pathlib import Path

from thaw.core.files import write_text
from thaw.core.runtime import log, run_step
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.runs_frame import read_runs
from thaw.outputs.tables import (
    claims,
    guidelines,
    pairwise_tests,
    parameters,
    recommendation,
    relative,
    reproduction,
    serving,
    table_model,
    variance,
    writers,
)

OF_SCORES = {"finding_table": claims.table, "serving_table": serving.table, "spread_table": variance.table}
OF_ANSWERS = {  # by kind, what reads more of the results than runs.csv
    "paper_table": reproduction.table,
    "advice_table": recommendation.table,
    "comparison_table": pairwise_tests.table,
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
        table = made(runs, spec, PredictionFiles(arguments.results))
    else:
        table = OF_SCORES.get(spec["kind"], table_model.table)(runs, spec)
    table.notes += spec.get("differs", [])
    for ending, written in writers.FORMATS.items():
        write_text(f"{arguments.out}.{ending}", written(table))
    log(f"table: {arguments.out}.{{{','.join(writers.FORMATS)}}}")


if __name__ == "__main__":
    run_step(main)
