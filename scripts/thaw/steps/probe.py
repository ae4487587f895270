"""Step `probe`: one probe on all layers of one encoder, pretrained or as runs left it, for all seeds.

metrics.json is written last.
"""

from argparse import Namespace

from thaw.core.devices import gpu_status, run_again_if_needed
from thaw.core.digests import digest
from thaw.core.files import write_json, write_text
from thaw.core.runtime import log, run_step, set_threads
from thaw.core.step_arguments import RUN_INPUTS, any_number, parse_arguments
from thaw.schema.experiment import threads_of
from thaw.training import run_inputs


def main() -> None:
    """Check that what is in the folders is what the probe was planned for, read all layers, fit, and write."""
    arguments = parse_arguments(
        __doc__,
        *RUN_INPUTS,
        any_number("--adapted", "card.json of an adapted encoder, by seed"),
        any_number("--runs", "metrics.json of the runs that adapted it"),
        out="folder of the probe",
    )
    spec = arguments.spec
    set_threads(threads_of(spec))
    run_again_if_needed(lambda: probe(spec, arguments))


def probe(spec: dict, arguments: Namespace) -> None:
    """Probe and write the results. Args: spec; the parsed arguments, for their folders."""
    import pandas

    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.encoders.registry import import_code
    from thaw.probes.registry import run

    watch = Stopwatch()
    with watch("load"):
        (pretrained,) = run_inputs.open_inputs(spec, arguments)
        adapted = run_inputs.open_adapted(spec, arguments.adapted, arguments.runs, pretrained)
        if gpu_status()[0]:  # else nobody waits, and not each probe needs it
            import_code(arguments.encoder)
    log(f"{spec['of']['probe']}: layers {', '.join(map(str, spec['read']))}")
    with claimed(watch) as device:
        adapted = {seed: one.on(device) for seed, one in adapted.items()}
        with watch("train"):
            rows, record = run(spec, pretrained.on(device), adapted)
        cost = measure_cost(watch, device)
    table = pandas.DataFrame(rows).to_csv(index=False, lineterminator="\n")
    write_text(arguments.out / "layers.csv", table)
    write_json(arguments.out / "cost.json", cost)
    write_json(arguments.out / "metrics.json", {"spec": spec, "digest": digest(spec), **record})
    log(f"written to {arguments.out}")


if __name__ == "__main__":
    run_step(main)
