"""Which seeds of a cell one job trains: `compute: {together: 5}`. No torch.

A rule has the files of a fixed list of seeds, so that there is one rule for each list that occurs; cells that differ in
their seeds though head, strategy and variant are the same keep one job a seed. Seeds that keep their encoder, which is
one file more, are in other lists than those that do not.
"""

from thaw.core import layout
from thaw.planning.jobs import JobTable

Part = tuple[int, ...]
Cell = tuple[str, str, str]  # head, strategy, variant


def seed_parts(table: JobTable, together: int) -> dict[Part, list[Cell]]:
    """Return by list of seeds, in rising order, the cells that train these in one job; none where a job has one run."""
    seeds: dict[tuple, dict[int, bool]] = {}
    for key, job in table.jobs["train"].items() if together > 1 else ():
        names = layout.names_in_folder("train", key)
        cell = tuple(names[name] for name in layout.CELL)
        seeds.setdefault(cell, {})[int(names["seed"])] = bool(job.spec.get("keep"))
    lists: dict[Cell, set[tuple[Part, ...]]] = {}
    for (*_, head, strategy, variant), own in seeds.items():
        lists.setdefault((head, strategy, variant), set()).add(_parts(own, together))
    others = table.executed["fit_heads"] | table.executed["search_heads"]
    parts: dict[Part, list[Cell]] = {}
    for cell, seed_lists in sorted(lists.items()):
        (first, *more) = seed_lists
        if more or cell[:2] in others:
            continue
        for part in (part for part in first if len(part) > 1):
            parts.setdefault(part, []).append(cell)
    return parts


def _parts(seeds: dict[int, bool], together: int) -> tuple[Part, ...]:
    """Return the seeds of a cell in parts of at most `together`. Args: whether each seed keeps its encoder."""
    alike = [sorted(seed for seed, keeps in seeds.items() if keeps == kept) for kept in (False, True)]
    return tuple(tuple(some[at : at + together]) for some in alike for at in range(0, len(some), together))


def alone(table: JobTable, parts: dict[Part, list[Cell]]) -> str:
    """Return, as a pattern for the wildcard `seed`, the runs that have a job of their own. Args: as of `seed_parts`."""
    shared = {(*cell, str(seed)) for part, cells in parts.items() for cell in cells for seed in part}
    runs = {}
    for key in table.jobs["train"]:
        names = layout.names_in_folder("train", key)
        runs[tuple(names[name] for name in ("head", "strategy", "variant", "seed"))] = None
    patterns = [f"(?<=/{'/'.join(run[:3])}/seed){run[3]}" for run in sorted(runs) if run not in shared]
    return "|".join(patterns) or "none"


def pattern(cells: list[Cell]) -> str:
    """Return, as a pattern for the wildcard `variant`, some cells by head, strategy and variant."""
    return "|".join(f"(?<=/{head}/{strategy}/){variant}" for head, strategy, variant in cells) or "none"
