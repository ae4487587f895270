"""How cost grows: seconds from start to end against examples, thawed layers, seeds and strategies, on all sides.

Each axis changes one thing and leaves the rest at one seed and one strategy. The exponent is the slope of a line
through the logarithms: 0 is a constant cost, 1 is in proportion. All sides compute in bf16 where the processor has it.
One run has all cores; of several, each side has as many processes as there are cores.
"""

from dataclasses import replace

import numpy as np

from .. import rivals, work
from ..options import Options
from ..ours import Place
from ..texts import TASKS, cut, read

EXAMPLES = [80, 320, 1250, 5000]
SEEDS = [1, 5, 20, 50]


def measure(options: Options) -> dict:
    """Return for each axis its points with the seconds of each side, and each side's exponent."""
    found = {}
    for axis, points in axes(options).items():
        rows = [_point(f"growth_{axis}_{value}", options, *point) for value, point in points.items()]
        seconds = {side: [row[side] for row in rows] for side in rows[0]}
        values = list(points)
        slopes = {side: exponent(values, column) for side, column in seconds.items()}
        found[axis] = {"points": values, "seconds": seconds, "exponents": slopes}
    return {"numbers": {}, "growth": found}


def axes(options: Options) -> dict[str, dict[int, tuple]]:
    """Return for each axis its points: {value: (training rows, strategies, seeds)}."""
    rows, table = options.rows, work.table(work.LAYERS)
    counts = [rows // 4, rows // 2, rows] if options.quick else EXAMPLES
    depths = [1, 3, work.LAYERS] if options.quick else range(1, work.LAYERS + 1)
    seeds = [1, 2, 4] if options.quick else SEEDS
    one = {work.FULL: work.full()}
    return {
        "examples": {count: (count, one, [1]) for count in counts},
        "layers": {k: (rows, {f"bench_top_{k}": work.top(k)}, [1]) for k in depths},
        "seeds": {count: (rows, {"bench_top_1": work.top(1)}, list(range(1, count + 1))) for count in seeds},
        "strategies": {count: (rows, dict(list(table.items())[:count]), [1]) for count in (1, 2, 4, len(table))},
    }


def _point(name: str, options: Options, rows: int, strategies: dict, seeds: list[int]) -> dict[str, float]:
    """Return the seconds of each side at one point, from start to end."""
    task, stand_in = next(iter(TASKS.items()))
    text = cut(read(task, stand_in, options), rows)
    alone = len(strategies) * len(seeds) == 1
    options = replace(options, rows=rows, threads=options.cores if alone else options.threads)
    compute = {"threads": options.threads}
    place = Place(options.folder(name), options, [text], strategies, seeds=seeds, compute=compute)
    cells, told = work.cells([text.name], strategies, seeds, work.LAYERS), rivals.told([text], place)
    ours = place.run()  # which makes the folder that peers work in
    tuned = rivals.trainers("tuned", place.folder, options, told, cells)
    loop = rivals.boundary_loops(place.folder, options, told, cells)
    return {"ours": ours["wall"], "tuned_side_by_side": tuned["wall"], "boundary_loop": loop["wall"]}


def exponent(points: list[float], seconds: list[float]) -> float:
    """Return b of seconds = a x points^b, by least squares on logarithms."""
    return float(np.polyfit(np.log(points), np.log(seconds), 1)[0])
