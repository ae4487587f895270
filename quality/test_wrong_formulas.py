"""The wrong formulas of `make mutants-heads`: each replaces one place."""

import importlib.util

import head_mutants
import mutants


def test_each_wrong_formula_replaces_one_place():
    """Else `make mutants-heads` ends at the first that does not."""
    changes = [change for of_head in head_mutants.MUTANTS.values() for change in of_head]
    assert [(name, old) for name, old, _ in changes if head_mutants.read(name)[1].count(old) != 1] == []


def test_what_is_mutated_and_the_tests_that_try_it_exist():
    for module, files in mutants.TESTS.items():
        assert importlib.util.find_spec(module), module
        assert [name for name in files if not (mutants.HOME / f"tests/test_{name}.py").is_file()] == []
    assert [name for name in head_mutants.FILES if not (mutants.HOME / "tests" / name).is_file()] == []
