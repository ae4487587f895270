"""Step `fit_heads`: a linear head on frozen features, fitted to convergence, for all seeds in one job.

The problem is convex, so that the seeds share one fit; each gets its folder as if it had been trained alone, and its
bytes do not depend on which other seeds were asked for.
"""

import argparse
import json
from pathlib import Path

from thaw.runtime import claim_device, log, run_step, set_threads
from thaw.settings import Compute


def main() -> None:
    """Check that what lies in the folders is what the runs were planned for, fit once, and write each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON of a run, without its seed")
    parser.add_argument("--seeds", required=True, type=int, nargs="+")
    parser.add_argument("--data", required=True, type=Path, help="folder of the corpus, as prepare writes it")
    parser.add_argument("--encoder", required=True, type=Path, help="folder of the encoder, as fetch writes it")
    parser.add_argument("--features", required=True, type=Path, help="folder of the store")
    parser.add_argument("--out", required=True, type=Path, help="folder of the variant; seeds are written below it")
    arguments = parser.parse_args()
    from thaw.analysis.results import check_digest

    spec = arguments.spec
    for name, card in (("data", "card"), ("encoder", "card"), ("features", "tokens")):
        check_digest(getattr(arguments, name) / f"{card}.json", spec[name])
    set_threads(Compute.model_validate(spec["compute"]).threads)
    with claim_device() as device:
        fit(spec, arguments, device)


def fit(spec: dict, folders, device) -> None:
    """Fit the head on a device and write every seed's folder.

    Args: spec; the parsed arguments, for their folders and seeds. Payloads that were freed are made again first.
    """
    from thaw.analysis.cost import Stopwatch, measured
    from thaw.data.corpus import Corpus
    from thaw.encoders.parity import check_once
    from thaw.features.extract import remake
    from thaw.features.store import Store
    from thaw.training.fitting import Fit

    watch = Stopwatch()
    with watch("load"):
        corpus, store = Corpus(folders.data), Store(folders.features)
        read = [phase["boundary"] for phase in spec["phases"] if phase["boundary"] is not None]
        store.require(read, lambda missing: remake(store, folders.encoder, missing, device))
        if any(boundary < spec["layers"] for boundary in read):
            check_once(folders.encoder)
        run = Fit(spec, corpus, store, folders.encoder, device)
    fitted = run.run(watch)
    cost = fitted.cost | measured(watch, device)
    for seed in folders.seeds:
        write(folders.out / f"seed{seed}", spec | {"seed": seed}, run, fitted, cost)
    log(f"seeds {', '.join(map(str, folders.seeds))} written to {folders.out}")


def write(out: Path, spec: dict, run, fitted, cost: dict) -> None:
    """Write one seed's files: tensors first, metrics.json last."""
    import pandas

    from thaw.analysis.results import predictions_frame, save_tensors, write_result

    save_tensors(out / "head.safetensors", fitted.head.state_dict())
    main = run.task["metrics"][0]
    history = pandas.DataFrame(fitted.history).rename(columns={"validation": f"validation_{main}"})
    predictions = predictions_frame(run.task, run.corpus, fitted.answers)
    write_result(out, spec, run.outcome(fitted, spec["seed"]), cost, predictions, history)


if __name__ == "__main__":
    run_step(main)
