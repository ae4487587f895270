"""Find the strategy to take for about one full training: fit the probes, train everything, and let validation choose.

thaw advise my.yaml --config data_dir=path/to/data

Further options are Snakemake's own, as --cores 4. For each task of the experiment its strategies that fit a head on the
frozen encoder, as `frozen` and `frozen_all_layers`, run with the first seed, and the first one that trains the whole
encoder, as `full`. The best on validation is taken, and its test score alone is printed. No rule that was tried on the
grid lost less (docs/results/grid.md): what this one lost there, and what more training gained, is printed too. What was
trained stays, and `thaw run` continues from it.
"""

import csv
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from thaw.adaptation.selectors import trains_embeddings
from thaw.cli.run_command import snakemake_command
from thaw.cli.selection import configuration, default_file, leading_files, parser_of, with_flags
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.core.home import HOME
from thaw.declarations.task_types import PAIR_TYPES
from thaw.outputs import wording
from thaw.outputs.frame.underfit import underfit_runs
from thaw.planning.configuration import load_plan
from thaw.planning.plan import Plan
from thaw.planning.run_plan import RunPlan

RULES = HOME / "config/rules.csv"  # what rules lost on config/experiments/grid.yaml; scripts/record.py writes it
RULE, EVERYTHING = "Linear probes, full fine-tuning", "All strategies"  # as that experiment's rule_table names them
GROUP = ("task", "subset", "encoder", "head")
FITTED = "fit_heads"  # the step of probes: fitted to convergence on stored states


def main(words: list[str]) -> None:
    """Advise on each task of an experiment, and write the answers to outputs/<experiment>/advised.json."""
    files, rest = leading_files(words)
    given, further = with_flags(parser_of("advise", __doc__)).parse_known_args(rest)
    given.configfile = [*files, *given.configfile] or [default_file()]
    config = configuration(given.configfile, given.config)
    results = config.get("pathvars", {}).get("results", "results")
    plan = load_plan(config, HOME, results, given.configfile)
    if len(plan.experiments) > 1:
        raise UserError("thaw advise advises on one experiment; name one file")
    name = plan.experiments[0].experiment
    log = Path(results) / layout.folder("report", {"experiment": name}) / "advise.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = snakemake_command(given.configfile, ["--keep-going"])
    command += [*(["--config", *given.config] if given.config else []), *further]
    answers = []
    for runs in candidates(plan, name):
        print(" ".join(getattr(runs[0], part) for part in GROUP), flush=True)
        make([plan.table.paths.result(run.folder) for run in runs], command, log)
        answers.append(advise(plan, runs, log))
    print(f"On the grid ({expected()[RULE].measured}):")
    for label, outcome in expected().items():
        print(f"  {label}: {outcome}")
    write_json(log.with_name("advised.json"), {"rule": RULE, "tasks": answers})


def candidates(plan: Plan, experiment: str) -> list[list[RunPlan]]:
    """Return by task, subset, encoder and head the runs that are made: probes, and the first that trains everything.

    Raises UserError where one of the two is missing.
    """
    groups: dict[tuple, list[RunPlan]] = {}
    first, heads = plan.experiments[0].seeds[0], plan.experiments[0].heads
    for run in plan.runs[experiment]:
        if not run.trial and run.seed == first and run.head in heads:  # a baseline has a head of its own
            groups.setdefault(tuple(getattr(run, part) for part in GROUP), []).append(run)
    return [_tried(plan, runs) for runs in groups.values()]


def _tried(plan: Plan, runs: list[RunPlan]) -> list[RunPlan]:
    probes = [run for run in runs if run.step == FITTED]
    whole = [run for run in runs if run.step != FITTED and _trains_everything(plan, run)]
    if not probes or not whole:
        needs = "a strategy that fits a head on the frozen encoder, as frozen, and one that trains all of it, as full"
        named = wording.listing(list(dict.fromkeys(run.strategy for run in runs)))
        raise UserError(f"thaw advise needs {needs}; strategies has {named}")
    return [*probes, whole[0]]


def _trains_everything(plan: Plan, run: RunPlan) -> bool:
    return trains_embeddings(plan.job(run.step, run.key).spec["phases"][-1]["components"])


def make(results: list[str], command: list[str], log: Path) -> None:
    """Have Snakemake make some results. Args: its command; the file for what it prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with open(log, "ab") as file:
        subprocess.run([*command, "--", *results], env=os.environ | {"PATH": path}, stdout=file, stderr=file)


def advise(plan: Plan, runs: list[RunPlan], log: Path) -> dict:
    """Print each run's score on validation and its seconds, take the best one, and return the answer."""
    task = plan.catalogue.get("tasks", runs[0].task, "tasks")
    task = plan.catalogue.get("subsets", runs[0].subset, "subsets").of_runs(task)  # with the splits of the subset
    records = [_record(plan, run, log) for run in runs]
    scores = [100 * (record["scores"][task.validation][task.metrics[0]] or 0.0) for record in records]
    folders = [Path(plan.table.paths.result(run.folder)).parent for run in runs]
    views = (
        ["joint" if run.pairs == "task" else run.pairs for run in runs] if task.type in PAIR_TYPES else [""] * len(runs)
    )
    rows = [run.names | {"pairs": view} for run, view in zip(runs, views, strict=True)]
    tried, weak = {}, underfit_runs(list(zip(folders, rows, strict=True)))
    for run, score, folder in zip(runs, scores, folders, strict=True):
        seconds = read_json(folder / "cost.json")["seconds"]["total"]
        tried[_name(run)] = {"validation": score, "seconds": seconds, "underfit": folder in weak}
        warning = f"; {wording.FLAG_LABELS['underfit']}" if folder in weak else ""
        print(f"  {_name(run)}: validation {wording.number(score)}, {wording.seconds(seconds)}{warning}")
    best = scores.index(max(scores))
    tested = {split: 100 * (records[best]["scores"][split][task.metrics[0]] or 0.0) for split in task.test}
    shown = ", ".join(f"{split} {wording.number(score)}" for split, score in tested.items())
    rows = records[best]["rows"][task.validation]
    print(f"  take {_name(runs[best])}: best on {rows} rows of validation, {shown}", flush=True)
    about = {part: getattr(runs[best], part) for part in GROUP}
    return {**about, "taken": _name(runs[best]), "validation_rows": rows, "test": tested, "tried": tried}


def _record(plan: Plan, run: RunPlan, log: Path) -> dict:
    if not plan.is_there(run):
        raise UserError(f"{run.folder} could not be made; {log} says why")
    return read_json(plan.table.paths.result(run.folder))


def _name(run: RunPlan) -> str:
    return run.strategy if run.variant == "base" else f"{run.strategy} {run.variant}"


@dataclass(frozen=True)
class Outcome:
    """What a rule lost in points by task, what it cost on average in full trainings, and on what it was measured."""

    lost: list[float]
    cost: float
    measured: str

    def __str__(self) -> str:
        mean = sum(self.lost) / len(self.lost)
        mean, most = wording.number(mean), wording.number(max(self.lost))
        return f"{mean} points below the best strategy on average, at most {most}; {self.cost:.1f} full trainings"


def expected() -> dict[str, Outcome]:
    """Return what the rule lost on the grid, and what training all strategies lost there."""
    with open(RULES, encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    outcomes = {}
    for label in (RULE, EVERYTHING):
        mine = [line for line in lines if line["rule"] == label and line["regret"]]
        cost = sum(float(line["cost"]) for line in mine) / len(mine)
        measured = f"{len(mine)} tasks, {mine[0]['encoder']}, {mine[0]['seeds']} draws"
        outcomes[label] = Outcome([float(line["regret"]) for line in mine], cost, measured)
    return outcomes
