"""One run of full fine-tuning, and the first result of an experiment: a linear probe, from an empty folder.

The first result also as a later command of one shell, which finds libraries imported.
"""

import statistics
from dataclasses import replace

from .. import work
from ..measuring import at_a_terminal
from ..options import Options
from ..ours import Place
from ..texts import tasks
from .table import TUNED, compare

PROBE = {"bench_probe": {"label": "Linear probe", "phases": [{"train": ["head"], "optimizer": "lbfgs"}]}}


def measure(options: Options) -> dict:
    """Return the seconds of one run on both sides, and those until the first result."""
    used = {"seeds": 1, "threads": options.cores}  # as the Trainer's: nothing else is to be computed
    one = replace(options, **used)
    text = tasks(one)[0]
    found = compare("single", [text], one, {work.FULL: work.full()}, {"tuned": TUNED["tuned"]})
    seconds = found["seconds"]
    place = Place(one.folder("first"), one, [text], PROBE, heads=["linear"], store={})
    first = {"first command of a shell": _first(place, one)}
    with at_a_terminal() as place.timed:
        place.run()
        first["later command of a shell"] = _first(place, one)
    numbers = {"single_run_vs_trainer_tuned": seconds["tuned"] / seconds["ours"]}
    numbers["first_result"] = first["first command of a shell"]
    return found | {"numbers": numbers, "used": used, "first_result": first}


def _first(place: Place, options: Options) -> float:
    """Return the median seconds until the result lies on disk."""
    records = [place.run() for _ in range(options.rounds)]
    return statistics.median(map(finished, records))


def finished(record: dict) -> float:
    """Return the second at which the first run of an experiment lay on disk."""
    ends = (job["span"][1] for job in record["jobs"] if any(file.endswith("/metrics.json") for file in job["files"]))
    return min(ends)
