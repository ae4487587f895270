"""Step `figure`: one figure of an experiment, as PDF, SVG and PNG, with the CSV behind it."""

import argparse
import json
from pathlib import Path

from thaw.core.runtime import log, run_step
from thaw.outputs.figures import scores_and_cost
from thaw.outputs.figures.attention_change import attention_figure
from thaw.outputs.figures.domain_shift import domain_figure
from thaw.outputs.figures.gradient_norms import gradient_figure
from thaw.outputs.figures.head_pruning import heads_figure
from thaw.outputs.figures.information_curves import information_figure
from thaw.outputs.figures.layer_mix import mix_figure
from thaw.outputs.figures.normalised_curves import normalised_figure
from thaw.outputs.figures.pretraining_proximity import gain_figure
from thaw.outputs.figures.probe_curves import probe_figure
from thaw.outputs.figures.probe_heatmap import heat_figure
from thaw.outputs.figures.representation_change import change_figure
from thaw.outputs.figures.search_curve import trial_figure
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.runs_frame import read_runs

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
        runs, answers = read_runs(arguments.runs), PredictionFiles(arguments.results)
        gain_figure(arguments.probes, runs, arguments.spec, answers, arguments.out)
    elif draw := OF_PROBES.get(arguments.spec["kind"]):
        draw(arguments.probes, arguments.spec, arguments.out)
    elif draw := OF_RESULTS.get(arguments.spec["kind"]):
        draw(read_runs(arguments.runs), arguments.spec, arguments.results, arguments.out)
    else:
        scores_and_cost.draw(read_runs(arguments.runs), arguments.spec, arguments.out)
    log(f"figure: {arguments.out}.{{pdf,svg,png,csv}}")


if __name__ == "__main__":
    run_step(main)
