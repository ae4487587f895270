"""The page of what speaks for each method, made from tests/verified.yaml when the site is built (site_hooks.py)."""

from pathlib import Path

import yaml

HOME = Path(__file__).resolve().parents[1]
HEAD = """# What is verified, method by method

For each method of the papers, tests compare it with something that is not its own code. **{holding} of {all} lack
nothing**;
for the others the last column says what is missing. [verified.yaml](../tests/verified.yaml) names each test. To
repeat a row, run its experiment or its tests:

    thaw run config/experiments/layer_combinations.yaml --config data_dir=path/to/data
    pytest tests/test_layers.py -k test_layers_are_combined

|  | method | compared with, and the tests | experiment | missing |
|--:|:--|:--|:--|:--|
"""


def entries() -> list[dict]:
    """Return the entries of tests/verified.yaml."""
    return yaml.safe_load((HOME / "tests/verified.yaml").read_text(encoding="utf-8"))


def holds(entry: dict) -> bool:
    """Return whether an entry has an oracle and lacks nothing."""
    return bool(entry.get("oracle") and not entry.get("lacks"))


def page() -> str:
    """Return the page as Markdown."""
    every = entries()
    rows = "".join(f"| {number} | {' | '.join(_cells(entry))} |\n" for number, entry in enumerate(every, start=1))
    return HEAD.format(holding=sum(map(holds, every)), all=len(every)) + rows


def _cells(entry: dict) -> list[str]:
    files = dict.fromkeys(test.partition("::")[0] for test in entry.get("oracle", []))
    named = ", ".join(f"[{Path(file).stem}](../tests/{file})" for file in files)
    experiment = entry.get("experiment")
    return [
        entry["what"],
        f"{entry['against']}: {named}" if named else "–",
        f"[{experiment}](../config/experiments/{experiment}.yaml)" if experiment else "–",
        entry.get("lacks", ""),
    ]
