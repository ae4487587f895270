"""Step `train`: one run, or several seeds of a cell one after the other, from spec to records.

metrics.json is written last. Of several seeds those are trained whose records are not there or of another spec. One
that fails leaves the others; the job fails then, and the next trains what is missing.
"""

from argparse import Namespace
from pathlib import Path

from thaw.core import layout, retraining
from thaw.core.boundaries import taught_parts
from thaw.core.devices import run_nondeterministic_if_needed
from thaw.core.digests import digest
from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import read_json
from thaw.core.runtime import explain_error, log, name_job, run_step, set_threads
from thaw.core.step_arguments import RUN_INPUTS, parse_arguments
from thaw.schema.experiment import threads_of
from thaw.schema.phases import PhaseConfig
from thaw.training import run_inputs


def main() -> None:
    """Check that what is in the folders is what the run was planned for, train, and write the records."""
    arguments = parse_arguments(
        __doc__,
        *RUN_INPUTS,
        ("--if-missing", {"action": "store_true", "help": "do nothing where the records are there, of this spec"}),
        out="folder of the run; with specs of several seeds the one above theirs",
    )
    spec = {key: value for key, value in arguments.spec.items() if key != "begun"}
    if "together" in spec:
        train_missing(spec["together"], arguments)
    elif arguments.if_missing and is_done(arguments.out, spec):
        log("its records are there")
    else:
        retraining.begin(arguments.out)
        train_one(spec, arguments)


def train_one(spec: dict, arguments: Namespace) -> None:
    """Train a run. Args: spec; the parsed arguments, for their folders."""
    set_threads(threads_of(spec))
    run_nondeterministic_if_needed(lambda: execute(spec, arguments))
    retraining.end(arguments.out)


def train_missing(specs: list[dict], arguments: Namespace) -> None:
    """Train the runs whose records are not there or of another spec. Args: specs; the parsed arguments.

    Raises UserError, after all of them, where some failed: out of memory, or by a mistake in what they read.
    """
    runs = [run_arguments(number, specs, arguments) for number in range(len(specs))]
    left = [(spec, run) for spec, run in zip(specs, runs, strict=True) if not is_done(run.out, spec)]
    for _, run in left:  # at once: else one of an older spec stays where this job is killed
        retraining.begin(run.out)
    failed = {}
    for spec, run in left:
        name_job(layout.label("train", run.out))
        try:
            train_one(spec, run)
        except (UserError, MemoryError, RuntimeError) as error:
            if (sentence := str(error) if isinstance(error, UserError) else explain_error(error)) is None:
                raise
            failed[spec["seed"]] = sentence
            log(f"failed: {sentence}")
    if failed:
        seeds = ", ".join(f"seed {seed}: {sentence}" for seed, sentence in failed.items())
        raise UserError(f"{len(failed)} of {len(specs)} runs failed ({seeds}); the others are there")


def run_arguments(number: int, specs: list[dict], arguments: Namespace) -> Namespace:
    """Return the arguments of one of several runs: its own folder, and its own file of each need that has several."""
    need = [[role, *(files[number : number + 1] if len(files) > 1 else files)] for role, *files in arguments.need]
    return Namespace(**{**vars(arguments), "need": need, "out": arguments.out / layout.of_seed(specs[number]["seed"])})


def is_done(folder: Path, spec: dict) -> bool:
    """Return whether the files of a run are there, and its record has the digest of its spec."""
    record, names = folder / "metrics.json", (*layout.WRITTEN["train"], *([layout.ENCODER] if spec["keep"] else []))
    there = all((folder / name).is_file() for name in ("metrics.json", *names))
    return there and read_json(record).get("digest") == digest(spec)


def execute(spec: dict, arguments: Namespace) -> None:
    """Train a run and write its folder. Args: spec; the parsed arguments, for their folders.

    A device is claimed for the training alone: imports and opening come before it, writing after it.
    """
    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.core.files import save_tensors
    from thaw.evaluation.log_lines import result_line
    from thaw.training.adapted import BASE
    from thaw.training.device_placement import prepare, to_cpu, to_device
    from thaw.training.progress import Progress
    from thaw.training.run_files import write_run
    from thaw.training.training_run import TrainingRun, train

    watch = Stopwatch()
    with watch("load"):
        (inputs,) = run_inputs.open_inputs(spec, arguments)
        needs = run_inputs.open_needs(spec, arguments)
        run = TrainingRun(spec, inputs, start(spec, needs), run_inputs.chosen(needs), taught(spec, needs, inputs))
        prepare(run)
    with claimed(watch) as device:
        progress = Progress(arguments.out, spec, watch, device)
        (left,) = to_cpu([run], train([to_device(run, device)], watch, progress))
        cost = left.cost | measure_cost(watch, device)
    if spec["keep"]:
        note = {BASE: read_json(arguments.encoder / "card.json")["sha256"]} | (
            left.inserts.note() if left.inserts else {}
        )
        save_tensors(arguments.out / layout.ENCODER, left.encoder, note)
    write_run(arguments.out, spec, run.context, left, left.outcome, cost)
    log(result_line(run.context.task, left.outcome, cost["seconds"]["total"]))
    progress.end()


def start(spec: dict, needs: dict[str, Path]):
    """Return the tensors of the run to start from, None where there is none.

    Args: spec; the files of what the run needs, by role. Raises UserError where that run kept the weights of another
    epoch.
    """
    from safetensors.torch import load_file

    from thaw.adaptation.peft_modules import read_insert_metadata
    from thaw.training.checkpoints import Start

    if "start" not in needs:
        return None
    folder, metrics = needs["start"].parent, read_json(needs["start"])
    phase = PhaseConfig.of_spec(metrics["spec"]["phases"][-1])
    if phase.optimizer != "lbfgs" and phase.pick != spec["after"]["epoch"]:
        raise UserError(
            f"after: checkpoint: {spec['after']['epoch']} is asked for, but that run ({folder}) kept its "
            f"{phase.pick} epoch; change after: checkpoint: or that strategy's checkpoint:"
        )
    encoder = folder / layout.ENCODER
    if not encoder.is_file() and any(set(entry["components"]) - {"head"} for entry in metrics["spec"]["phases"]):
        raise UserError(f"{encoder} is missing: a run that others start after must say keep: true in its strategy")
    with wrap_corruption(folder, f"{folder}/metrics.json"):
        head = {} if spec["after"].get("encoder_alone") else load_file(folder / "head.safetensors")
        return Start(head, load_file(encoder), read_insert_metadata(encoder)) if encoder.is_file() else Start(head, {})


def taught(spec: dict, needs: dict[str, Path], inputs):
    """Return what the run's teacher gave, or itself with dropout; None without. Args: as of `start`; what is read."""
    from thaw.training.live_teacher import LiveTeacher
    from thaw.training.taught import TeacherOutputs

    if "live_teacher" in needs:
        return LiveTeacher(inputs, needs["live_teacher"], spec["teacher"]["run"], spec["seed"])
    if "teacher" not in needs:
        return None
    return TeacherOutputs(needs["teacher"], taught_parts(spec["phases"]))


if __name__ == "__main__":
    run_step(main)
