"""Mutation testing, `make mutants`: which changes to spec, store, resume and metrics code would their tests not see?

mutmut makes the changes, each alone: another number, the opposite condition, an argument less. The tests of a module
are loaded once; then a fork for each change gives the functions of the module their changed code, and runs the tests.
No file is changed. Tests that start processes of their own try nothing here.
"""

import argparse
import difflib
import importlib
import os
import random
import signal
import types
from pathlib import Path

import hypothesis
import pytest
from _pytest.main import pytest_runtestloop as run_tests

HOME = Path(__file__).parents[1]
TESTS = {  # module: the files of tests that try it, quickest first
    "thaw.core.files": ["records"],
    "code_digests": ["house"],
    "thaw.planning.run_jobs": ["plan", "pairs_plan", "probes_plan", "adapted_plan"],
    "thaw.evaluation.metrics": ["metrics"],
    "thaw.features.payload": ["store"],
    "thaw.features.store": ["store", "features", "pairs"],
    "thaw.api.resumed": ["resumed"],
    "thaw.encoders.resume": ["resume"],
    "thaw.training.progress": ["progress"],
}


def changes(source: str) -> list[str]:
    """Return what mutmut makes of a source, each with one change; of those to one string only the first."""
    import libcst
    from mutmut.mutation import file_mutation, mutators

    class Everywhere(file_mutation.MutationVisitor):
        def _skip_node_and_children(self, node) -> bool:
            """Return whether a node stays; a decorator is no reason, as it is in mutmut's own way of running."""
            bare = node.with_changes(decorators=[]) if isinstance(node, libcst.FunctionDef) else node
            return super()._skip_node_and_children(bare)

    def first(node):
        yield from list(mutators.operator_string(node))[:1]

    made = mutators.mutation_operators
    operators = [(kind, first if makes is mutators.operator_string else makes) for kind, makes in made]
    visitor = Everywhere(operators, file_mutation.IgnoredCode(set(), set(), set()))
    module = libcst.metadata.MetadataWrapper(libcst.parse_module(source)).visit(visitor)
    return [module.deep_replace(one.original_node, one.mutated_node).code for one in visitor.mutations]


def plain(value):
    """Return the function behind a property, a method or a decorator, or else the value itself."""
    for name in ("fget", "__func__", "__wrapped__"):
        value = getattr(value, name, value)
    return value


def become(old, new) -> None:
    """Give what a module or class holds, wherever it was imported, the code and values of another one's."""
    for name, value in vars(new).items():
        known = vars(old).get(name)
        if isinstance(plain(known), types.FunctionType) and isinstance(plain(value), types.FunctionType):
            for part in ("__code__", "__defaults__", "__kwdefaults__"):
                setattr(plain(known), part, getattr(plain(value), part))
        elif isinstance(value, type) and value.__module__ == new.__name__:
            become(known, value)
        elif name.startswith("__") or value is known:  # a dict that was imported must not be emptied
            continue
        elif isinstance(value, dict) and isinstance(known, dict):
            known.clear()
            known.update(value)
        else:
            setattr(old, name, value)


def detected(session, module, source: str) -> bool:
    """Tell whether tests fail, or take minutes, when a module has another source; in a fork that prints nothing."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    signal.alarm(600)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        new = types.ModuleType(module.__name__)
        new.__file__ = module.__file__
        exec(compile(source, module.__file__, "exec"), vars(new))
        become(module, new)
        run_tests(session)
    except BaseException:
        os._exit(1)
    os._exit(0)


class Trial:
    """A pytest plugin that runs the tests once for each change, at most so many, chosen by chance."""

    def __init__(self, module: str, most: int):
        self.module, self.most = module, most
        self.tried = self.caught = 0

    def pytest_collection_modifyitems(self, items) -> None:
        """Put tests that draw their inputs last: a change that one by hand sees is done with in no time."""
        items.sort(key=lambda item: hasattr(item.function, "hypothesis"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session) -> bool:
        """Try all changes, print those that no test saw, and count."""
        module = importlib.import_module(self.module)
        source = Path(module.__file__).read_text(encoding="utf-8")
        if detected(session, module, source):
            raise SystemExit(f"error: the tests of {self.module} fail as it stands, or take ten minutes")
        found = changes(source)
        for changed in random.Random(0).sample(found, min(self.most, len(found))):
            caught = detected(session, module, changed)
            self.tried, self.caught = self.tried + 1, self.caught + caught
            if not caught:
                lines = list(difflib.unified_diff(source.splitlines(), changed.splitlines(), lineterm="", n=0))
                print("", f"{self.module} {lines[2]}", *lines[3:], sep="\n", flush=True)
        print(f"\n{self.module}: {len(found)} changes, {self.tried} tried, {self.caught} caught", flush=True)
        return True


def main() -> None:
    """Try all modules, or those that are named, and print the sum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=list(TESTS), help="such as thaw.core.files; all unless stated")
    parser.add_argument("--most", type=int, default=100_000, help="changes to a module, chosen by chance")
    options = parser.parse_args()
    quick = hypothesis.settings(phases=[hypothesis.Phase.generate], database=None, derandomize=True)
    hypothesis.settings.register_profile("mutants", quick)
    hypothesis.settings.load_profile("mutants")
    trials = [Trial(module, options.most) for module in options.modules]
    for trial in trials:
        files = [str(HOME / f"tests/test_{name}.py") for name in TESTS[trial.module]]
        pytest.main(["-qsx", "--no-summary", "-p", "no:cacheprovider", *files], plugins=[trial])
    print(f"{sum(one.tried for one in trials)} changes tried, {sum(one.caught for one in trials)} caught")


if __name__ == "__main__":
    main()
