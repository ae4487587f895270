"""Step `fit_heads`: a linear head on frozen features, fitted to convergence, for all seeds in one job.

The problem is convex, so that the seeds share one fit; each gets its folder as if it had been trained alone, and its
bytes do not depend on which other seeds were asked for.
"""

import argparse
import json
import math
from pathlib import Path

from thaw.runtime import claim_device, log, run_step, set_threads
from thaw.settings import Compute
from thaw.training import inputs


def main() -> None:
    """Check that what lies in the folders is what the runs were planned for, fit once, and write each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON of a run, without its seed")
    parser.add_argument("--seeds", required=True, type=int, nargs="+")
    inputs.add_arguments(parser)
    parser.add_argument("--out", required=True, type=Path, help="folder of the variant; seeds are written below it")
    arguments = parser.parse_args()
    spec = arguments.spec
    set_threads(Compute.model_validate(spec["compute"]).threads)
    with claim_device() as device:
        fit(spec, arguments, device)


def fit(spec: dict, folders, device) -> None:
    """Fit the head on a device in each view that the run reads, and write every seed's folder with the better one.

    Args: spec; the parsed arguments, for their folders and seeds. Of equal views the first is taken.
    """
    from thaw.analysis.cost import Stopwatch, measured
    from thaw.training.fitting import Fit

    watch = Stopwatch()
    with watch("load"):
        runs = [Fit(spec, found) for found in inputs.open_inputs(spec, folders, device)]
    fits = [run.run(watch) for run in runs]
    best = max(range(len(fits)), key=lambda i: -math.inf if fits[i].validation is None else fits[i].validation)
    run, fitted = runs[best], fits[best]
    cost = fitted.cost | {"flops": sum(found.cost["flops"] for found in fits)} | measured(watch, device)
    if len(runs) > 1:
        log(f"pairs read {run.pairs}, chosen on {run.task['validation']}")
    for seed in folders.seeds:
        outcome = run.outcome(fitted, seed)
        outcome["chosen"] |= {"pairs": run.pairs} if len(runs) > 1 else {}
        write(folders.out / f"seed{seed}", spec | {"seed": seed}, run, fitted, outcome, cost)
    log(f"seeds {', '.join(map(str, folders.seeds))} written to {folders.out}")


def write(out: Path, spec: dict, run, fitted, outcome: dict, cost: dict) -> None:
    """Write one seed's files: tensors first, metrics.json last."""
    import pandas

    from thaw.analysis.further import all_predictions
    from thaw.analysis.results import save_tensors, write_result

    save_tensors(out / "head.safetensors", fitted.head.state_dict())
    main = run.task["metrics"][0]
    history = pandas.DataFrame(fitted.history).rename(columns={"validation": f"validation_{main}"})
    predictions = all_predictions(run.task, run.corpus, fitted.answers, fitted.further)
    write_result(out, spec, outcome, cost, predictions, history)


if __name__ == "__main__":
    run_step(main)
