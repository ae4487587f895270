"""(f) Planning: a dry run of 1,000 and of 10,000 jobs, and of an experiment that is finished.

The first two without the list of all jobs too, which a run does not print.
"""

import re

from .. import work
from ..measuring import median
from ..options import Options
from ..ours import Place
from ..texts import cut, tasks

JOBS = (1000, 10_000)
WITHOUT_LIST = ("--quiet", "rules", "progress")


def measure(options: Options) -> dict:
    """Return the seconds of each dry run, with its number of jobs; those of 10,000 without their list have a goal."""
    used = {"rows": min(options.rows, 64)}
    texts = [cut(text, used["rows"]) for text in tasks(options)]
    strategies = {f"bench_top_{k}": work.top(k) for k in range(1, work.LAYERS + 1)} | {work.FULL: work.full()}
    found = {}
    for jobs in JOBS[: 1 if options.quick else None]:
        seeds = list(range(1, jobs // (len(texts) * len(strategies)) + 1))
        place = Place(options.folder(f"planning_{jobs}"), options, texts, strategies, seeds=seeds)
        alone = _dry_run(place, options, *WITHOUT_LIST)
        found[f"dry_run_{jobs}"] = _dry_run(place, options)
        count = {"jobs": found[f"dry_run_{jobs}"]["jobs"]}  # which is not printed without the list
        found[f"without_list_{jobs}"] = alone | count
    small = {name: strategies[name] for name in ("bench_top_1",)}
    place = Place(options.folder("planning_finished"), options, texts[:1], small, seeds=[1])
    place.run()
    found["dry_run_finished"] = _dry_run(place, options)
    most = f"without_list_{JOBS[-1]}"
    used["seeds"] = len(seeds)
    return {"numbers": {"planning": found[most]["seconds"]} if most in found else {}, "planning": found, "used": used}


def _dry_run(place: Place, options: Options, *quiet: str) -> dict:
    """Return the median seconds of a dry run, and how many jobs it planned."""
    records = [place.thaw("--dry-run", *quiet) for _ in range(options.rounds)]
    total = re.search(r"^total\s+(\d+)", (place.folder / "thaw.log").read_text(), re.MULTILINE)
    return {
        "seconds": median(records, "wall"),
        "cpu_seconds": median(records, "cpu"),
        "memory_mb": median(records, "memory_mb"),
        "jobs": int(total[1]) if total else 0,
    }
