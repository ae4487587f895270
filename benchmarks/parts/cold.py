"""The most that workers which stay could gain: the table's trainings in fresh processes, and in one after the other.

Thaw trains each run in a process that knows no shape yet and has an empty heap. Fp32, Thaw's default.
"""

import statistics

from .. import work
from ..options import Options
from ..ours import Place, share
from ..texts import tasks

EDGE = 10  # updates


def measure(options: Options) -> dict:
    """Return the seconds of all trainings by way, what each gains over fresh processes, and steps cold and warm.

    Each training stands in cold.json of the folder of work.
    """
    strategies = work.in_fp32(work.table(work.LAYERS))
    text = tasks(options)[0]
    place = Place(options.folder("cold"), options, [text], strategies, store={})
    record = place.run()
    runs = [place.training(text, strategy, seed) for seed in options.seed_list for strategy in strategies]
    job = place.read_by_runs(text) | {"rounds": options.rounds, "threads": options.threads, "ways": []}
    found = place.inside("cold", **job, runs=runs, at_once=options.cores // options.threads)["found"]
    ways: dict[str, dict] = {}
    for way in dict.fromkeys(one["way"] for one in found):
        rounds = [[one for one in found if (one["way"], one["round"]) == (way, turn)] for turn in range(options.rounds)]
        ways[way] = _summary(rounds)
        spared = ways["fresh"]["whole"] - ways[way]["whole"]
        of_table = 100 * spared * share("cpu", options) / record["wall"]
        ways[way] |= {"less than fresh": spared, "% of the table": of_table}
    return {"numbers": {}, "table_seconds": record["wall"], "trainings": len(runs), "cold": ways}


def _summary(rounds: list[list[dict]]) -> dict[str, float]:
    """Return the seconds of all trainings by part, medians over rounds; and an update of full fine-tuning, in ms."""
    parts = sorted({part for one in rounds[0] for part in one["seconds"]})
    sums = [{part: sum(one["seconds"].get(part, 0.0) for one in ones) for part in parts} for ones in rounds]
    found = {part: statistics.median(one[part] for one in sums) for part in parts}
    found["whole"] = statistics.median(sum(one["whole"] for one in ones) for ones in rounds)
    full = [one["updates"] for ones in rounds for one in ones if one["strategy"] == work.FULL]
    edges = {f"ms, first {EDGE} updates": slice(EDGE), f"ms, last {EDGE}": slice(-EDGE, None)}
    means = {edge: [statistics.mean(updates[where]) for updates in full] for edge, where in edges.items()}
    return found | {edge: 1000 * statistics.median(seconds) for edge, seconds in means.items()}
