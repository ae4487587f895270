"""One sentence below a figure on what is seen in it, from the numbers behind it."""

from collections import Counter

from thaw.outputs import wording

FEW = 4  # tasks that are named; of more they are counted
RISE = 0.05  # points by which a mean must be higher to have risen


def sentence(kind: str, rows: list[dict], labels: dict) -> str:
    """Return what is seen in a figure; empty for a kind of which nothing is said.

    Args: kind of the figure; its records; labels of the report's spec.
    """
    if kind == "cost_figure":
        return _front(rows, labels)
    if kind == "layer_figure":
        return _sweeps(rows, labels)
    return ""


def _front(rows: list[dict], labels: dict) -> str:
    """Name the strategies on the Pareto front, by panel or by the number of panels."""
    fronts: dict[tuple, list[str]] = {_panel(row): [] for row in rows}
    for row in rows:
        if row["pareto"]:
            fronts[_panel(row)].append(_name(row, labels))
    fronts = {panel: names for panel, names in fronts.items() if names}
    if not fronts:
        return ""
    if len(fronts) <= FEW:
        said = [f"{_task(panel, labels)}: {wording.listing(names)}" for panel, names in fronts.items()]
        return f"On the front: {'; '.join(said)}."
    counts = Counter(name for names in fronts.values() for name in names)
    said = [f"{name} in {count}" for name, count in counts.most_common(FEW)]
    return f"Most often on the front of the {len(fronts)} panels: {wording.listing(said)}."


def _sweeps(rows: list[dict], labels: dict) -> str:
    """Say of each sweep whether its last point is above its first."""
    sweeps: dict[str, dict[tuple, list[dict]]] = {}
    for row in rows:
        if row["variant"] != "base" and row["mean"] is not None:
            sweeps.setdefault(row["strategy"], {}).setdefault(_panel(row), []).append(row)
    said = []
    for strategy, panels in sweeps.items():
        ends = {panel: _ends(points) for panel, points in panels.items()}
        rises = {panel: last - first for panel, (first, last, _, _) in ends.items()}
        steps = {(low, high) for _, _, low, high in ends.values()}
        if len(steps) != 1:
            continue
        low, high = steps.pop()
        if low == high:
            continue
        name = wording.label(labels, "strategies", strategy)
        above = sum(rise > RISE for rise in rises.values())
        named = [f"{_task(panel, labels)} {'+' * (rise > 0)}{wording.number(rise)}" for panel, rise in rises.items()]
        which = f" ({', '.join(named)})" if len(named) <= FEW else ""
        panels_above = f"{above} of {wording.plural(len(rises), 'panel')}{which}"
        said.append(f"{name}: from k = {low} to k = {high} the mean rises in {panels_above}.")
    return " ".join(said)


def _ends(points: list[dict]) -> tuple[float, float, int, int]:
    """Return the mean at the fewest and at the most thawed layers, and these numbers of layers."""
    ordered = sorted(points, key=lambda row: row["thawed"])
    first, last = ordered[0], ordered[-1]
    return first["mean"], last["mean"], int(first["thawed"]), int(last["thawed"])


def _panel(row: dict) -> tuple:
    return tuple(row[name] for name in ("task", "split", "subset", "encoder", "head"))


def _task(panel: tuple, labels: dict) -> str:
    return wording.task_name(labels, panel[0])


def _name(row: dict, labels: dict) -> str:
    return wording.strategy_name(labels, row["strategy"], row["variant"])
