"""(d) Training steps: resumed at each layer against full training, and the full step against its matrix products.

One job at a time has all cores. Seconds are those of the training loop by Thaw's own clock (cost.json). A run that
trains the head alone reads as many stored states and makes the same number of updates: its time is taken off, and what
is left is the encoder's part.
"""

import math
import statistics
from dataclasses import replace

from .. import work
from ..measuring import has_bf16
from ..options import Options
from ..ours import Place
from ..texts import tasks

EPOCHS = 3
NAMES = {k: f"bench_top_{k}" for k in range(work.LAYERS + 1)}


def measure(options: Options) -> dict:
    """Return seconds of training by depth, the gain over full training beside the theory, and the step's efficiency."""
    text = tasks(options)[0]
    alone = replace(options, threads=options.cores)
    strategies = {NAMES[k]: work.top(k, EPOCHS) for k in NAMES} | {work.FULL: work.full(EPOCHS)}
    place = Place(options.folder("steps"), alone, [text], strategies)
    record = place.run()
    updates = EPOCHS * math.ceil(len(text.rows["train"]) / work.BATCH)
    seconds = {name: _median(record["scores"], name) for name in strategies}
    products = _products(place, text.name, alone)
    step = seconds[work.FULL] / updates
    return {
        "numbers": {
            "resume_vs_theory": min(gain["of_theory"] for gain in gains(seconds).values()),
            "step_vs_matmul": products["seconds"] / updates / step,
        },
        "seconds": seconds,
        "resume": gains(seconds),
        "resume_vs_all_layers": gains(seconds, NAMES[work.LAYERS]),
        "step": {"seconds": step, "products": products["seconds"] / updates, "updates": updates},
        "flops": products["flops"],
        "precision": products["precision"],
        "passes": record["passes"],
    }


def gains(seconds: dict[str, float], whole: str = work.FULL) -> dict[int, dict[str, float]]:
    """Return for k of L frozen layers how many times as fast the encoder's part is as in whole training.

    `theory` is L / (L - k); `of_theory` what part of it was reached.
    """
    head = seconds[NAMES[0]]
    found = {}
    for k in range(1, work.LAYERS):
        gain = (seconds[whole] - head) / (seconds[NAMES[work.LAYERS - k]] - head)
        theory = work.LAYERS / (work.LAYERS - k)
        found[k] = {"gain": gain, "theory": theory, "of_theory": gain / theory}
    return found


def _median(scores: list[dict], strategy: str) -> float:
    """Return the median over seeds of a strategy's seconds of training."""
    return statistics.median(
        {row["seed"]: row["train_seconds"] for row in scores if row["strategy"] == strategy}.values()
    )


def _products(place: Place, task: str, options: Options) -> dict:
    """Return the time of the matrix products of the same batches alone."""
    return place.inside(
        "products",
        features=str(place.folder / "results/features/minilm" / task / "bench"),
        config=str(place.folder / "results/encoders/minilm/config.json"),
        batch_size=work.BATCH,
        epochs=EPOCHS,
        seeds=options.seed_list,
        threads=options.threads,
        precision="bf16" if has_bf16() else "fp32",
    )
