"""Step `train`: one run, from its spec to its records. metrics.json is written last."""

from pathlib import Path

from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import read_json
from thaw.core.runtime import claim_device, run_step, set_threads
from thaw.core.step_arguments import CHOSEN, RUN_INPUTS, any_number, parse_arguments
from thaw.schema.experiment import ComputeConfig
from thaw.schema.phases import PhaseConfig
from thaw.training import run_inputs


def main() -> None:
    """Check that what lies in the folders is what the run was planned for, train, and write the records."""
    arguments = parse_arguments(
        __doc__,
        *RUN_INPUTS,
        any_number("--after", "metrics.json of the run to start from"),
        CHOSEN,
        out="folder of the run",
    )
    spec = arguments.spec
    set_threads(ComputeConfig.model_validate(spec["compute"]).threads)
    with claim_device() as device:
        execute(spec, arguments, device)


def execute(spec: dict, folders, device) -> None:
    """Train a run on a device and write its folder. Args: spec; the parsed arguments, for their folders."""
    from thaw.compute_cost.stopwatch import Stopwatch, measure_cost
    from thaw.evaluation.result_files import save_tensors
    from thaw.training.adapted import BASE
    from thaw.training.progress import Progress
    from thaw.training.run_files import write_run
    from thaw.training.training_run import TrainingRun, train

    watch = Stopwatch()
    with watch("load"):
        (found,) = run_inputs.open_inputs(spec, folders, device)
        run = TrainingRun(spec, found, start(spec, folders.after), run_inputs.chosen(spec, folders.chosen))
        progress = Progress(folders.out, spec, watch)
    (left,) = train([run], watch, progress)
    if spec["keep"]:
        note = {BASE: read_json(folders.encoder / "card.json")["sha256"]} | (
            left.inserts.note() if left.inserts else {}
        )
        save_tensors(folders.out / "encoder.safetensors", left.encoder, note)
    write_run(folders.out, spec, run, left, left.outcome, left.cost | measure_cost(watch, device))
    progress.end()


def start(spec: dict, after: list[Path]):
    """Return the tensors of the run to start from, None where there is none.

    Raises UserError where that run is another than planned for, or kept the weights of another epoch.
    """
    from safetensors.torch import load_file

    from thaw.adaptation.peft_modules import read_insert_metadata
    from thaw.evaluation.result_files import check_digest
    from thaw.training.checkpoints import Start

    if spec["after"] is None:
        return None
    metrics = read_json(after[0])
    check_digest(after[0], spec["after"]["run"])
    phase = PhaseConfig.of_spec(metrics["spec"]["phases"][-1])
    if phase.optimizer != "lbfgs" and phase.pick != spec["after"]["epoch"]:
        raise UserError(
            f"after: epoch: {spec['after']['epoch']} is asked for, but that run ({after[0].parent}) kept its "
            f"{phase.pick} epoch; change after: epoch: or that strategy's pick:"
        )
    folder = after[0].parent
    encoder = folder / "encoder.safetensors"
    if not encoder.is_file() and any(set(entry["components"]) - {"head"} for entry in metrics["spec"]["phases"]):
        raise UserError(f"{encoder} is missing: a run that others start after must say keep: true in its strategy")
    with wrap_corruption(folder, f"{folder}/metrics.json"):
        head = {} if spec["after"].get("encoder_alone") else load_file(folder / "head.safetensors")
        return Start(head, load_file(encoder), read_insert_metadata(encoder)) if encoder.is_file() else Start(head, {})


if __name__ == "__main__":
    run_step(main)
