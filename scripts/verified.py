"""The page of what speaks for each method, made from tests/verified.yaml when the site is built (site_hooks.py)."""

from pathlib import Path

import yaml

HOME = Path(__file__).resolve().parents[1]
HEAD = """# What is verified, method by method

For each method of the papers, tests compare it with something that is not its own code. **{holding} of {all} lack
nothing**; for the others the last column says what is missing. [verified.yaml](../tests/verified.yaml) names each test.

Of {kept} rows runs on real text are kept. On each of their tasks the mean is above the majority class. On one task at
least every run is above it and has no flag. To repeat a row, run its experiment or its tests:

    thaw run config/experiments/layer_combinations.yaml --config data_dir=path/to/data
    pytest tests/test_layers.py -k test_layers_are_combined

|  | method | compared with, and the tests | experiment | runs that are kept | missing |
|--:|:--|:--|:--|:--|:--|
"""


def entries() -> list[dict]:
    """Return the entries of tests/verified.yaml."""
    return yaml.safe_load((HOME / "tests/verified.yaml").read_text(encoding="utf-8"))


def holds(entry: dict) -> bool:
    """Return whether an entry has an oracle and lacks nothing."""
    return bool(entry.get("oracle") and not entry.get("lacks"))


def short_of_majority(record, strategies: list[str]) -> list[str]:
    """Return the strategies whose runs do not show that their method works. Args: a frame of docs/results.

    On each task their mean on test is above the majority class, and on one at least every run is, without a flag.
    """
    tested = record[record["role"] == "test"]
    constant = tested[tested["strategy"] == "majority"].groupby("task")["value"].mean().dropna()
    return [strategy for strategy in strategies if not _shows(tested[tested["strategy"] == strategy], constant)]


def _shows(runs, constant) -> bool:
    """Return whether runs of a strategy are above the majority class. Args: the score of that class, by task."""
    runs = runs[runs["task"].isin(constant.index)]
    if runs.empty:
        return False
    above = runs["value"] > runs["task"].map(constant)
    if "flags" in runs:
        above &= runs["flags"].fillna("") == ""
    means = runs.groupby("task")["value"].mean()
    return bool((means > constant[means.index]).all() and above.groupby(runs["task"]).all().any())


def page() -> str:
    """Return the page as Markdown."""
    every = entries()
    rows = "".join(f"| {number} | {' | '.join(_cells(entry))} |\n" for number, entry in enumerate(every, start=1))
    kept = sum("record" in entry for entry in every)
    return HEAD.format(holding=sum(map(holds, every)), all=len(every), kept=kept) + rows


def _cells(entry: dict) -> list[str]:
    files = dict.fromkeys(test.partition("::")[0] for test in entry.get("oracle", []))
    named = ", ".join(f"[{Path(file).stem}](../tests/{file})" for file in files)
    experiment = entry.get("experiment")
    record = entry.get("record")
    return [
        entry["what"],
        f"{entry['against']}: {named}" if named else "–",
        f"[{experiment}](../config/experiments/{experiment}.yaml)" if experiment else "–",
        f"[{record}](results/{record}.parquet): {', '.join(entry['strategies'])}" if record else "–",
        entry.get("lacks", ""),
    ]
