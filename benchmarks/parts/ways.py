"""What each of the ways that make the training loop fast gives by itself: full fine-tuning with it and without it."""

import statistics
from dataclasses import replace

from .. import work
from ..inside.without import PLAIN
from ..options import Options
from ..ours import Place
from ..texts import tasks


def measure(options: Options) -> dict:
    """Return the seconds of training as it is and without each way, medians over rounds, with the score on test."""
    text = tasks(options)[0]
    alone = replace(options, threads=options.cores)
    place = Place(options.folder("ways"), alone, [text], {work.FULL: work.full()}, seeds=[1])
    place.run()
    run = place.training(text, work.FULL, 1)["metrics"]
    job = place.read_by_runs(text) | {"run": run, "threads": alone.threads}
    taken: dict[str, list[dict]] = {}
    for _ in range(options.rounds):
        for without in ("", *PLAIN):
            taken.setdefault(without, []).append(place.inside("without", without=without, **job)["found"])
    seconds = {way: statistics.median(found["seconds"] for found in all_) for way, all_ in taken.items()}
    ours = seconds.pop("")
    ratios = {way: {"seconds": value, "ratio": value / ours} for way, value in seconds.items()}
    scores = {way or "all": next(iter(all_[0]["scores"].values())) for way, all_ in taken.items()}
    return {"numbers": {}, "all": ours, "without": ratios, "scores": scores}
