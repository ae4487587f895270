"""Step `figure`: one figure of an experiment, as PDF, SVG and PNG, with the CSV behind it."""

import argparse
import json
from pathlib import Path

from thaw.core.runtime import log, run_step
from thaw.declarations.figures import FIGURES
from thaw.outputs import gaps
from thaw.outputs.frame.output_data import OutputData


def main() -> None:
    """Read runs.csv, or what probes found, and write the figure under the path prefix --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    parser.add_argument("--runs", required=True, type=Path, help="runs.csv")
    parser.add_argument("--probes", type=Path, nargs="*", default=[], help="metrics.json of each probe")
    parser.add_argument("--results", required=True, type=Path, help="where histories, predictions and trials are")
    parser.add_argument("--out", required=True, type=Path, help="path without the ending")
    arguments = parser.parse_args()
    spec, data = arguments.spec, OutputData(arguments.results, arguments.runs, arguments.probes)

    def draw() -> None:
        FIGURES[spec["kind"]].load()(data, spec).write(arguments.out)

    gaps.draw_or_gap(draw, lambda why: gaps.figure(spec, why).write(arguments.out), arguments.out)
    log(f"figure: {arguments.out}.{{pdf,svg,png,csv}}")


if __name__ == "__main__":
    run_step(main)
