"""docs/verified.md is what tests/verified.yaml says, and all that this names exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import verified

HOME = verified.HOME
KEYS = {"what", "oracle", "against", "experiment", "shown", "record", "prose", "lacks"}


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
        assert (HOME / "docs" / page).is_file()
        assert not section or section in sections(HOME / "docs" / page), entry["shown"]
    assert verified.holds(entry) or entry.get("lacks"), "an entry that does not hold says what it lacks"


@pytest.mark.parametrize("entry", list(filter(verified.holds, verified.entries())), ids=lambda entry: entry["what"])
def test_the_section_of_an_entry_that_holds_has_a_record_of_its_experiment(entry):
    page, _, section = entry["shown"].partition("#")
    found = sections(HOME / "docs" / page)
    text = found[section] if section else "".join(found.values())
    name = entry.get("record", entry["experiment"])
    shows = re.search(rf"<!-- \w+: {name}/|\({name}/figures/", text)
    assert shows or entry.get("prose"), f"{entry['shown']} shows nothing of docs/results/{name}"


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
def sections(page: Path) -> dict[str, str]:
    """Return what stands below each heading of a page, with what stands below its subheadings.

    Keys are the anchors of headings, as the site and GitHub make them.
    """
    text = page.read_text(encoding="utf-8")
    found, heads = {}, list(re.finditer(r"^(#+) (.+)$", text, re.MULTILINE))
    for place, head in enumerate(heads):
        later = (other.start() for other in heads[place + 1 :] if len(other[1]) <= len(head[1]))
        anchor = re.sub(r"[^\w\- ]", "", head[2].lower()).replace(" ", "-")
        found[anchor] = text[head.end() : next(later, len(text))]
    return found
