"""Run as much of an experiment as its budget of time allows, and update tables, figures and report after each slice.

thaw budget my.yaml --config budget=2h data_dir=path/to/data

Further options are Snakemake's own, as --cores 4. Cheap cells come first, one seed of each. A cell gets no further
seed where that cannot change which one is taken. No training is started that would not fit into what is left; one that
has begun is not cut off. Preparing data, features, baselines and outputs count once they have run and are not foreseen,
so that a short budget is overrun. The report lists what was not run. Run it again, with a new budget, and it continues.

Snakemake decides what runs before anything does, so this calls it in slices, each with the results needed next. The
exit code is the last one of Snakemake that says that something failed, else 0.
"""

import sys
import time

from thaw.cli.finished_runs import given_up
from thaw.cli.run_command import run_in_subprocess
from thaw.cli.selection import given_plan, parser_of
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.outputs.wording import plural, seconds
from thaw.planning import time_budget
from thaw.planning.plan import Plan

SLICES = 10  # so many answers, at least, on the way
OVER = (
    "\nmore than given: a job that has begun is not cut off, and preparing data, extracting features, baselines and "
    "outputs are not foreseen"
)


def main(words: list[str]) -> None:
    """Run slice after slice until nothing is left that fits, each followed by tables, figures and report."""
    plan, given, further = given_plan("budget", parser_of("budget", __doc__), words)
    if len(plan.experiments) > 1 or plan.experiments[0].budget is None:
        raise UserError("thaw budget runs one experiment that has a budget; say --config budget=2h")
    name, wish = plan.experiments[0].experiment, plan.experiments[0].budget
    whole, begin, tried, code = time_budget.seconds_of(wish), time.monotonic(), set(), 0
    pace = time_budget.Pace(plan)
    others = [
        file
        for step, key in plan.extra_results[name].values()
        if step in ("baseline", "external")
        for file in plan.files(step, key)
    ]
    while True:
        pruned = given_up(plan, name)
        waiting = [turn for turn in time_budget.pending_runs(plan, name) if turn.run.folder not in tried]
        left = whole - (time.monotonic() - begin)
        slice_ = time_budget.affordable(waiting, pruned, left, whole / SLICES, pace.seconds)
        if not slice_:
            break
        started = time.monotonic()
        print(f"budget: {seconds(left)} left, {plural(len(slice_), 'run')} next", flush=True)
        results = [plan.table.paths.result(turn.run.folder) for turn in slice_]
        code = run_in_subprocess(given, further, [*others, *results]) or code
        pace.learn(slice_, time.monotonic() - started)
        tried |= {turn.run.folder for turn in slice_}
        write_record(plan, name, begin)
        code = run_in_subprocess(given, further, []) or code
        others = []
    if not tried:
        code = run_in_subprocess(given, further, []) or code
    fewer = f", {plural(len(pruned), 'cell')} given up" if pruned else ""
    used, lacks = time.monotonic() - begin, plural(time_budget.missing(plan, name), "result")
    print(f"budget: {seconds(used)} used of {wish}; the report lacks {lacks}{fewer}{OVER if used > whole else ''}")
    sys.exit(code)


def write_record(plan: Plan, name: str, begin: float) -> None:
    """Write what the report says of the runs that are not there."""
    record = {"seconds": round(time.monotonic() - begin), "pruned": given_up(plan, name)}
    write_json(plan.table.paths.budget(name), record)
