"""Which wrong formulas would the tests of values not see? `make mutants-heads` applies some to each head, in minutes.

Each change is one that is easily made: a product transposed, a scale or mask left out, the smallest for the largest.
The tests are loaded once; then a fork for each change runs those of the head. No file is changed.
"""

import argparse
import importlib
import re
from pathlib import Path

import pytest

from formula_mutants import MUTANTS
from mutants import HOME, detected

FILES = ("test_head_formulas.py", "test_encoder_values.py", "test_elmo_values.py", "test_layers.py")
FILES += ("test_distillation.py", "test_student_oracles.py", "test_inserts.py")
# In the names of their tests, where that is not the name of a head
NAMED = {
    "adapters": "with_adapters_computes|adapter_by_hand|of_adapters|adapters_after",
    "bcn": r"\bbcn\b|maxout",
    "boundaries": "boundaries_are",
    "distillation": "soft_targets|high_temperature|is_certain|states|each_hold_or_not|label_sets|published_code"
    "|relations|weight_0|equals_its_teacher|is_stored_of_a_teacher|ten_updates|take_turns|whose_turn",
    "elmo": "published_files",
    "esim": r"\besim\b|_of_esim_",
    "layer_attention": "over_layers_is_the_sum",
    "scalar_mix": "mix_is|mix_dropout|on_the_mix",
}


class HeadTrial:
    """A pytest plugin that runs the tests of each head once for each of its changes."""

    def __init__(self, heads: list[str]):
        self.heads = heads
        self.tried = self.caught = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session) -> bool:
        """Try all changes, print those that no test saw, and the counts of each head."""
        every = session.items
        for head in self.heads:
            name = re.compile(NAMED.get(head, rf"\b{head}\b|_a_{head}_"))
            session.items = [item for item in every if name.search(item.name)]
            for module in sorted({change[0] for change in MUTANTS[head]}):
                self.passes(session, module)
            caught = [self.tries(session, *change) for change in MUTANTS[head]]
            self.tried, self.caught = self.tried + len(caught), self.caught + sum(caught)
            print(f"| {head} | {len(caught)} | {sum(caught)} |", flush=True)
        return True

    def passes(self, session, name: str) -> None:
        """Check that the tests pass when a module of Thaw is replaced by itself."""
        if detected(session, *read(name)):
            raise SystemExit(f"error: the tests fail as thaw.{name} is")

    def tries(self, session, name: str, old: str, new: str) -> bool:
        """Tell whether tests fail when a module of Thaw has other text in one place."""
        module, source = read(name)
        if source.count(old) != 1:
            raise SystemExit(f"error: {source.count(old)} places of thaw.{name} are '{old}'; a change needs one")
        caught = detected(session, module, source.replace(old, new))
        if not caught:
            print(f"not caught: thaw.{name}: {old} -> {new}", flush=True)
        return caught


def read(name: str) -> tuple:
    """Return a module of Thaw and its source."""
    module = importlib.import_module(f"thaw.{name}")
    return module, Path(module.__file__).read_text(encoding="utf-8")


def main() -> None:
    """Try the changes of all heads, or of those that are named, and print the sum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heads", nargs="*", default=list(MUTANTS), help="such as esim; all unless stated")
    trial = HeadTrial(parser.parse_args().heads)
    print("| head | changes | caught |\n|---|--:|--:|")
    files = [str(HOME / "tests" / name) for name in FILES]
    pytest.main(["-qsx", "--no-summary", "-p", "no:cacheprovider", *files], plugins=[trial])
    print(f"| all | {trial.tried} | {trial.caught} |")


if __name__ == "__main__":
    main()
