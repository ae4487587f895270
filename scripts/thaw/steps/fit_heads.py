"""Step `fit_heads`: a head on frozen features, for all seeds in one job: fitted to convergence, or trained for a while.

A linear head fitted to convergence is a convex problem, so that the seeds share one fit. Heads that are trained stand
side by side, each with its own random numbers. Either way each seed gets its folder as if it had been trained alone.
Its bytes do not depend on which other seeds were asked for.
"""

import math
from argparse import Namespace

from thaw.core import layout
from thaw.core.devices import run_again_if_needed
from thaw.core.processes import Processes
from thaw.core.runtime import log, run_step, set_threads
from thaw.core.step_arguments import CORES, RUN_INPUTS, at_least_one, parse_arguments
from thaw.schema.experiment import threads_of
from thaw.training import run_inputs


def main() -> None:
    """Check that what is in the folders is what the runs were planned for, fit once, and write each seed."""
    arguments = parse_arguments(
        __doc__,
        at_least_one("--seeds", "seeds to fit; the spec has none", int),
        CORES,
        *RUN_INPUTS,
        out="folder of the variant; seeds are written below it",
    )
    spec = arguments.spec
    threads = threads_of(spec)
    if spec["phases"][0].get("optimizer") == "lbfgs":
        set_threads(threads)
        run_again_if_needed(lambda: fit(spec, arguments))
    else:
        processes = Processes(threads, arguments.cores)
        set_threads(processes.own_threads)
        run_again_if_needed(lambda: train(spec, arguments, processes))


def fit(spec: dict, arguments: Namespace) -> None:
    """Fit the head in each view that the run reads, and write every seed's folder with the better one.

    Args: spec; the parsed arguments, for their folders and seeds. Of equal views the first is taken.
    """
    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.training.checkpoints import write_folds, write_run
    from thaw.training.head_fitting import HeadFit
    from thaw.training.seeds_together import operations, prepare, to_device

    watch = Stopwatch()
    with watch("load"):
        runs = [HeadFit(spec, inputs) for inputs in run_inputs.open_inputs(spec, arguments)]
        for run in runs:
            prepare(run)
    with claimed(watch, operations(runs)) as device:
        fits = [to_device(run, device).run(watch) for run in runs]
        for fitted in fits:
            fitted.head.cpu()
        spent = measure_cost(watch, device)
    scores = [-math.inf if fitted.choice_score is None else fitted.choice_score for fitted in fits]
    best = scores.index(max(scores))
    run, fitted = runs[best], fits[best]
    cost = fitted.cost | {"flops": sum(one.cost["flops"] for one in fits)} | spent
    if len(runs) > 1:
        log(f"pairs read {run.pairs}, chosen by {'cross-validation' if run.folds else run.context.validation}")
    for seed in arguments.seeds:
        outcome = run.outcome(fitted, seed)
        outcome["chosen"] |= {"pairs": run.pairs} if len(runs) > 1 else {}
        folder = arguments.out / layout.of_seed(seed)
        write_folds(folder, run.context, fitted, fitted.cross_validated.predictions)
        write_run(folder, spec | {"seed": seed}, run.context, fitted, outcome, cost)
        log_result(seed, run, outcome, cost)


def train(spec: dict, arguments: Namespace, processes: Processes) -> None:
    """Train the head with every seed, and write their folders. Args: as of `fit`; what shares the training."""
    from thaw.compute_cost.stopwatch import Stopwatch
    from thaw.training.checkpoints import write_folds, write_run
    from thaw.training.seeds_together import train_on_device
    from thaw.training.training_run import TrainingRun

    watch = Stopwatch()
    with watch("load"):
        (inputs,) = run_inputs.open_inputs(spec, arguments)
        settings = run_inputs.chosen(run_inputs.open_needs(spec, arguments))
        runs = [TrainingRun(spec | {"seed": seed}, inputs, None, settings) for seed in arguments.seeds]
    trained, shared = train_on_device(runs, watch, processes, len(runs))
    for run, left in zip(runs, trained, strict=True):
        seed, cost = run.spec["seed"], left.cost | shared
        write_folds(arguments.out / layout.of_seed(seed), run.context, left, {})
        write_run(arguments.out / layout.of_seed(seed), run.spec, run.context, left, left.outcome, cost)
        log_result(seed, run, left.outcome, cost)


def log_result(seed: int, run, outcome: dict, cost: dict) -> None:
    """Log the test score of a seed, and its share of the job's seconds."""
    from thaw.evaluation.result_files import result_line

    log(f"seed {seed}: {result_line(run.context.task, outcome, cost['seconds']['total'])}")


if __name__ == "__main__":
    run_step(main)
