"""(c) Probes: all layers at 10 strengths, the solver of the linear probe against a scikit-learn loop over layers.

Both read the same features, which are computed beforehand and counted on neither side, and have as many threads: left
to itself scikit-learn takes all cores for products this small, and seven times as long.
"""

import statistics

from thaw.probes.reading import GAP

from .. import rivals, work
from ..measuring import interleaved, median, times_faster
from ..options import Options
from ..ours import Place
from ..texts import tasks

STRENGTHS = [10 ** (-4 + i * 4 / 9) for i in range(10)]  # 1e-4 to 1


def measure(options: Options) -> dict:
    """Return the seconds of both sides, whole processes and the fits alone, and how their scores differ."""
    texts = tasks(options)
    place = Place(options.folder("probes"), options, texts, {work.FROZEN: work.table(work.LAYERS)[work.FROZEN]})
    told = rivals.told(texts, place)
    features = str(place.folder)
    rivals.ask("layer_states", place.folder, options, told, features=features)
    shared = {"features": features, "strengths": STRENGTHS}
    sides = {
        "ours": lambda: place.inside("probing", tasks=list(told), threads=options.threads, gap=GAP, **shared),
        "sklearn_loop": lambda: rivals.ask("probe_loop", place.folder, options, told, options.threads, **shared),
    }
    rounds = interleaved(sides, options.rounds)
    engine = {side: statistics.median(map(rivals.engine, records)) for side, records in rounds.items()}
    return {
        "numbers": {"probes_vs_sklearn": times_faster(rounds["ours"], rounds["sklearn_loop"])},
        "cells": len(rounds["ours"][0]["found"]["cells"]),
        "seconds": {side: median(records, "wall") for side, records in rounds.items()},
        "cpu_seconds": {side: median(records, "cpu") for side, records in rounds.items()},
        "engine_seconds": engine,
        "engine_ratio": engine["sklearn_loop"] / engine["ours"],
        "quality": differences(*(rounds[side][-1]["found"]["cells"] for side in ("ours", "sklearn_loop"))),
    }


def differences(ours: list[dict], theirs: list[dict]) -> dict[str, float]:
    """Return both sides' mean accuracy on test, and the mean and largest difference between their probes."""
    names = ("task", "layer", "strength")
    ours, theirs = (
        {tuple(cell[name] for name in names): cell["scores"]["test"] for cell in side} for side in (ours, theirs)
    )
    assert ours.keys() == theirs.keys(), "both sides fit the same probes"
    pairs = [(ours[probe], theirs[probe]) for probe in ours]
    apart = [abs(our - their) for our, their in pairs]
    means = [statistics.mean(column) for column in zip(*pairs, strict=True)]
    return dict(zip(("ours", "peer"), means, strict=True)) | {
        "mean_difference": statistics.mean(apart),
        "largest_difference": max(apart),
    }
