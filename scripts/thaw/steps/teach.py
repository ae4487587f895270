"""Step `teach`: what a finished run gives on training rows, once for all students, temperatures and seeds."""

from pathlib import Path

from thaw.core.devices import run_relaxed_if_needed
from thaw.core.digests import digest
from thaw.core.files import write_json
from thaw.core.runtime import hardware, log, run_step, set_threads
from thaw.core.step_arguments import RUN_INPUTS, any_number, parse_arguments, required
from thaw.schema.experiment import ComputeConfig
from thaw.training import run_inputs


def part(word: str) -> int | str:
    """Return a boundary by its number, or the attention of a layer by its name, from itself or the path of its card."""
    name = Path(word).stem.removeprefix("b")
    return int(name) if name.isdecimal() else name


def main() -> None:
    """Write the teacher's logits, its hidden states at the boundaries asked for, and last card.json."""
    arguments = parse_arguments(
        __doc__,
        *RUN_INPUTS,
        required("--run", "metrics.json of the run that teaches"),
        any_number("--boundaries", "of its hidden states, attention<n> of a layer, or their cards; or none", part),
        out="folder of the teacher's outputs",
    )
    spec = arguments.spec
    set_threads(ComputeConfig.model_validate(spec["compute"]).threads)
    run_relaxed_if_needed(lambda: execute(spec, arguments))


def execute(spec: dict, folders) -> None:
    """Read the rows with the teacher: a pass for the logits, one for hidden states. Args: spec; parsed arguments."""
    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.core.digests import file_sha256
    from thaw.features.excerpt import write_excerpt
    from thaw.features.extract import extract
    from thaw.training.context import read_rows
    from thaw.training.taught import Teacher

    watch = Stopwatch()
    with watch("load"):
        (inputs,) = run_inputs.open_inputs(spec, folders)
        teacher = Teacher(inputs, folders.run, spec["run"])
        rows = read_rows(spec, inputs.corpus)["train"]
        changes = {"digest": digest(spec), "weights": file_sha256(folders.run)}
        store = write_excerpt(inputs.store, folders.out, {"train": rows}, changes)
    numbers = sorted(set(folders.boundaries), key=str)
    with claimed(watch) as device:
        with watch("train"):  # it counts as training of the students
            card = teacher.write_logits(folders.out, rows, device)
            facts = extract(store, teacher.model.encoder, numbers, spec["dtype"], device) if numbers else {}
        cost = {"flops": teacher.flops(rows) * (1 + bool(numbers))} | measure_cost(watch, device)
    shared = {key: store.card[key] for key in ("digest", "weights", "tokenizer", "data")}
    shared |= {"dtype": spec["dtype"], "width": teacher.model.encoder.width, "device": hardware(device)["device"]}
    for n in numbers:
        which = {"boundary": n} if isinstance(n, int) else {"part": n}
        write_json(store.card_path(n), {**which, **shared, **facts[n]})
    write_json(folders.out / "cost.json", cost)
    write_json(folders.out / "card.json", {"spec": spec, "digest": digest(spec), **card})
    log(f"logits of {len(rows)} rows, {len(numbers)} boundaries, {cost['seconds']['total']:.1f} s")


if __name__ == "__main__":
    run_step(main)
