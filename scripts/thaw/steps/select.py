"""Step `select`: choose among the trials of a strategy's grid, by the mean of the main metric on validation."""

from thaw.core.files import check_digest, read_json, write_json
from thaw.core.runtime import run_step
from thaw.core.step_arguments import at_least_one, parse_arguments
from thaw.evaluation.model_selection import choose_trial
from thaw.evaluation.result_files import whole_task


def main() -> None:
    """Read all trials, choose one, and write chosen.json with all of them."""
    arguments = parse_arguments(
        __doc__, at_least_one("--trials", "metrics.json, by trial and by its seeds"), out="chosen.json"
    )
    spec, files = arguments.spec, iter(arguments.trials)
    task = whole_task(spec)
    trials = [(trial["settings"], *scored(trial, files, task)) for trial in spec["trials"]]
    write_json(arguments.out, choose_trial(spec, task, trials))


def scored(trial: dict, files, task: dict) -> tuple[dict, dict]:
    """Return a trial's main score on validation and on the scored rows of train, each by seed, None where undefined.

    Args: trial as the spec has it; files, an iterator whose next item is its first metrics.json; the whole task.
    """
    scores, train, metric = {}, {}, task["metrics"][0]
    for seed, expected in trial["runs"].items():
        path = next(files)
        check_digest(path, expected)
        by_split = read_json(path)["scores"]
        scores[seed], train[seed] = by_split[task["validation"]][metric], by_split.get("train", {}).get(metric)
    return scores, train


if __name__ == "__main__":
    run_step(main)
