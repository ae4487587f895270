"""A table of variance components: how initialisation, data order and subset contribute to the spread of scores."""

from thaw.declarations import output_options as options
from thaw.declarations.output_kind import OutputKind, Requirement

TABLES = {
    "spread_table": OutputKind(
        "thaw.papers.variance:build",
        "how much of the standard deviation of scores comes from initialisation, data order and the draw of "
        "the subset, for an experiment with several seeds, orders or draws",
        options.SplitOptions,
        needs=(Requirement.LEVELS,),
    ),
}


import re
from math import prod, sqrt

from thaw.core.errors import UserError
from thaw.outputs import wording
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.render.typed_table import Cell, Group, Row, Table, behind, said
from thaw.statistics import variance_components
from thaw.statistics.variance_components import Component

FACTORS = {"initialisation": "Initialisation", "order": "Order", "seed": "Seed (both)", "subset": "Subset"}
RUNS = ["task", "split", "encoder", "head", "train_rows", "strategy", "point"]
BY_ORDER = re.compile(r"order\d+")  # points of a strategy that sweeps the order of the rows


def build(data, spec: dict) -> Table:
    """Return the standard deviation of each factor, a line for each task and strategy with a varying factor.

    The seed of a run decides initialisation, dropout and the order of the rows; where a strategy sweeps the order
    (`sweep: {order: [1, 2]}`), the order is a factor of its own and the seed decides the rest. Both are nested in the
    subset, since their numbers mean nothing on other rows. Raises UserError where nothing varies.
    """
    components, uneven = _split(data.runs, spec)
    if not components:
        raise UserError("a spread_table needs two seeds, orders or draws of a subset, and all combinations of them")
    labels, groups = spec["labels"], {}
    for key, (factors, parts, runs) in components.items():
        at, shares = dict(zip(RUNS, key, strict=True)), _shares(factors, parts)
        group = (at["encoder"], at["head"], at["train_rows"])
        row = Row(_name(at, labels), _cells(factors, parts, shares, runs))
        groups.setdefault(group, []).append(row)
        place = {name: at[name] for name in ("task", "split", "encoder", "head", "strategy")}
        place |= {"variant": at["point"], "train_rows": at["train_rows"]}
        for factor, part in parts.items():
            record = place | {"factor": factor, "levels": factors.get(factor), "variance": max(0.0, part.variance)}
            low, high = (part.low, part.high) if factor in factors else (None, None)
            record |= {"low": low, "high": high, "share": shares.get(factor), "runs": prod(factors.values())}
            row.records.append(record)
    titles = [*FACTORS.values(), "Rest", "Runs"]
    made = [Group(_group_name(group, groups, labels), rows) for group, rows in groups.items()]
    unshared = not all(_has_shares(factors) for factors, *_ in components.values())
    return Table.of_spec(spec, titles, made, _notes(unshared, uneven), of="Task and strategy")


def _split(runs, spec: dict) -> tuple[dict, int]:
    """Return by RUNS ({factor: levels}, {factor or rest: component in squared points}, the names and anchors of the
    runs), and how many are unbalanced.
    """
    chosen = runs[(runs["kind"] == "run") & runs["main"].astype(bool) & (runs["role"] == spec["split"])]
    chosen = chosen[chosen["value"].notna() & (chosen["missing"] == "")]
    swept = chosen["variant"].str.fullmatch(BY_ORDER)
    chosen = chosen.assign(order=chosen["variant"].where(swept, ""), point=chosen["variant"].where(~swept, "base"))
    components, uneven = {}, 0
    for key, rows in chosen.groupby(RUNS, sort=False):
        seed = "initialisation" if rows["order"].iloc[0] else "seed"
        within = rows.groupby("subset")[["seed", "order"]].nunique().max()
        levels = {seed: within["seed"], "order": within["order"], "subset": rows["subset"].nunique()}
        factors = {name: int(size) for name, size in levels.items() if size > 1}
        uneven += len(rows) != prod(levels.values())
        if factors and len(rows) == prod(levels.values()):
            columns = ["seed" if name == seed else name for name in factors]
            keys = rows[columns].itertuples(index=False, name=None)
            scores = dict(zip(keys, 100 * rows["value"], strict=True))
            outer = "subset" if "subset" in factors and len(factors) > 1 else None
            parts = variance_components.split(scores, tuple(factors), outer)
            components[key] = factors, parts, _behind(rows, spec["labels"])
    return components, uneven


def _behind(rows, labels: dict) -> list[tuple[str, str]]:
    """Return name and anchor of the runs of a line, which are of one strategy: subset, and place in its sweep."""
    named = []
    for row in rows.drop_duplicates(["subset", "variant"]).itertuples():
        name = [wording.label(labels, "subsets", row.subset), wording.point(row.variant)]
        named.append((", ".join(part for part in name if part), row_anchor(row)))
    return named


def _name(at: dict, labels: dict) -> str:
    strategy = wording.strategy_name(labels, at["strategy"], at["point"])
    return f"{wording.column_name(labels, at['task'], at['split'], at['split'] != 'test')}: {strategy}"


def _group_name(group: tuple, groups: dict, labels: dict) -> str:
    """Return the parts of a group's name that differ: encoder, head, training rows."""
    encoder, head, rows = group
    names = [wording.label(labels, "encoders", encoder), wording.label(labels, "heads", head)]
    names.append(f"{wording.count(rows)} rows")
    several = [len({other[index] for other in groups}) > 1 for index in range(3)]
    return "; ".join(name for name, shown in zip(names, several, strict=True) if shown)


def _has_shares(factors: dict[str, int]) -> bool:
    """Return whether shares of the variance say anything: not of one factor, nor where one has two levels in all."""
    draws = factors.get("subset", 1)
    return len(factors) > 1 and all(size > 2 or (name != "subset" and draws > 1) for name, size in factors.items())


def _shares(factors: dict[str, int], parts: dict[str, Component]) -> dict[str, float]:
    """Return the share of the variance of each part; {} where that says nothing."""
    total = sum(max(0.0, part.variance) for part in parts.values())
    if not total or not _has_shares(factors):
        return {}
    return {name: max(0.0, part.variance) / total for name, part in parts.items()}


def _cells(factors: dict[str, int], parts: dict[str, Component], shares: dict[str, float], runs) -> list[Cell]:
    """Return the standard deviation of each factor in points with its share of the variance, the rest, and the runs.

    Args: runs, the names and anchors of the runs.
    """
    cells = []
    for name in [*FACTORS, "rest"]:
        value = max(0.0, parts[name].variance) if name in parts else None
        share = f" ({100 * shares[name]:.0f} %)" if name in shares else ""
        cells.append(said(wording.DASH if value is None else wording.number(sqrt(value), 2) + share, value))
    size = " × ".join(str(size) for size in factors.values())
    return [*cells, behind(said(size), runs)]


def _notes(unshared: bool, uneven: int) -> list[str]:
    notes = [
        "Standard deviation of each factor in points, with its share of the variance: balanced random effects, by the "
        "method of moments; negative estimates are set to 0. Seeds and orders are nested in a subset, since their "
        "numbers mean nothing on other rows. Noise counts as Seed, or as Rest with the interaction of initialisation "
        "and order.",
        "The seed of a run sets initialisation, dropout and data order; the two are separate only where a strategy "
        "sweeps the order. Dropout counts as initialisation.",
        "Estimates from few levels are rough: the CSV has the 95 % CI of each variance, by the modified large-sample "
        "method (for normal factors).",
    ]
    notes += ["No shares with a single factor, or where a factor has two levels in all."] * unshared
    return notes + [f"Left out because runs are missing: {wording.plural(uneven, 'line')}."] * bool(uneven)
