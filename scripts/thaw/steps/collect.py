"""Step `collect`: all runs of an experiment in one long table, runs.csv."""

import argparse
import json
from pathlib import Path

from thaw.core.files import write_text
from thaw.core.runtime import log, run_step
from thaw.outputs.frame import collection
from thaw.outputs.frame.runs_frame import COLUMNS


def main() -> None:
    """Read the records that the spec selects and write one row per run, split and metric."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    parser.add_argument("--results", required=True, type=Path)
    parser.add_argument("--logs", required=True, type=Path, help="where a missing result's log would be")
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    import pandas

    rows = collection.rows(arguments.spec, arguments.results, arguments.logs)
    table = pandas.DataFrame(rows, columns=COLUMNS)
    write_text(arguments.out, table.to_csv(index=False, lineterminator="\n"))
    log(f"collect: {table['digest'].nunique()} results of {arguments.spec['experiment']}, {len(table)} scores")


if __name__ == "__main__":
    run_step(main)
