"""Find out which strategy to take with little training: candidates train in parts, and stop where more would not pay.

thaw advise my.yaml --config data_dir=path/to/data
thaw advise my.yaml --price 0.5 --limit 2 --cores 4

Further options are Snakemake's own. The probes on the frozen encoder are fitted first. Then the candidate trains on
whose score on validation would change the choice most for its cost: a full training, that of the costliest candidate,
must be expected to gain `--price` points, and at most `--limit` of them are spent on a task. The one that is taken is
trained to its end, and of it alone the test score is printed. It starts from what candidates gained on past tasks of
the encoder: those of config/experiments/grid.yaml, or with `--past` of your own experiment. Candidates are the
experiment's strategies with its first seed; what was trained stays, and `thaw run` continues it.
"""

import os
import subprocess
import sys
from pathlib import Path

from thaw.advisor import past_tasks
from thaw.advisor.beliefs import RUNGS
from thaw.advisor.policy import LAST, Advisor
from thaw.cli.advised_task import AdvisedTask, advised_tasks, rung_reached
from thaw.cli.run_command import snakemake_command
from thaw.cli.selection import configuration, default_file, leading_files, parser_of, with_flags
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.core.home import HOME
from thaw.outputs.wording import number
from thaw.planning.configuration import load_plan


def main(words: list[str]) -> None:
    """Advise on each task of an experiment in turn, and write the answer to outputs/<experiment>/advised.json."""
    files, rest = leading_files(words)
    parser = with_flags(parser_of("advise", __doc__))
    parser.add_argument("--price", type=float, default=0.5, help="points that one full training must gain (0.5)")
    parser.add_argument("--limit", type=float, default=2.0, help="full trainings to spend on a task at most (2)")
    parser.add_argument("--past", type=Path, default=past_tasks.SHIPPED, help="CSV of a progress_table (Thaw's own)")
    given, further = parser.parse_known_args(rest)
    if given.price < 0 or given.limit <= 0:
        raise UserError("--price is 0 or more and --limit more than 0: points, and full trainings")
    given.configfile = [*files, *given.configfile] or [default_file()]
    config = configuration(given.configfile, given.config)
    results = config.get("pathvars", {}).get("results", "results")
    plan = load_plan(config, HOME, results, given.configfile)
    if len(plan.experiments) > 1:
        raise UserError("thaw advise advises on one experiment; name one file")
    name = plan.experiments[0].experiment
    log = Path(results) / layout.folder("report", {"experiment": name}) / "advise.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    workflow = Workflow(given.configfile, given.config, further, log)
    answers = [advise(task, workflow, given.price, given.limit, given.past) for task in advised_tasks(plan, name)]
    write_json(log.with_name("advised.json"), {"price": given.price, "limit": given.limit, "tasks": answers})


class Workflow:
    """Snakemake on the experiment, called for single results; what it prints goes to a file."""

    def __init__(self, files: list[str], config: list[str], further: list[str], log: Path):
        self.command = [
            *snakemake_command(files, ["--keep-going"]),
            *(["--config", *config] if config else []),
            *further,
        ]
        self.log = log

    def make(self, results: list[str], share: float = 1.0) -> None:
        """Have some results made; with a share below 1 training pauses there, and leaves its progress alone."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": path} | ({layout.PAUSE: str(share)} if share < 1 else {})
        with open(self.log, "ab") as log:
            subprocess.run([*self.command, "--", *results], env=environment, stdout=log, stderr=log)


def advise(task: AdvisedTask, workflow: Workflow, price: float, limit: float, past: Path) -> dict:
    """Train what pays, say each step, and return the answer."""
    result = task.plan.table.paths.result
    print(f"{task.name}: {len(task.candidates)} candidates, {len(task.probes)} of them probes", flush=True)
    workflow.make([result(task.candidates[place].folder) for place in task.probes])
    scores = [_score(task, place, workflow) for place in task.probes]
    advisor, tasks, known = task.advisor(price, limit, past)
    print(f"  {_remembered(task, tasks, known)}", flush=True)
    start = scores[0][1]
    for place in task.probes:
        _observe(task, advisor, place, start, workflow)
    while step := advisor.next():
        place, rung = step
        workflow.make([result(task.candidates[place].folder)], RUNGS[rung])
        _observe(task, advisor, place, start, workflow, rung)
    advice = advisor.choose()
    taken = task.candidates[advice.taken]
    if not task.plan.is_there(taken):
        workflow.make([result(taken.folder)])
    _, validation, _ = _score(task, advice.taken, workflow)
    tested = task.tested(advice.taken)
    scores = ", ".join(f"{split} {number(score)}" for split, score in tested.items())
    every, more = task.start + float(task.costs.sum()), advisor.worth_of_more()
    spent = f"{number(advice.spent, 2)} full trainings spent of {number(every, 2)} for all candidates"
    print(f"  take {_name(taken)}: validation {number(validation)}, {scores}")
    print(f"  expected to be {number(advice.regret)} points below the best; {spent}")
    print(f"  one more full training would be worth {number(more, 2)} points", flush=True)
    known = {_name(task.candidates[place]): RUNGS[rung] for place, (rung, _) in advisor.observed.items()}
    facts = {
        "past": tasks,
        "regret": advice.regret,
        "spent": advice.spent,
        "all": every,
        "worth_of_more": more,
        "trained": known,
    }
    return {"task": task.name, "taken": _name(taken), "validation": validation, "test": tested} | facts


def _remembered(task: AdvisedTask, tasks: list[str], known: list[int]) -> str:
    """Return what past tasks say of the candidates."""
    if not known:
        return f"no past tasks with {task.candidates[0].encoder} and these strategies; beliefs are wide"
    new = [_name(run) for place, run in enumerate(task.candidates) if place not in known]
    return f"{len(tasks)} past tasks" + (f", which say nothing of {', '.join(new)}" if new else "")


def _observe(
    task: AdvisedTask, advisor: Advisor, place: int, start: float, workflow: Workflow, least: int = LAST
) -> None:
    """Let the advisor know how far a candidate is and what it gained.

    Raises UserError where it is not as far as asked.
    """
    share, score, _ = _score(task, place, workflow)
    rung = rung_reached(share)
    if rung is None or rung < least:
        raise UserError(f"{task.candidates[place].folder} is at {share:.0%} of its updates; {workflow.log} says why")
    advisor.observe(place, rung, score - start)
    far = "" if rung == LAST else f" after {100 * share:.0f} % of its updates"
    print(f"  {_name(task.candidates[place])}: validation {number(score)}{far}", flush=True)


def _score(task: AdvisedTask, place: int, workflow: Workflow) -> tuple[float, float, int]:
    """Return how far a candidate is, its score and rows. Raises UserError where it failed."""
    share, score, rows = task.score(place)
    if not share:
        raise UserError(f"{task.candidates[place].folder} could not be trained; {workflow.log} says why")
    return share, score, rows


def _name(run) -> str:
    return run.strategy if run.variant == "base" else f"{run.strategy} {run.variant}"
