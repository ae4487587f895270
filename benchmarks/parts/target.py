"""Time until the score of full fine-tuning less half a point, extraction included, against the tuned Trainer.

The mark is the Trainer's own score on validation at the end of full fine-tuning, less half a point. The Trainer is
scored twice an epoch and may stop the clock at any of these; we run frozen, top 1, 2, 3 and full as one experiment, and
the clock stops when the first of them that reaches the mark lies on disk. Both clocks begin with the process.
"""

import math
import statistics

from .. import rivals, work
from ..measuring import interleaved
from ..options import Options
from ..ours import Place
from ..texts import tasks

LESS = 0.005


def measure(options: Options) -> dict:
    """Return for each task the seconds until the mark on both sides."""
    return {"numbers": {}, "target": {text.name: _task(text, options) for text in tasks(options)}}


def _task(text, options: Options) -> dict:
    """Return one task's mark and seconds."""
    strategies = work.depths()
    place = Place(options.folder(f"target_{text.name}"), options, [text], strategies, seeds=[1])
    half = max(1, math.ceil(options.rows / work.BATCH) // 2)
    cells = work.cells([text.name], {work.FULL: strategies[work.FULL]}, [1], work.LAYERS, watch=half)
    told = rivals.told([text], place)
    sides = {
        "ours": place.run,
        "trainer_tuned": lambda: rivals.trainer("tuned", place.folder, options, told, cells, splits=["validation"]),
    }
    rounds = interleaved(sides, options.rounds)
    peers = rounds["trainer_tuned"]
    mark = statistics.median(record["found"]["cells"][0]["scores"]["validation"] for record in peers) - LESS
    theirs = [first(watched(record), mark) for record in peers]
    ours = [first(finished(record), mark) for record in rounds["ours"]]
    return {
        "mark": mark,
        "ours": _median([second for second, _ in ours]),
        "reached_by": [name for _, name in ours],
        "trainer_tuned": _median([second for second, _ in theirs]),
    }


def watched(record: dict) -> list[tuple[float, float, str]]:
    """Return for each evaluation of the Trainer its second since its process began, the score, and its strategy."""
    (cell,) = record["found"]["cells"]
    return [(note["second"] - record["started"], note["score"], cell["strategy"]) for note in cell["watched"]]


def finished(record: dict) -> list[tuple[float, float, str]]:
    """Return for each run of ours the second at which it lay on disk, its score on validation, and its strategy."""
    ends = {}
    for job in record["jobs"]:
        for file in job["files"]:
            if file.startswith("results/runs/") and file.endswith("metrics.json"):
                ends[file.split("/")[6]] = job["span"][1]
    rows = [row for row in record["scores"] if row["role"] == "validation"]
    return [(ends[row["strategy"]], row["value"], row["strategy"]) for row in rows]


def first(notes: list[tuple[float, float, str]], mark: float) -> tuple[float | None, str | None]:
    """Return the first second at which the mark is reached and by what, None where it never is."""
    reached = sorted((second, name) for second, score, name in notes if score >= mark)
    return reached[0] if reached else (None, None)


def _median(seconds: list[float | None]) -> float | None:
    """Return the median over rounds, None where one of them did not reach the mark."""
    return None if None in seconds else statistics.median(seconds)
