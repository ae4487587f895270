"""Step `probe`: one probe on all layers of one encoder, pretrained or as runs left it, for all seeds.

metrics.json is written last.
"""

import argparse
import json
from pathlib import Path

from thaw.core.devices import look, run_relaxed_if_needed
from thaw.core.digests import digest
from thaw.core.files import write_json, write_text
from thaw.core.runtime import log, run_step, set_threads
from thaw.schema.experiment import ComputeConfig
from thaw.training import run_inputs


def main() -> None:
    """Check that what lies in the folders is what the probe was planned for, read all layers, fit, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    run_inputs.add_arguments(parser)
    parser.add_argument("--adapted", type=Path, nargs="*", default=[], help="card.json of an adapted encoder, by seed")
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="metrics.json of the runs that adapted it")
    parser.add_argument("--out", required=True, type=Path, help="folder of the probe")
    arguments = parser.parse_args()
    spec = arguments.spec
    set_threads(ComputeConfig.model_validate(spec["compute"]).threads)
    run_relaxed_if_needed(lambda: probe(spec, arguments))


def probe(spec: dict, folders) -> None:
    """Probe and write the results. Args: spec; the parsed arguments, for their folders."""
    import pandas

    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.encoders.registry import import_code
    from thaw.probes.registry import run

    watch = Stopwatch()
    with watch("load"):
        (pretrained,) = run_inputs.open_inputs(spec, folders)
        adapted = run_inputs.open_adapted(spec, folders.adapted, folders.runs, pretrained)
        if look()[0]:  # else nobody waits, and not each probe needs it
            import_code(folders.encoder)
    log(f"{spec['of']['probe']}: layers {', '.join(map(str, spec['read']))}")
    with claimed(watch) as device:
        adapted = {seed: one.on(device) for seed, one in adapted.items()}
        with watch("train"):
            rows, found = run(spec, pretrained.on(device), adapted)
        cost = measure_cost(watch, device)
    table = pandas.DataFrame(rows).to_csv(index=False, lineterminator="\n")
    write_text(folders.out / "layers.csv", table)
    write_json(folders.out / "cost.json", cost)
    write_json(folders.out / "metrics.json", {"spec": spec, "digest": digest(spec), **found})
    log(f"written to {folders.out}")


if __name__ == "__main__":
    run_step(main)
