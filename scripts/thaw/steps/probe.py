"""Step `probe`: one probe on all layers of one encoder, for all seeds. metrics.json is written last."""

import argparse
import json
from pathlib import Path

from thaw.records import digest, write_json, write_text
from thaw.runtime import claim_device, log, run_step, set_threads
from thaw.settings import Compute
from thaw.training import inputs


def main() -> None:
    """Check that what lies in the folders is what the probe was planned for, read all layers, fit, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    inputs.add_arguments(parser)
    parser.add_argument("--out", required=True, type=Path, help="folder of the probe")
    arguments = parser.parse_args()
    spec = arguments.spec
    set_threads(Compute.model_validate(spec["compute"]).threads)
    with claim_device() as device:
        probe(spec, arguments, device)


def probe(spec: dict, folders, device) -> None:
    """Probe on a device and write the results. Args: spec; the parsed arguments, for their folders."""
    import pandas

    from thaw.analysis.cost import Stopwatch, measured
    from thaw.probes.reading import Reading
    from thaw.probes.registry import PROBES, measure

    watch, rows, layers = Stopwatch(), [], []
    with watch("load"):
        (found,) = inputs.open_inputs(spec, folders, device)
        reading = Reading(spec, found)
    log(f"{spec['of']['probe']}: layers {', '.join(map(str, spec['read']))}")
    with watch("train"):
        for seed in spec["seeds"]:
            more, ends = PROBES[reading.entry.kind](reading, seed)
            rows, layers = rows + more, layers + ends
    table = pandas.DataFrame(rows).to_csv(index=False, lineterminator="\n")
    write_text(folders.out / "layers.csv", table)
    write_json(folders.out / "cost.json", measured(watch, device))
    record = {"spec": spec, "digest": digest(spec), "main": measure(reading), "layers": layers}
    write_json(folders.out / "metrics.json", record | {"majority": reading.majority()})
    log(f"written to {folders.out}")


if __name__ == "__main__":
    run_step(main)
