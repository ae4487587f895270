#!/usr/bin/env python3
"""Write docs/verified.md, what speaks for each method, from tests/verified.yaml; tests/test_verified.py compares."""

import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.core.files import write_text

HOME = Path(__file__).resolve().parents[1]
PAGE = HOME / "docs/verified.md"
HEAD = """# What is verified, method by method

For each method of the papers: tests that compare it with something that is not its own code, and the page with numbers
on real text. **{holding} of {all} are complete**: they have both, and nothing is known to be missing; of the others
the last column says what is. `python scripts/verified.py` makes this page from
[verified.yaml](../tests/verified.yaml), which names each test; a test finds out whether all that it names exists. To
repeat a row, run its experiment, or its tests:

    thaw run config/experiments/layer_combinations.yaml --config data_dir=path/to/data
    pytest tests/test_layers.py -k test_layers_are_combined

Pages say with which options their numbers were made, where not with an experiment as it is; all are with MiniLM-L6
unless they say otherwise. Which mistakes in formulas the tests of heads notice:
[testing.md](testing.md#formulas-of-heads).

|  | method | compared with, and the tests | experiment | numbers on real text | missing |
|--:|:--|:--|:--|:--|:--|
"""


def entries() -> list[dict]:
    """Return the entries of tests/verified.yaml."""
    return yaml.safe_load((HOME / "tests/verified.yaml").read_text(encoding="utf-8"))


def holds(entry: dict) -> bool:
    """Return whether an entry has an oracle and numbers on real text, and lacks nothing."""
    return bool(entry.get("oracle") and entry.get("shown") and not entry.get("lacks"))


def page() -> str:
    """Return the page as Markdown."""
    every = entries()
    rows = "".join(f"| {number} | {' | '.join(_cells(entry))} |\n" for number, entry in enumerate(every, start=1))
    return HEAD.format(holding=sum(map(holds, every)), all=len(every)) + rows


def _cells(entry: dict) -> list[str]:
    files = dict.fromkeys(test.partition("::")[0] for test in entry.get("oracle", []))
    named = ", ".join(f"[{Path(file).stem}](../tests/{file})" for file in files)
    experiment, shown = entry.get("experiment"), entry.get("shown")
    return [
        entry["what"],
        f"{entry['against']}: {named}" if named else "–",
        f"[{experiment}](../config/experiments/{experiment}.yaml)" if experiment else "–",
        f"[{Path(shown.partition('#')[0]).stem}]({shown})" if shown else "–",
        entry.get("lacks", ""),
    ]


if __name__ == "__main__":
    write_text(PAGE, page())
    print(f"wrote {PAGE.relative_to(HOME)}")
