"""All that tests/verified.yaml names exists."""

import ast
from functools import cache
from pathlib import Path

import pandas
import pytest

import verified

HOME = verified.HOME
KEYS = {"what", "oracle", "against", "experiment", "record", "strategies", "lacks"}


def test_the_page_has_a_row_for_each_entry():
    rows = verified.page().partition("|--:|:--|")[2].splitlines()[1:]
    assert len(rows) == len(verified.entries()) and all(row.count(" | ") == 5 for row in rows)


@pytest.mark.parametrize("entry", verified.entries(), ids=lambda entry: entry["what"])
def test_what_an_entry_names_exists(entry):
    assert entry.keys() <= KEYS and ("oracle" in entry) == ("against" in entry)
    for oracle in entry.get("oracle", []):
        file, _, test = oracle.partition("::")
        assert test in names_in(HOME / "tests" / file), oracle
    if "experiment" in entry:
        assert (HOME / f"config/experiments/{entry['experiment']}.yaml").is_file()
    assert verified.holds(entry) or entry.get("lacks"), "an entry that does not hold says what it lacks"


@pytest.mark.parametrize("entry", [one for one in verified.entries() if "record" in one], ids=lambda one: one["what"])
def test_what_is_kept_of_a_method_shows_that_it_works(entry):
    record = pandas.read_parquet(HOME / f"docs/results/{entry['record']}.parquet")
    assert entry["strategies"] and verified.short_of_majority(record, entry["strategies"]) == []


@pytest.mark.parametrize(
    ("values", "flags", "short"),
    [
        ((0.9, 0.8), ("", None), False),
        ((0.9, 0.5), ("", ""), True),  # one task is at the majority class
        ((0.9, 0.8), ("underfit", "one_class"), True),
        ((), (), True),
    ],
)
def test_runs_at_the_majority_class_or_with_a_flag_show_nothing(values, flags, short):
    rows = [{"task": task, "strategy": "majority", "value": 0.5, "flags": "one_class"} for task in "ab"]
    runs = [
        {"task": task, "value": value, "flags": flag} for task, value, flag in zip("ab", values, flags, strict=False)
    ]
    record = pandas.DataFrame([*rows, *({"strategy": "s", **run} for run in runs)]).assign(role="test")
    assert verified.short_of_majority(record, ["s"]) == ["s"] * short


@cache
def names_in(file: Path) -> set[str]:
    """Return the names of a file's tests."""
    return {node.name for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}
