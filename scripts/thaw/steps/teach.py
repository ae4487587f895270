"""Step `teach`: what a finished run gives on training rows, once for all students, temperatures and seeds."""

from argparse import Namespace

from thaw.core import layout
from thaw.core.devices import run_again_if_needed
from thaw.core.digests import digest
from thaw.core.files import write_json
from thaw.core.runtime import hardware, log, run_step, set_threads
from thaw.core.step_arguments import RUN_INPUTS, any_number, parse_arguments, required
from thaw.schema.experiment import threads_of
from thaw.training import run_inputs


def main() -> None:
    """Write the teacher's logits, its hidden states at the boundaries asked for, and last card.json."""
    arguments = parse_arguments(
        __doc__,
        *RUN_INPUTS,
        required("--run", "metrics.json of the run that teaches"),
        any_number(
            "--boundaries", "of its hidden states, attention<n> of a layer, or their cards; or none", layout.part_named
        ),
        out="folder of the teacher's outputs",
    )
    spec = arguments.spec
    set_threads(threads_of(spec))
    run_again_if_needed(lambda: execute(spec, arguments))


def execute(spec: dict, arguments: Namespace) -> None:
    """Read the rows with the teacher. Args: spec; parsed arguments."""
    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.core.digests import file_sha256
    from thaw.core.files import locked
    from thaw.evaluation.result_files import read_rows
    from thaw.features.extract import StatesFormat, write_cards
    from thaw.features.store import write_excerpt
    from thaw.training.taught import Teacher

    watch = Stopwatch()
    with watch("load"):
        (inputs,) = run_inputs.open_inputs(spec, arguments)
        teacher = Teacher(inputs, arguments.run, spec["run"])
        rows = read_rows(spec, inputs.corpus)["train"]
        changes = {"digest": digest(spec), "weights": file_sha256(arguments.run)}
        store = write_excerpt(inputs.store, arguments.out, {"train": rows}, changes)
    parts, form = sorted(set(arguments.boundaries), key=str), StatesFormat.of(spec)
    with locked(store.folder):
        with claimed(watch) as device:
            with watch("train"):  # it counts as training of the students
                card, facts = teacher.write(store, rows, parts, form, device)
            cost = {"flops": teacher.flops(rows)} | measure_cost(watch, device)
        write_cards(store, teacher.encoder, form, facts, {"device": hardware(device)["device"]})
    write_json(arguments.out / "cost.json", cost)
    write_json(arguments.out / "card.json", {"spec": spec, "digest": digest(spec), **card})
    log(f"logits of {len(rows)} rows, {len(parts)} boundaries, {cost['seconds']['total']:.1f} s")


if __name__ == "__main__":
    run_step(main)
