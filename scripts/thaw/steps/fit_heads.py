"""Step `fit_heads`: a head on frozen features, for all seeds in one job: fitted to convergence, or trained for a while.

A linear head fitted to convergence is a convex problem, so that the seeds share one fit. Heads that are trained stand
side by side, each with its own random numbers. Either way each seed gets its folder as if it had been trained alone,
and its bytes do not depend on which other seeds were asked for.
"""

import argparse
import json
import math
from pathlib import Path

from thaw.core.devices import run_relaxed_if_needed
from thaw.core.runtime import log, run_step, set_threads
from thaw.schema.experiment import ComputeConfig
from thaw.training import run_inputs


def main() -> None:
    """Check that what lies in the folders is what the runs were planned for, fit once, and write each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON of a run, without its seed")
    parser.add_argument("--seeds", required=True, type=int, nargs="+")
    run_inputs.add_arguments(parser)
    parser.add_argument("--chosen", type=Path, nargs="*", default=[], help="chosen.json of the search")
    parser.add_argument("--out", required=True, type=Path, help="folder of the variant; seeds are written below it")
    arguments = parser.parse_args()
    spec = arguments.spec
    set_threads(ComputeConfig.model_validate(spec["compute"]).threads)
    solved = spec["phases"][0].get("optimizer") == "lbfgs"
    run_relaxed_if_needed(lambda: (fit if solved else train)(spec, arguments))
    log(f"seeds {', '.join(map(str, arguments.seeds))} written to {arguments.out}")


def fit(spec: dict, folders) -> None:
    """Fit the head in each view that the run reads, and write every seed's folder with the better one.

    Args: spec; the parsed arguments, for their folders and seeds. Of equal views the first is taken.
    """
    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.training.head_fitting import HeadFit
    from thaw.training.placing import operations, prepare, send
    from thaw.training.run_files import write_run

    watch = Stopwatch()
    with watch("load"):
        runs = [HeadFit(spec, found) for found in run_inputs.open_inputs(spec, folders)]
        prepare(runs[0])
    with claimed(watch, True, operations(runs)) as device:
        fits = [send(run, device).run(watch) for run in runs]
        spent = measure_cost(watch, device)
    best = max(range(len(fits)), key=lambda i: -math.inf if fits[i].validation is None else fits[i].validation)
    run, fitted = runs[best], fits[best]
    cost = fitted.cost | {"flops": sum(found.cost["flops"] for found in fits)} | spent
    if len(runs) > 1:
        log(f"pairs read {run.pairs}, chosen on {run.task['validation']}")
    for seed in folders.seeds:
        outcome = run.outcome(fitted, seed)
        outcome["chosen"] |= {"pairs": run.pairs} if len(runs) > 1 else {}
        write_run(folders.out / f"seed{seed}", spec | {"seed": seed}, run, fitted, outcome, cost)


def train(spec: dict, folders) -> None:
    """Train the head with every seed, and write their folders. Args: as of `fit`."""
    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.training.placing import hand_over, operations, prepare, send
    from thaw.training.run_files import write_run
    from thaw.training.training_run import TrainingRun, train_heads

    watch = Stopwatch()
    with watch("load"):
        (found,) = run_inputs.open_inputs(spec, folders)
        settings = run_inputs.chosen(spec, folders.chosen)
        runs = [TrainingRun(spec | {"seed": seed}, found, None, settings) for seed in folders.seeds]
        prepare(runs[0])
    with claimed(watch, True, operations(runs)) as device:
        trained = hand_over(runs, train_heads([send(run, device) for run in runs], watch))
        shared = measure_cost(watch, device, len(runs))
    for run, left in zip(runs, trained, strict=True):
        write_run(folders.out / f"seed{run.spec['seed']}", run.spec, run, left, left.outcome, left.cost | shared)


if __name__ == "__main__":
    run_step(main)
