"""Tables of the page on statistics, made from quality/statistics.json when the site is built (site_hooks.py)."""

import json
import re
from pathlib import Path

RECORD = Path(__file__).resolve().parents[1] / "quality/statistics.json"
PLACE = re.compile(r"<!-- simulated: (\w+) -->")

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
    "shares": {"seeds": "Seeds"}
    | {
        f"{key}_{way}": f"{way} points: {title}"
        for way in (20, 4)
        for key, title in (("shown", "shown"), ("inside", "coverage"))
    },
    "layers": {"sd": "sd", "first": "First k", "lasting": "From which on all"},
}


def filled(page: str) -> str:
    """Return a page with the tables that it names."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    return PLACE.sub(lambda place: table(TABLES[place[1]], record[place[1]]), page)


def table(titles: dict[str, str], lines: list[dict]) -> str:
    """Return lines of the record as a Markdown table. Args: titles by key; lines."""
    rows = [list(titles.values()), ["--:"] * len(titles)]
    rows += [[f"{line[key]:g}" for key in titles] for line in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
