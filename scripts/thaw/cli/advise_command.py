"""Find the strategy to take without training all: fit the probes, train everything, and let validation choose.

thaw advise my.yaml --config data_dir=path/to/data

Without a file it advises on config/config.yaml of this folder, else on the demo. Further options are Snakemake's own,
as --cores 4.

For each task of the experiment its strategies that fit a head on the frozen encoder, as `frozen` and
`frozen_all_layers`, run with the first seed, and the first one that trains the whole encoder, as `full`; so do its
baselines majority, bag_of_words and cosine. The best on validation is taken, with a 95 % interval of its difference to
the next (a bootstrap of validation rows), and its test score alone is printed. Where a baseline scores as much, none is
taken. On the grid this took 1.5 full trainings on average, 1.2 to 1.8 by task, where nothing else had run, and no
cheaper rule that was tried there lost less (docs/results/grid.md); what it lost is printed for an experiment of that
encoder, head, strategies and number of rows. What was trained stays, and `thaw run` continues from it.
"""

from pathlib import Path

from thaw.adaptation.selectors import trains_embeddings
from thaw.cli import grid_outcomes
from thaw.cli.given_plan import given_plan
from thaw.cli.run_command import run_in_subprocess
from thaw.cli.validated_choice import ValidatedChoice, validated_choice
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.declarations.flags import flag_label
from thaw.declarations.task_types import PAIR_TYPES
from thaw.outputs import wording
from thaw.outputs.frame.candidates import WITHOUT_TRAINING, baseline_candidate, run_candidate
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.underfit import underfit_runs
from thaw.planning.jobs import Result
from thaw.planning.paths import result_folder
from thaw.planning.plan import Plan
from thaw.planning.run_jobs import result_of
from thaw.planning.run_plan import RunPlan
from thaw.schema.corpora import TaskConfig
from thaw.schema.experiment import BASELINES
from thaw.statistics.non_inferiority import Candidate

GROUP = ("task", "subset", "encoder", "head")


def main(words: list[str]) -> None:
    """Advise on each task of an experiment, and write the answers to outputs/<experiment>/advised.json."""
    plan, given, further = given_plan("advise", __doc__, words)
    if len(plan.experiments) > 1:
        raise UserError("thaw advise advises on one experiment; name one file")
    name = plan.experiments[0].experiment
    log = Path(plan.results) / layout.folder("report", {"experiment": name}) / "advise.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    answers, groups = [], candidates(plan, name)
    print(f"this may take minutes; {log} says what is done", flush=True)
    for runs in groups:
        print(" ".join(getattr(runs[0], part) for part in GROUP), flush=True)
        references = baselines(plan, name, runs[0])
        folders = [run.folder for run in runs] + [folder for folder, _ in references.values()]
        with open(log, "ab") as file:
            run_in_subprocess(given, further, [plan.table.paths.result(folder) for folder in folders], file)
        answers.append(advise(plan, runs, references, log))
    measured = grid_outcomes.was_measured(plan, groups)
    print("\n".join(grid_outcomes.lines(measured)))
    write_json(log.with_name("advised.json"), {"rule": grid_outcomes.RULE, "measured": measured, "tasks": answers})


def candidates(plan: Plan, experiment: str) -> list[list[RunPlan]]:
    """Return by task, subset, encoder and head the runs that are made: probes, and the first that trains everything.

    Raises UserError where one of the two is missing.
    """
    groups: dict[tuple, list[RunPlan]] = {}
    seed = plan.experiments[0].seeds[0]
    for run in (run for run in plan.shown[experiment] if run.seed == seed):
        groups.setdefault(tuple(getattr(run, part) for part in GROUP), []).append(run)
    return [_probes_and_whole(plan, runs) for runs in groups.values()]


def _probes_and_whole(plan: Plan, runs: list[RunPlan]) -> list[RunPlan]:
    probes = [run for run in runs if plan.job(run.step, run.key).fits_to_convergence]
    whole = [run for run in runs if _trains_everything(plan, run)]
    if not probes or not whole:
        needs = "a strategy that fits a head on the frozen encoder, as frozen, and one that trains all of it, as full"
        named = wording.listing(list(dict.fromkeys(run.strategy for run in runs)))
        raise UserError(f"thaw advise needs {needs}; strategies has {named}")
    return [*probes, whole[0]]


def _trains_everything(plan: Plan, run: RunPlan) -> bool:
    return trains_embeddings(plan.job(run.step, run.key).spec["phases"][-1]["components"])


def baselines(plan: Plan, experiment: str, run: RunPlan) -> dict[str, tuple[str, Result]]:
    """Return folder and result of the experiment's baselines that train no encoder, by name, for the task of a run."""
    there = {}
    for name in BASELINES:
        key = layout.key("baseline", {"task": run.task, "subset": run.subset, "baseline": name})
        if plan.table.has("baseline", key):
            there[name] = (result_folder("baseline", key), Result("baseline", key))
    place = (run.task, run.subset, run.encoder, run.seed)
    for name, one in plan.baseline_runs[experiment]:
        if name in WITHOUT_TRAINING and (one.task, one.subset, one.encoder, one.seed) == place:
            there[name] = (one.folder, result_of(one))
    return there


def advise(plan: Plan, runs: list[RunPlan], references: dict[str, tuple[str, Result]], log: Path) -> dict:
    """Print scores on validation, take the best run where no baseline is as good, and return the answer.

    Args: the candidates of a task; its baselines, as `baselines` returns them; the file that says what went wrong.
    """
    task = plan.catalogue.get("tasks", runs[0].task, "tasks")
    task = plan.catalogue.get("subsets", runs[0].subset, "subsets").of_runs(task)  # with the splits of the subset
    wanted = {run.folder: result_of(run) for run in runs} | dict(references.values())
    if missing := [folder for folder, result in wanted.items() if not plan.records.is_made(result)]:
        raise UserError(f"{missing[0]} could not be made; {log} says why")
    records = {folder: read_json(plan.table.paths.result(folder)) for folder in wanted}
    rows = {folder: _validated(folder, record, task) for folder, record in records.items()}
    files = PredictionFiles(plan.results)
    own = [run_candidate(_name(run), rows[run.folder], files) for run in runs]
    others = [baseline_candidate(name, rows[folder], files) for name, (folder, _) in references.items()]
    tried = _print_runs(plan, task, runs, own)
    for one in others:
        print(f"  {wording.baseline(one.name).removeprefix('the ')}: validation {wording.number(one.validation)}")
    choice = validated_choice(own, others)
    record = next(records[run.folder] for run in runs if _name(run) == choice.best)
    about = {part: getattr(runs[0], part) for part in GROUP}
    scores = {one.name: one.validation for one in others}
    return {**about, "tried": tried, "baselines": scores, **_answer(choice, task, record)}


def _validated(folder: str, record: dict, task: TaskConfig):
    """Return the row of runs.csv on validation of a run or a baseline, in which an undefined score is 0."""
    from pandas import DataFrame

    metric, split = task.metrics[0], task.validation
    row = {"folder": folder, "metric": metric, "split": split, "value": record["scores"][split][metric] or 0.0}
    return DataFrame([row | {"seed": record["spec"].get("seed")}])


def _print_runs(plan: Plan, task: TaskConfig, runs: list[RunPlan], scored: list[Candidate]) -> dict[str, dict]:
    """Print the score and the seconds of each run, mark those that are underfit, and return the same."""
    folders = [Path(plan.table.paths.result(run.folder)).parent for run in runs]
    rows = [run.names | {"pairs": run.read_as if task.type in PAIR_TYPES else ""} for run in runs]
    tried, weak = {}, underfit_runs(list(zip(folders, rows, strict=True)))
    for one, folder in zip(scored, folders, strict=True):
        seconds = read_json(folder / "cost.json")["seconds"]["total"]
        tried[one.name] = {"validation": one.validation, "seconds": seconds, "underfit": folder in weak}
        warning = f"; {flag_label('underfit')}" if folder in weak else ""
        print(f"  {one.name}: validation {wording.number(one.validation)}, {wording.seconds(seconds)}{warning}")
    return tried


def _answer(choice: ValidatedChoice, task: TaskConfig, record: dict) -> dict:
    """Print what is taken and why, or why nothing is, and return the same; test is opened for what is taken.

    Args: the record of the best run.
    """
    next_, above, rows = choice.next, choice.baseline, record["rows"][task.validation]
    facts = {"taken": None, "validation_rows": rows, "best": choice.best, "next": next_ and next_.facts, "test": {}}
    facts |= {"best_baseline": above and above.facts, "refused": choice.refused or None}
    if choice.refused:
        print(f"  {choice.refused}", flush=True)
        return facts
    against = ""
    if next_:
        unsure = "" if next_.shown else "; not shown to be better"
        against = f" (next: {next_.name} {wording.number(next_.score)}, {next_.text}{unsure})"
    print(f"  take {choice.best}: best on {rows} rows of validation, {wording.number(choice.score)}{against}")
    if above and not above.shown:
        print(f"  not shown to be above {wording.baseline(above.name)}: {above.text}")
    tested = {split: 100 * (record["scores"][split][task.metrics[0]] or 0.0) for split in task.test}
    print("  " + ", ".join(f"{split} {wording.number(score)}" for split, score in tested.items()), flush=True)
    return facts | {"taken": choice.best, "test": tested}


def _name(run: RunPlan) -> str:
    return run.strategy if run.variant == "base" else f"{run.strategy} {run.variant}"
