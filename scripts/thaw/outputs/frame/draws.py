"""Draws of the training rows as seeds: subsets of one size, drawn differently, as one subset with more seeds."""

from collections import Counter

from thaw.words import wording


def together(runs, first: dict[str, str]):
    """Return the runs with the draws of a size as one subset, whose seeds are numbered over draws and seeds.

    Args: runs as `read_runs` returns them; first, for each subset that is one of several draws, the first of them. The
    same draw and seed have the same number in all cells, so that they are compared in pairs.
    """
    if not first:
        return runs
    known, numbers = runs["seed"].notna() & runs["subset"].isin(first), numbered(runs, first)
    runs = runs.copy()
    runs.loc[known, "seed"] = [numbers[row.subset, row.seed] for row in runs[known].itertuples()]
    return runs.assign(subset=runs["subset"].map(lambda subset: first.get(subset, subset)))


def numbered(runs, first: dict[str, str]) -> dict[tuple[str, int], int]:
    """Return the number that `together` gives a seed of a draw, by (subset, seed)."""
    places = {subset: place for place, subset in enumerate(first)}
    known = runs[runs["seed"].notna() & runs["subset"].isin(places)]
    keys = set(zip(known["subset"], known["seed"], strict=True))
    return {key: number for number, key in enumerate(sorted(keys, key=lambda key: (places[key[0]], key[1])), start=1)}


def unit(first: dict[str, str], most: int) -> str:
    """Return what the runs of a mean differ in: seed, draw, or run for both. Args: see `together`; their number."""
    draws = Counter(first.values()).values()
    return "seed" if not draws else "draw" if most <= max(draws) else "run"


def notes(runs, first: dict[str, str]) -> list[str]:
    """Return the note of a table whose draws are together, none where they are not. Args: as of `together`."""
    if not first:
        return []
    counts = {one: sum(other == one for other in first.values()) for one in dict.fromkeys(first.values())}
    said = wording.listing(f"{count} from {one} on" for one, count in counts.items())
    seeds = runs[runs["subset"].isin(first)].groupby("subset")["seed"].nunique().max()
    shared = f" The {seeds} seeds of a draw share its rows, so that intervals are too narrow." if seeds > 1 else ""
    return [f"Each draw of the training rows counts as further seeds: {said}.{shared}"]
