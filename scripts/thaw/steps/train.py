"""Step `train`: one run, from spec to records. metrics.json is written last."""

from argparse import Namespace
from pathlib import Path

from thaw.core import layout
from thaw.core.boundaries import taught_parts
from thaw.core.devices import run_again_if_needed
from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import read_json
from thaw.core.runtime import log, run_step, set_threads
from thaw.core.step_arguments import RUN_INPUTS, parse_arguments
from thaw.schema.experiment import threads_of
from thaw.schema.phases import PhaseConfig
from thaw.training import run_inputs


def main() -> None:
    """Check that what is in the folders is what the run was planned for, train, and write the records."""
    arguments = parse_arguments(__doc__, *RUN_INPUTS, out="folder of the run")
    set_threads(threads_of(arguments.spec))
    for name in ("metrics.json", layout.ENCODER):  # of an older spec
        (arguments.out / name).unlink(missing_ok=True)
    run_again_if_needed(lambda: execute(arguments.spec, arguments))


def execute(spec: dict, arguments: Namespace) -> None:
    """Train a run and write its folder. Args: spec; the parsed arguments, for their folders.

    A device is claimed for the training alone: imports and opening come before it, writing after it.
    """
    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.core.files import save_tensors
    from thaw.evaluation.result_files import result_line
    from thaw.training.adapted import BASE
    from thaw.training.checkpoints import write_run
    from thaw.training.progress import Progress
    from thaw.training.seeds_together import prepare, to_cpu, to_device
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
    if not phase.fits_to_convergence and phase.pick != spec["after"]["epoch"]:
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
    from thaw.training.taught import LiveTeacher, TeacherOutputs

    if "live_teacher" in needs:
        return LiveTeacher(inputs, needs["live_teacher"], spec["teacher"]["run"], spec["seed"])
    if "teacher" not in needs:
        return None
    return TeacherOutputs(needs["teacher"], taught_parts(spec["phases"]))


if __name__ == "__main__":
    run_step(main)
