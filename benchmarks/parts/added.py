"""One strategy more in a finished experiment: top 3 at another rate, where frozen, top 1, 2, 3 and full are there.

Thaw finds the states that it starts from on disk; the peers train its cells alone, and so from text. Thaw runs a second
time as a later command of one shell, which finds libraries imported.
"""

import shutil
import statistics
from dataclasses import replace

from .. import rivals, work
from ..measuring import at_a_terminal, interleaved, median, timed
from ..options import Options
from ..ours import Place
from ..texts import tasks
from .table import TUNED

ADDED = {"bench_top_3_slow": {"label": "Top 3, slow", "phases": [work.phase(["head", {"top": 3}], 1e-4)]}}
PEERS = ("tuned", "boundary_loop")  # one run: one process with all cores


def measure(options: Options) -> dict:
    """Return the seconds of all sides for the strategy that is added, whole processes, tables and report included."""
    used = {"threads": options.cores}  # as the peers': nothing else is to be computed
    options = replace(options, **used)
    text = tasks(options)[0]
    place = Place(options.folder("added"), options, [text], work.depths() | ADDED)
    place.write("bench.yaml", place.selection | {"strategies": list(work.depths())})
    place.run()
    place.write("bench.yaml", place.selection)
    cells = work.cells([text.name], ADDED, options.seed_list, work.LAYERS)
    told = rivals.told([text], place)

    def ours(how=timed) -> dict:
        place.timed, results = how, place.folder / "results"
        for folder in [*results.glob(f"runs/*/*/*/*/{next(iter(ADDED))}"), results / "outputs"]:
            shutil.rmtree(folder)  # with the tables, since nobody looks for runs below tables that are there
        return place.thaw()

    with at_a_terminal() as typed:
        ours(typed)
        sides = {"ours": ours, "ours_again": lambda: ours(typed)}
        sides |= {name: lambda run=TUNED[name]: run(place.folder, options, told, cells) for name in PEERS}
        rounds = interleaved(sides, options.rounds)
    return {
        "numbers": {},
        "used": used,
        "seconds": {side: median(records, "wall") for side, records in rounds.items()},
        "cpu_seconds": {side: median(records, "cpu") for side, records in rounds.items() if side != "ours_again"},
        "engine_seconds": {peer: statistics.median(map(rivals.engine, rounds[peer])) for peer in PEERS},
    }
