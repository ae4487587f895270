"""All that tests/verified.yaml names exists."""

import ast
from functools import cache
from pathlib import Path

import pytest

import verified

HOME = verified.HOME
KEYS = {"what", "oracle", "against", "experiment", "lacks"}


def test_the_page_has_a_row_for_each_entry():
    rows = verified.page().partition("|--:|:--|")[2].splitlines()[1:]
    assert len(rows) == len(verified.entries()) and all(row.count(" | ") == 4 for row in rows)


@pytest.mark.parametrize("entry", verified.entries(), ids=lambda entry: entry["what"])
def test_what_an_entry_names_exists(entry):
    assert entry.keys() <= KEYS and ("oracle" in entry) == ("against" in entry)
    for oracle in entry.get("oracle", []):
        file, _, test = oracle.partition("::")
        assert test in names_in(HOME / "tests" / file), oracle
    if "experiment" in entry:
        assert (HOME / f"config/experiments/{entry['experiment']}.yaml").is_file()
    assert verified.holds(entry) or entry.get("lacks"), "an entry that does not hold says what it lacks"


@pytest.mark.parametrize(
    ("entry", "held"),
    [
        ({"oracle": ["a"]}, True),
        ({"oracle": ["a"], "lacks": "c"}, False),
        ({"experiment": "a"}, False),
    ],
)
def test_what_holds(entry, held):
    assert verified.holds(entry) == held


@cache
def names_in(file: Path) -> set[str]:
    """Return the names of a file's tests."""
    return {node.name for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}
