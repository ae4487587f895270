"""Step `search_heads`: a head on frozen features, trained with all settings of a grid, and the choice among them."""

from argparse import Namespace
from pathlib import Path

from thaw.core.devices import run_again_if_needed
from thaw.core.processes import Processes
from thaw.core.runtime import run_step, set_threads
from thaw.core.step_arguments import CORES, RUN_INPUTS, parse_arguments
from thaw.schema.experiment import threads_of
from thaw.training import run_inputs


def main() -> None:
    """Check that what is in the folders is what the search was planned for, train all trials, and choose."""
    arguments = parse_arguments(__doc__, CORES, *RUN_INPUTS, out="folder of the variant")
    processes = Processes(threads_of(arguments.spec), arguments.cores)
    set_threads(processes.own_threads)
    run_again_if_needed(lambda: search(arguments.spec, arguments, processes))


def search(spec: dict, arguments: Namespace, processes: Processes) -> None:
    """Train every trial with every seed, and write chosen.json, last, with the history and cost of all.

    Args: spec; the parsed arguments, for their folders; what shares the training.
    """
    from thaw.compute_cost.stopwatch import Stopwatch
    from thaw.core.files import write_json
    from thaw.evaluation.model_selection import choose_trial
    from thaw.training.seeds_together import train_on_device
    from thaw.training.training_run import TrainingRun

    watch = Stopwatch()
    with watch("load"):
        (inputs,) = run_inputs.open_inputs(spec, arguments)
        grid = [(settings, seed) for settings in spec["grid"] for seed in spec["seeds"]]
        runs = [TrainingRun(spec | {"seed": seed}, inputs, None, settings) for settings, seed in grid]
    trained, spent = train_on_device(runs, watch, processes)
    task = runs[0].context.task
    each = len(spec["seeds"])

    def scores(trial: int, split: str) -> dict[str, float | None]:
        """Return the main score of a trial, counted from 0, on a split, by seed."""
        of_trial = zip(spec["seeds"], trained[trial * each : (trial + 1) * each], strict=True)
        return {str(seed): left.outcome["scores"][split][task["metrics"][0]] for seed, left in of_trial}

    trials = [
        (settings, scores(trial, task["validation"]), scores(trial, "train"))
        for trial, settings in enumerate(spec["grid"])
    ]
    cost = {key: sum(left.cost[key] for left in trained) for key in ("flops", "tokens", "steps")}
    parameters = trained[0].cost["parameters"]
    write_json(arguments.out / "cost.json", cost | {"parameters": parameters} | spent)
    write_history(arguments.out / "trials.csv", task, each, runs, trained)
    write_json(arguments.out / "chosen.json", choose_trial(spec, task, trials))


def write_history(path: Path, task: dict, each: int, runs: list, trained: list) -> None:
    """Write the history of all trials, in their order, `each` seeds of one after the other."""
    import pandas

    from thaw.core.files import write_text

    frames = [
        pandas.DataFrame({"trial": place // each + 1, "seed": run.spec["seed"], **note} for note in left.history)
        for place, (run, left) in enumerate(zip(runs, trained, strict=True))
    ]
    main = task["metrics"][0]
    columns = {split: f"{split}_{main}" for split in ("train", "validation")}
    frame = pandas.concat(frames, ignore_index=True).rename(columns=columns)
    write_text(path, frame.to_csv(index=False, lineterminator="\n"))


if __name__ == "__main__":
    run_step(main)
