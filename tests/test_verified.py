"""docs/verified.md is what tests/verified.yaml says, and all that this names exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import verified

HOME = verified.HOME
KEYS = {"what", "oracle", "against", "experiment", "shown", "lacks"}


def test_the_page_is_made_of_the_entries():
    assert verified.PAGE.read_text(encoding="utf-8") == verified.page(), "run scripts/verified.py"


@pytest.mark.parametrize("entry", verified.entries(), ids=lambda entry: entry["what"])
def test_what_an_entry_names_exists(entry):
    assert entry.keys() <= KEYS and ("oracle" in entry) == ("against" in entry)
    for oracle in entry.get("oracle", []):
        file, _, test = oracle.partition("::")
        assert test in names_in(HOME / "tests" / file), oracle
    if "experiment" in entry:
        assert (HOME / f"config/experiments/{entry['experiment']}.yaml").is_file()
    if "shown" in entry:
        page, _, section = entry["shown"].partition("#")
        assert not section or section in sections(HOME / "docs" / page), entry["shown"]
        assert (HOME / "docs" / page).is_file()
    assert verified.holds(entry) or entry.get("lacks"), "an entry that does not hold says what it lacks"


@pytest.mark.parametrize(
    ("entry", "held"),
    [
        ({"oracle": ["a"], "shown": "b"}, True),
        ({"oracle": ["a"], "shown": "b", "lacks": "c"}, False),
        ({"oracle": ["a"]}, False),
        ({"shown": "b"}, False),
    ],
)
def test_what_holds(entry, held):
    assert verified.holds(entry) == held


@cache
def names_in(file: Path) -> set[str]:
    """Return the names of a file's tests."""
    return {node.name for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


@cache
def sections(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the site and GitHub make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
