"""Find the strategy to take without training all: from cheap to dear, as long as more may gain something.

thaw advise my.yaml --config data_dir=path/to/data
thaw advise my.yaml --time 10m     stops before a training that would not fit

Without a file it advises on config/config.yaml of this folder, else on the demo. Further options are Snakemake's own,
as --cores 4.

First come the baselines and the strategies that fit a head on the frozen encoder. The others follow with one seed, the
cheapest first. Last come further seeds of those that may still gain 0.1 points by them. The answer is that of the
report on the same runs (docs/explanation/decision.md). What was trained stays, and `thaw run` continues from it.
"""

import time
from pathlib import Path

from thaw.cli.finished_runs import current_answers, decided
from thaw.cli.run_command import run_in_subprocess
from thaw.cli.selection import given_plan, parser_of
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.home import HOME
from thaw.decision import record
from thaw.decision.record import ADVISED, TaskAnswer
from thaw.planning import pending_runs
from thaw.planning.pending_runs import Pace, PendingRun
from thaw.planning.plan import Plan
from thaw.words import answer_text

REPLAYED = "Both probes, top 2 and full, decision"  # an entry of config/replay.json, which scripts/replay.py writes


def main(words: list[str]) -> None:
    """Train what may change the answer, print each score as it comes, and write the answers of all tasks."""
    parser = parser_of("advise", __doc__)
    parser.add_argument("--time", metavar="10m", help="train nothing that would not fit into this time")
    plan, given, further = given_plan("advise", parser, words)
    if len(plan.experiments) > 1:
        raise UserError("thaw advise advises on one experiment; name one file")
    name = plan.experiments[0].experiment
    folder = Path(plan.results) / Path(layout.folder("report", {"experiment": name}))
    log = folder / "advise.log"
    folder.mkdir(parents=True, exist_ok=True)
    limit = pending_runs.seconds_of(given.time) if given.time else None
    begin, pace = time.monotonic(), Pace(plan)
    tried: set = set()
    said: set[tuple] = set()
    targets = _first(plan, name)
    print(f"{log} says what is done", flush=True)
    code = 0
    made: list = []
    chosen: list = []
    while targets:
        started = time.monotonic()
        with open(log, "ab") as file:
            code = run_in_subprocess(given, further, targets, file) or code
        pace.learn(chosen, time.monotonic() - started)
        made = current_answers(plan, name)
        if not made:
            break
        _print_new(made, said)
        turns = [turn for turn in pending_runs.pending_runs(plan, name) if turn.run.folder not in tried]
        left = None if limit is None else limit - (time.monotonic() - begin)
        chosen = next_turns(turns, set(decided(made)), pace, left)
        tried |= {turn.run.folder for turn in chosen}
        targets = [plan.table.paths.result(turn.run.folder) for turn in chosen]
    if not made:
        raise UserError(f"no run could be made; {log} says why")
    record.write(folder / ADVISED, made)
    print("\n" + "\n\n".join([*map(answer_text.in_terminal, made), answer_text.replayed(_replay())]), flush=True)
    if code:
        raise UserError(f"some runs failed; {log} says why, and the answer is about those that are there")


def _replay() -> dict[str, float]:
    """Return what the decision lost where it was replayed, by the columns of that table."""
    (line,) = (line for line in read_json(HOME / "config/replay.json") if line["rule"] == REPLAYED)
    return {name: line[name] for name in ("test", "reserved", "tried")}


def next_turns(turns: list[PendingRun], decided: set[str], pace: Pace, left: float | None) -> list[PendingRun]:
    """Return what is trained next: of each group of runs the cheapest turn that is not decided, if it fits.

    Args: runs that are not there, cheap first, one seed of each before the second; cells that need no further seed;
    seconds of a run; seconds that are left, None without a limit.
    """
    chosen: dict[tuple, PendingRun] = {}
    for turn in turns:
        if turn.number == 0 or turn.run.cell not in decided:
            chosen.setdefault(turn.group, turn)
    fitting, spent = [], 0.0
    for turn in chosen.values():
        seconds = pace.seconds(turn.operations)
        if left is None or spent + seconds <= left:
            fitting.append(turn)
            spent += seconds
    return fitting


def _first(plan: Plan, name: str) -> list[str]:
    """Return what is made first: baselines that train no encoder, and the runs that fit a head to convergence."""
    baselines = [key for step, key in plan.extra_results[name].values() if step == "baseline"]
    files = [file for key in baselines for file in plan.files("baseline", key)]
    fitted = [run for run in plan.shown[name] if plan.job(run.step, run.key).fits_to_convergence]
    return files + [plan.table.paths.result(run.folder) for run in fitted or plan.shown[name][:1]]


def _print_new(made: list[TaskAnswer], said: set[tuple]) -> None:
    """Print the score and the price of each arm that was not printed yet."""
    for answer in made:
        for arm in answer.decision.arms:
            key = (answer.title, arm.name, answer.decision.seeds)
            if key not in said:
                said.add(key)
                print(answer_text.score_line(answer, arm), flush=True)
