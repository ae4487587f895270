"""Print, before anything runs, what an experiment will run: runs, jobs, bytes of the store, time.

thaw plan my.yaml
thaw plan config/experiments/first.yaml --config data_dir=path/to/data
thaw plan my.yaml --runs                                  and every run with what it trains and reads

Without a file it plans the only experiment in this folder, else its config/config.yaml, else the demo.
"""

import os
from collections import Counter
from pathlib import Path

from thaw.cli.selection import configuration, parsed, selecting
from thaw.core.digests import canonical
from thaw.core.home import HOME
from thaw.core.steps import COMPUTING, STEPS
from thaw.data import sources
from thaw.declarations.needs import NEEDS
from thaw.planning import cost_estimate
from thaw.planning.configuration import load_plan
from thaw.planning.jobs import corpus_of
from thaw.planning.plan import Plan
from thaw.planning.prepared_checks import refuse_shortfalls, shortfalls
from thaw.planning.run_jobs import reported_seeds
from thaw.planning.run_progress import duration


def readable(size: float) -> str:
    """Return bytes in the unit that suits them."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit in ("B", "KiB") else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


ONE_THREAD = 0.23  # of the time of four trainings of top 2 on two cores: 137 s in jobs of one thread, 178 s of two
PREPARATORY = "what others start from, trials of searches, runs of baselines"


def print_jobs(plan: Plan) -> None:
    """Print how many jobs each step has that has any, and how many of them have no result, or an outdated one.

    Outputs carry no digest: all are drawn where something is computed, the report where anything else is drawn.
    """
    print("jobs")
    computed = drawn = 0
    for step, jobs in plan.jobs.items():  # outputs are the last ones, the report the last of them
        to_do = sum(_waits(plan, step, key) for key in jobs)
        if STEPS[step].result == "output":
            to_do = len(jobs) if computed or (step == "report" and drawn) else to_do
            drawn += to_do
        else:
            computed += to_do
        if jobs:
            print(f"  {step:<12} {len(jobs):>6}   {to_do or 'none'} to run")
    if not computed and not drawn:
        print("  not seen here: outputs whose label, title or caption was edited; they are drawn again")


def print_store(plan: Plan) -> None:
    stores = cost_estimate.stores(plan)
    print("store of frozen features")
    for store in stores:
        names = " ".join([f"b{n}" for n in store.boundaries] + store.vectors) or "none: nothing is read from it"
        tokens = "size unknown until prepare" if store.tokens is None else f"{store.tokens:,} tokens"
        stated = plan.catalogue.get("corpora", corpus_of(store.key), "corpora").size
        how = "counted" if store.exact else "from the catalogue" if stated else "estimated from the files"
        print(f"  {store.key:<36} {names:<24} {tokens} ({how}), {readable(store.bytes)}")
    print(f"  {'total':<36} {readable(sum(store.bytes for store in stores))}")
    for sentence in cost_estimate.left_out(plan):
        print(f"  {sentence}")


def print_time(plan: Plan) -> None:
    """Print how long what lacks a result will take with all cores busy, from the speed of this machine's cores."""
    rate, parts, on_gpu, updates = cost_estimate.machine_rate(), {}, 0.0, 0.0
    by_step = {step: [key for key in plan.jobs[step] if not plan.status.is_current(step, key)] for step in COMPUTING}
    for step, missing in by_step.items():
        work = sum(cost_estimate.operations(plan, step, key) for key in missing)
        on_gpu += sum(cost_estimate.seconds_on_gpu(plan, step, key) for key in missing)
        if missing:
            parts[step] = cost_estimate.seconds(step, work, len(missing), plan.threads, rate)
    for job in (plan.job("train", key) for key in by_step["train"]):
        updates += cost_estimate.training_updates(plan, job.spec, job.store)[0]
    others = [(step, key) for step, keys in plan.jobs.items() if step not in by_step for key in keys]
    waiting = [one for one in others if _waits(plan, *one)]
    if waiting:
        parts["others"] = cost_estimate.seconds("table", 0.0, len(waiting), plan.threads, rate)
    shown = ", ".join(f"{step} {duration(seconds)}" for step, seconds in parts.items()) or "nothing left to do"
    print(f"time, roughly, with all cores busy: {duration(sum(parts.values()))} ({shown})")
    made = f"; {updates:,.0f} updates, {_pace(updates / parts['train'])}" if updates else ""
    print(f"  this processor multiplies matrices at {rate / 1e9:.0f} GFLOP/s with all cores{made}")
    untouched = by_step["train"] == [*plan.jobs["train"]]  # of others finished runs would be made again
    if plan.threads > 1 and untouched and len(by_step["train"]) >= (os.cpu_count() or 1):
        saved = duration(ONE_THREAD * parts["train"])
        print(f"  compute: {{threads: 1}} would save about {saved} of training: there is a job for each core")
    if probes := [key for step, key in waiting if step == "probe"]:
        print(f"  not counted: what probes fit ({len(probes)} to do), seconds each, on words and trees minutes")
    if parts:
        share, runs = cost_estimate.measured_on_gpu(plan)
        made = f" ({_pace(updates / on_gpu / share)})" if updates else ""
        how = f"as {runs} finished runs took there" if runs else cost_estimate.ASSUMED
        print(f"  on one GPU {duration(on_gpu * share)}{made}, {how}")


def _pace(updates: float) -> str:
    """Return in words how many updates a second has, or an hour where they are few."""
    return f"{updates:,.1f} a second" if updates >= 0.1 else f"{3600 * updates:,.0f} an hour"


def _waits(plan: Plan, step: str, key: str) -> bool:
    """Return whether a job lacks its results, or has those of another spec; outputs carry no digest."""
    if STEPS[step].result == "output":
        return not all(Path(file).exists() for file in plan.files(step, key))
    return not plan.status.is_current(step, key)


def print_runs(plan: Plan) -> None:
    """Print every run with what each phase trains and where it resumes."""
    for run in plan.runs:
        name = run.folder.partition("/")[2]
        words = ((NEEDS[need.role].word, need.of) for need in run.needs)
        needs = "".join(f" {word} {of.names.get('strategy', of.key)}" for word, of in words if word)
        for number, phase in enumerate(plan.job(run.step, run.key).spec["phases"], 1):
            for stage in phase.get("stages", [phase]):
                start = "text" if stage["boundary"] is None else f"b{stage['boundary']}"
                start = stage.get("vectors", start)
                print(f"  {name}  phase {number}{needs}: from {start}, trains {' '.join(stage['components'])}")


def check_files(plan: Plan) -> None:
    """Raise UserError where `prepare` would for the columns of the user's files."""
    for key in plan.jobs["prepare"]:
        spec = plan.job("prepare", key).spec
        if spec["source"] == "files" and not plan.status.is_current("prepare", key):
            entry, files = canonical(spec["entry"]), tuple(spec["files"])
            sources.check_files(key, entry, files, plan.experiment.data_dir)


def main(words: list[str]) -> None:
    parser = selecting("plan", __doc__)
    parser.add_argument("--runs", action="store_true", help="list every run")
    given = parsed(parser, words)
    plan = load_plan(configuration(given.files, given.config), HOME, files=given.files)
    check_files(plan)
    runs, strategies = plan.runs, Counter(run.strategy for run in plan.runs)
    print(f"experiment {plan.name}: {plan.experiment.title}")
    print(f"runs {len(runs)}: {', '.join(f'{name}: {count}' for name, count in strategies.items())}")
    if others := plan.job("report", plan.name).spec["preparatory"]:
        print(f"  {len(runs) - others} of them in tables and figures, {others} preparatory: {PREPARATORY}")
    warnings = reported_seeds(plan.experiment, plan.catalogue)
    for sentence in [*plan.left_out, *warnings]:
        print(f"  {sentence}")
    if given.runs:
        print_runs(plan)
    print_jobs(plan)
    for sentence in shortfalls(plan):
        print(f"  will fail: {sentence}")
    if names := [f"{key} ({id})" for _, key, id in plan.status.to_download]:
        print(f"from the Hub, unless its cache has them: {', '.join(names)}")
    print_store(plan)
    print_time(plan)
    refuse_shortfalls(plan)
