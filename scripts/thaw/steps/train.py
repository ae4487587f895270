"""Step `train`: one run, from spec to records. metrics.json is written last."""

import shutil
from argparse import Namespace
from pathlib import Path

from thaw.core import layout
from thaw.core.boundaries import taught_parts
from thaw.core.devices import run_again_if_needed
from thaw.core.digests import digest
from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import read_json, write_json
from thaw.core.runtime import log, run_step, set_threads
from thaw.core.step_arguments import RUN_INPUTS, parse_arguments
from thaw.schema.experiment import threads_of
from thaw.schema.multi_task import of_task
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
    """Train a run and write its folder, and within it what other tasks' runs take. Args: spec; the parsed arguments.

    A device is claimed for the training alone: imports and opening come before it, writing after it.
    """
    needs = run_inputs.open_needs(spec, arguments)
    if "multi_task" in needs:
        take_part(spec, needs["multi_task"].parent, arguments.out)
        return
    from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
    from thaw.core.files import save_tensors
    from thaw.evaluation.result_files import result_line
    from thaw.training.adapted import BASE
    from thaw.training.checkpoints import write_run
    from thaw.training.multi_task_run import shared_cost
    from thaw.training.progress import Progress
    from thaw.training.seeds_together import prepare, to_cpu, to_device
    from thaw.training.training_run import train

    watch = Stopwatch()
    with watch("load"):
        (inputs,) = run_inputs.open_inputs(spec, arguments)
        run = run_of(spec, arguments, inputs, needs)
        runs = [run, *run.others]
        for one in runs:
            prepare(one)
    with claimed(watch) as device:
        progress = Progress(arguments.out, spec, watch, device)
        for one in runs:
            to_device(one, device)
        trained = train([run], watch, progress)
        runs = runs[: len(trained)]
        to_cpu(runs, trained)
        took = measure_cost(watch, device)
    if spec["keep"]:
        inserts = trained[0].inserts
        note = {BASE: read_json(arguments.encoder / "card.json")["sha256"]} | (inserts.note() if inserts else {})
        save_tensors(arguments.out / layout.ENCODER, trained[0].encoder, note)
    for one, left in reversed(list(zip(runs, trained, strict=True))):
        task = one.context.task
        out = arguments.out if one is run else arguments.out / layout.TASKS / task["id"]
        cost = left.cost | shared_cost(took, left.cost.get("share_of_training", 1.0), len(runs))
        write_run(out, one.spec, one.context, left, left.outcome, cost)
        log(("" if len(runs) == 1 else f"{task['id']}: ") + result_line(task, left.outcome, cost["seconds"]["total"]))
    progress.end()


def run_of(spec: dict, arguments: Namespace, inputs, needs: dict[str, Path]):
    """Return the run that a job trains, with those of other tasks that train its encoder too.

    Args: spec; the parsed arguments; what is read, and what is needed of other jobs, by role.
    """
    from dataclasses import replace

    from safetensors.torch import load_file

    from thaw.training.multi_task_run import MultiTaskRun
    from thaw.training.training_run import TrainingRun

    begun, by = start(spec, needs), taught(spec, needs, inputs)
    if "multi_task" not in spec:
        return TrainingRun(spec, inputs, begun, run_inputs.chosen(needs), by)
    others = []
    for own in (of_task(spec, entry) for entry in spec["auxiliary"]):
        name, earlier = own["task"]["id"], begun
        if begun and begun.head:
            earlier = replace(begun, head=load_file(needs["start"].parent / layout.TASKS / name / "head.safetensors"))
        read = inputs.auxiliary[name]
        by_task = taught(own, run_inputs.open_needs(own, arguments), read)
        others.append(TrainingRun(own, read, earlier, taught=by_task))
    return MultiTaskRun(spec, inputs, others, begun, by)


def take_part(spec: dict, trained: Path, out: Path) -> None:
    """Write the run of a task that another task's job has trained: its files are there, under another spec.

    Args: spec; the folder of that job's run; folder of this run. Raises UserError where they are gone.
    """
    folder, name = trained / layout.TASKS / spec["task"]["id"], "metrics.json"
    files = {one: folder / one for one in layout.WRITTEN["train"]}
    files |= {layout.ENCODER: trained / layout.ENCODER} if spec["keep"] else {}
    if gone := [file for file in [*files.values(), folder / name] if not file.is_file()]:
        raise UserError(f"{gone[0]} is missing; delete {trained / name} and run the workflow again")
    out.mkdir(parents=True, exist_ok=True)
    for one, file in files.items():
        (out / one).unlink(missing_ok=True)
        try:
            (out / one).hardlink_to(file)  # no bytes twice
        except OSError:  # a disk without such links
            shutil.copyfile(file, out / one)
    write_json(out / name, read_json(folder / name) | {"spec": spec, "digest": digest(spec)})


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
