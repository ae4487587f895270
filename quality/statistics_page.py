"""Write docs/explanation/statistics.md: what intervals and words mean, and how well they do in simulations.

python quality/statistics_page.py               write the page from the record
python quality/statistics_page.py --simulate    simulate first (some minutes), and write the record
"""

import sys
from pathlib import Path

from simulate_statistics import simulated
from thaw.core.files import read_json, write_json, write_text

HOME = Path(__file__).parents[1]
RECORD, PAGE = HOME / "quality/statistics.json", HOME / "docs/explanation/statistics.md"
TEXT = HOME / "quality/statistics_page.md"  # of the page, with the names of tables in braces
TIMES = 5  # hundreds of repeats

# by table of the record: {column: its title}
TABLES = {
    "coverage": {"seeds": "Seeds"}
    | {f"{key}_{sd}": title for sd in (0, 1, 2) for key, title in (("sd", f"Coverage, sd {sd}"), ("width", "Width"))},
    "groups": {"alone": "Rows alone", "by_group": "By group"},
    "differences": {
        "tests": "Differences",
        "seeds": "Seeds",
        "own": "Own intervals",
        "joint": "One interval",
        "width": "Width",
        "power": "5 points found",
    },
    "taken": {"strategies": "Strategies", "seeds": "Seeds", "lower": "Another said to be lower"},
    "components": {"draws": "Draws"}
    | {
        f"{key}_{name}": f"{title}: {key}"
        for name, title in (("subset", "Draws"), ("seed", "Seeds"))
        for key in ("mean", "coverage")
    },
    "shares": {"seeds": "Seeds"}
    | {
        f"{key}_{way}": f"{way} points: {title}"
        for way in (20, 4)
        for key, title in (("shown", "shown"), ("inside", "coverage"))
    },
    "layers": {"sd": "sd", "first": "First k", "lasting": "From which on all"},
}


def page(record: dict) -> str:
    """Return the page. Args: the record, as `simulated` returns it with the number of rows."""
    tables = {name: _table(titles, record[name]) for name, titles in TABLES.items()}
    grouped = record["groups"][0]
    text = TEXT.read_text(encoding="utf-8")
    numbers = {"rows": record["rows"], "grouped_rows": grouped["rows"], "grouped": grouped["groups"]}
    return text.format(**numbers, **_repeats(record), **tables)


def _repeats(record: dict) -> dict[str, str]:
    """Return the numbers of repeats that `simulate_statistics` makes, and twice the standard errors of rates."""
    repeats = 100 * record["times"]
    numbers = {"repeats": repeats, "ways": repeats // 2, "splits": 2 * repeats}
    errors = {f"error_{name}": _error(0.05, numbers[name]) for name in ("ways", "splits")}
    errors |= {f"error_{name}": _error(rate, repeats) for name, rate in (("005", 0.05), ("02", 0.2), ("05", 0.5))}
    numbers["choices"] = 10 * repeats
    return {name: f"{number:,}" for name, number in numbers.items()} | errors


def _error(rate: float, repeats: int) -> str:
    """Return twice the standard error of a simulated rate."""
    return f"{2 * (rate * (1 - rate) / repeats) ** 0.5:.3f}"


def _table(titles: dict[str, str], lines: list[dict]) -> str:
    """Return a table of the record as Markdown."""
    rows = [list(titles.values()), ["--:"] * len(titles)]
    rows += [[f"{line[key]:g}" for key in titles] for line in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Simulate where asked for, and write the page."""
    if "--simulate" in sys.argv[1:]:
        from simulate_statistics import ROWS

        write_json(RECORD, {"rows": ROWS, "times": TIMES} | simulated(TIMES))
    write_text(PAGE, page(read_json(RECORD)))


if __name__ == "__main__":
    main()
