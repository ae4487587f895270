"""Step `table`: one table of an experiment, as CSV, LaTeX, Markdown and HTML."""

import argparse
import json
from pathlib import Path

from thaw.core.runtime import log, run_step
from thaw.declarations.tables import TABLES
from thaw.outputs import gaps
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import writers


def main() -> None:
    """Read runs.csv, and write the table under the path prefix --out; the declared HTML last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    parser.add_argument("--runs", required=True, type=Path, help="runs.csv")
    parser.add_argument("--results", required=True, type=Path, help="where the predictions of runs are")
    parser.add_argument("--out", required=True, type=Path, help="path without the ending")
    arguments = parser.parse_args()
    spec, data = arguments.spec, OutputData(arguments.results, arguments.runs)

    def draw() -> None:
        table = TABLES[spec["kind"]].load()(data, spec)
        table.notes += spec.get("differs", [])
        writers.write(table, arguments.out)

    gaps.draw_or_gap(draw, lambda why: writers.write(gaps.table(spec, why), arguments.out), arguments.out)
    log(f"table: {arguments.out}.{{{','.join(writers.FORMATS)}}}")


if __name__ == "__main__":
    run_step(main)
