"""(d) Training steps: resumed at each layer against full training, and the full step against its matrix products.

Both are measured in one thread, with nothing beside it. The encoder's part is forward and backward through it, over
the same batches at every depth in turn. The step is the whole training loop of a real run, by its own clock, which
stands in cost.json; cold in a fresh process, and warm where the process has trained the same run before.
"""

import math
import statistics
from dataclasses import replace
from pathlib import Path

from thaw.core.files import read_json

from .. import work
from ..measuring import has_bf16
from ..options import Options
from ..ours import Place
from ..texts import Texts, tasks

EPOCHS = 3


def measure(options: Options) -> dict:
    """Return the encoder's seconds by depth, the gain beside the theory, and what part of a step are its products."""
    return compare("steps", options, "bf16" if has_bf16() else "fp32")


def compare(name: str, options: Options, precision: str) -> dict:
    """Return what `measure` returns, in fp32 or bf16; `name` is the folder to work in."""
    text = tasks(options)[0]
    used = {"threads": 1, "cores": 1}
    alone = replace(options, **used)
    strategies = {f"bench_top_{k}": work.top(k) for k in range(1, work.LAYERS + 1)} | {work.FULL: work.full(EPOCHS)}
    strategies, selection = (work.in_fp32(strategies), {"store": {}}) if precision == "fp32" else (strategies, {})
    place = Place(options.folder(name), alone, [text], strategies, **selection)
    record = place.run(*targets(text, options.seed_list))
    job = place.read_by_runs(text) | {"batch_size": work.BATCH, "threads": 1, "precision": precision}
    depths = place.inside("depths", **job, most=4 if options.quick else 16)["found"]
    products = place.inside("products", **job, epochs=EPOCHS, seeds=options.seed_list)["found"]
    updates = EPOCHS * math.ceil(len(text.rows["train"]) / work.BATCH)
    costs = (Path(place.training(text, work.FULL, n)["metrics"]).with_name("cost.json") for n in options.seed_list)
    step = statistics.median(read_json(path)["seconds"]["train"] for path in costs) / updates
    twice = {"runs": [place.training(text, work.FULL, 1)] * 2, "ways": ["staying"], "rounds": 1, "at_once": 1}
    warm = place.inside("cold", **job, **twice)["found"][1]["seconds"]["train"] / updates
    resume = gains(depths["seconds"], "full")
    return {
        "numbers": {
            "resume_vs_theory": min(gain["of_theory"] for gain in resume.values()),
            "step_vs_matmul": products["seconds"] / updates / step,
            "step_warm_vs_matmul": products["seconds"] / updates / warm,
        },
        "resume": resume,
        "resume_vs_embeddings_frozen": gains(depths["seconds"], "0"),
        "encoder": depths,
        "step": {"seconds": step, "warm": warm, "products": products["seconds"] / updates, "updates": updates},
        "flops": products["flops"],
        "precision": precision,
        "used": used,
        "passes": record["passes"],
    }


def targets(text: Texts, seeds: list[int]) -> list[str]:
    """Return the files that are wanted: the states of all boundaries that one can resume at, and full training."""
    cell = f"runs/{text.name}/all/minilm/{work.TABLE_HEAD}/{work.FULL}/base"
    wanted = [f"features/minilm/{text.name}/bench/tokens.json", *(f"{cell}/seed{seed}/metrics.json" for seed in seeds)]
    return [f"results/{path}" for path in wanted]


def gains(seconds: dict[str, float], whole: str) -> dict[int, dict[str, float]]:
    """Return for k of L frozen layers how many times as fast the encoder's part is as that of the `whole`.

    `theory` is L / (L - k); `of_theory` what part of it was reached.
    """
    found = {}
    for k in range(1, work.LAYERS):
        gain, theory = seconds[whole] / seconds[str(k)], work.LAYERS / (work.LAYERS - k)
        found[k] = {"gain": gain, "theory": theory, "of_theory": gain / theory}
    return found
