"""Step `train`: one run, from its spec to its records. metrics.json is written last."""

from pathlib import Path

from thaw.core.boundaries import taught_parts
from thaw.core.devices import run_relaxed_if_needed
from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import read_json
from thaw.core.runtime import log, run_step, set_threads
from thaw.core.step_arguments import RUN_INPUTS, parse_arguments
from thaw.schema.experiment import ComputeConfig
from thaw.schema.phases import PhaseConfig
from thaw.training import run_inputs


def main() -> None:
    """Check that what is in the folders is what the run was planned for, train, and write the records."""
    arguments = parse_arguments(
        __doc__,
        *RUN_INPUTS,
        out="folder of the run",
    )
    spec = arguments.spec
    set_threads(ComputeConfig.model_validate(spec["compute"]).threads)
    run_relaxed_if_needed(lambda: execute(spec, arguments))


def execute(spec: dict, folders) -> None:
    """Train a run and write its folder. Args: spec; the parsed arguments, for their folders.

    A device is claimed for the training alone: imports and opening come before it, writing after it.
    """
    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.evaluation.log_lines import result_line
    from thaw.evaluation.result_files import save_tensors
    from thaw.training.adapted import BASE
    from thaw.training.placing import hand_over, prepare, send
    from thaw.training.progress import Progress
    from thaw.training.run_files import write_run
    from thaw.training.training_run import TrainingRun, train

    watch = Stopwatch()
    with watch("load"):
        (inputs,) = run_inputs.open_inputs(spec, folders)
        needs = run_inputs.open_needs(spec, folders)
        run = TrainingRun(spec, inputs, start(spec, needs), run_inputs.chosen(needs), taught(spec, needs))
        prepare(run)
    with claimed(watch) as device:
        progress = Progress(folders.out, spec, watch, device)
        (left,) = hand_over([run], train([send(run, device)], watch, progress))
        cost = left.cost | measure_cost(watch, device)
    if spec["keep"]:
        note = {BASE: read_json(folders.encoder / "card.json")["sha256"]} | (
            left.inserts.note() if left.inserts else {}
        )
        save_tensors(folders.out / "encoder.safetensors", left.encoder, note)
    write_run(folders.out, spec, run.context, left, left.outcome, cost)
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
    encoder = folder / "encoder.safetensors"
    if not encoder.is_file() and any(set(entry["components"]) - {"head"} for entry in metrics["spec"]["phases"]):
        raise UserError(f"{encoder} is missing: a run that others start after must say keep: true in its strategy")
    with wrap_corruption(folder, f"{folder}/metrics.json"):
        head = {} if spec["after"].get("encoder_alone") else load_file(folder / "head.safetensors")
        return Start(head, load_file(encoder), read_insert_metadata(encoder)) if encoder.is_file() else Start(head, {})


def taught(spec: dict, needs: dict[str, Path]):
    """Return what the run's teacher gave, None where it has none. Args: as of `start`."""
    from thaw.training.taught import Taught

    if "teacher" not in needs:
        return None
    return Taught(needs["teacher"], taught_parts(spec["phases"]))


if __name__ == "__main__":
    run_step(main)
