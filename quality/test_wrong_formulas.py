"""The wrong formulas of `make mutants-heads`: each replaces one place, and the page names them all."""

import re

import head_mutants


def test_each_wrong_formula_replaces_one_place():
    """Else `make mutants-heads` ends at the first that does not."""
    changes = [change for of_head in head_mutants.MUTANTS.values() for change in of_head]
    assert [(name, old) for name, old, _ in changes if head_mutants.read(name)[1].count(old) != 1] == []


def test_the_page_has_all_wrong_formulas():
    rows = re.findall(
        r"^\| (\w+) \| (\d+) \| \d+ \| [-\d]*", (head_mutants.HOME / "docs/testing.md").read_text(), re.MULTILINE
    )
    counts = {name: len(changes) for name, changes in head_mutants.MUTANTS.items()}
    assert {name: int(count) for name, count in rows} == counts | {"all": sum(counts.values())}
