"""Step `figure`: one figure of an experiment, as PDF, SVG and PNG, with the CSV behind it."""

import argparse
import json
from pathlib import Path

from thaw.outputs import figures
from thaw.outputs.answers import Answers
from thaw.outputs.changes import change_figure
from thaw.outputs.curves import probe_figure
from thaw.outputs.domains import domain_figure
from thaw.outputs.gains import gain_figure
from thaw.outputs.gradients import gradient_figure
from thaw.outputs.heads import heads_figure
from thaw.outputs.heat import heat_figure
from thaw.outputs.information import information_figure
from thaw.outputs.maps import attention_figure
from thaw.outputs.mixes import mix_figure
from thaw.outputs.normalised import normalised_figure
from thaw.outputs.runs import read_runs
from thaw.outputs.trials import trial_figure
from thaw.runtime import log, run_step

OF_PROBES = {  # by kind, what is drawn from probes
    "probe_figure": probe_figure,
    "normalised_figure": normalised_figure,
    "change_figure": change_figure,
    "attention_figure": attention_figure,
    "heat_figure": heat_figure,
    "mix_figure": mix_figure,
    "information_figure": information_figure,
    "domain_figure": domain_figure,
    "heads_figure": heads_figure,
}
OF_RESULTS = {"trial_figure": trial_figure, "gradient_figure": gradient_figure}  # from runs and their folders


def main() -> None:
    """Read runs.csv, or what probes found, and write the figure under the path prefix --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    parser.add_argument("--runs", required=True, type=Path, help="runs.csv")
    parser.add_argument("--probes", type=Path, nargs="*", default=[], help="metrics.json of each probe")
    parser.add_argument("--results", required=True, type=Path, help="where histories, answers and trials of runs lie")
    parser.add_argument("--out", required=True, type=Path, help="path without the ending")
    arguments = parser.parse_args()
    if arguments.spec["kind"] == "gain_figure":
        runs, answers = read_runs(arguments.runs), Answers(arguments.results)
        gain_figure(arguments.probes, runs, arguments.spec, answers, arguments.out)
    elif draw := OF_PROBES.get(arguments.spec["kind"]):
        draw(arguments.probes, arguments.spec, arguments.out)
    elif draw := OF_RESULTS.get(arguments.spec["kind"]):
        draw(read_runs(arguments.runs), arguments.spec, arguments.results, arguments.out)
    else:
        figures.draw(read_runs(arguments.runs), arguments.spec, arguments.out)
    log(f"figure: {arguments.out}.{{pdf,svg,png,csv}}")


if __name__ == "__main__":
    run_step(main)
