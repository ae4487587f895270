"""Test a plug-in: does it keep the contract that Thaw's own parts keep?

thaw check head my_heads:Gated --catalogues my
thaw check selector my_selectors:every_other --catalogues my
thaw check metric my_metrics:kappa --catalogues my
thaw check probe my_probes:norm --catalogues my

It runs the tests of tests/test_contract_<kind>.py on the part and prints each clause of the contract, kept or broken. A
head is tried with the settings of each entry of my/heads.yaml that names it. The exit code is 1 where one is broken.
"""

import contextlib
import io
import sys

from thaw.cli.selection import parser_of
from thaw.core import plugins
from thaw.core.home import HOME

SHOWN = 3  # cases of a broken clause that are printed


class Clauses:
    """A pytest plugin that gathers, for each clause, how many cases there were and what those said that failed."""

    def __init__(self, part: str):
        self.part = part
        self.kept: dict[str, int] = {}
        self.broken: dict[str, list[str]] = {}
        self.left_out: list[str] = []

    def pytest_runtest_makereport(self, item, call):
        """Note one case; its clause is the first line of its test's docstring."""
        clause = item.function.__doc__.strip().partition("\n")[0]
        case = item.name.partition("[")[2].rstrip("]").removeprefix(self.part).lstrip(", -")
        if call.excinfo is None:
            self.kept[clause] = self.kept.get(clause, 0) + (call.when == "call")
        elif call.excinfo.typename != "Skipped":
            self.broken.setdefault(clause, []).append(f"{case}: {said(call.excinfo)}")
        elif case != "NOTSET":  # pytest's own word where a clause has no case
            self.left_out.append(f"{case}: {said(call.excinfo)}")

    def pytest_collectreport(self, report):
        """Note a file of tests that could not be read: the part itself may be at fault."""
        if report.failed:
            self.broken.setdefault("it can be tried at all", []).append(str(report.longrepr).strip().splitlines()[-1])


def said(excinfo) -> str:
    """Return what an exception says in its first line, with its kind where it is no assertion of ours."""
    message = str(excinfo.value).strip().partition("\n")[0] or "it does not hold"
    return (
        message if excinfo.typename in ("AssertionError", "UserError", "Skipped") else f"{excinfo.typename}: {message}"
    )


def tried(kind: str, part: str, folders: list[str]) -> Clauses:
    """Run the contract's tests of a kind on a part."""
    import pytest

    clauses, options = Clauses(part), ["-q", "-p", "no:cacheprovider", "-c", str(HOME / "pyproject.toml")]
    tests = str(HOME / f"tests/test_contract_{kind}.py")
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([tests, *options, "--part", part, "--catalogues", *folders], plugins=[clauses])
    return clauses


def show(clauses: Clauses) -> None:
    """Print every clause, kept or broken; what is wrong with a case is printed once, however many clauses it breaks."""
    printed = set()
    for clause in dict.fromkeys([*clauses.broken, *clauses.kept]):
        broken, kept = clauses.broken.get(clause, []), clauses.kept.get(clause, 0)
        if broken:
            print(f"  BROKEN  {clause} ({len(broken)} of {len(broken) + kept} cases)")
            new = [line for line in broken if line not in printed][:SHOWN] or ["as above"]
            print(*(f"          {line}" for line in new), sep="\n")
            printed.update(broken)
        elif kept:
            print(f"  kept    {clause} ({kept} cases)")
    for line in dict.fromkeys(clauses.left_out):
        print(f"  left out  {line}")


def main(words: list[str]) -> None:
    """Read the command line, try the part, print what was found."""
    parser = parser_of("check", __doc__)
    parser.add_argument("kind", choices=plugins.SIGNATURES)
    parser.add_argument("part", help="its import path, as my_heads:Gated")
    parser.add_argument(
        "--catalogues", nargs="*", action="extend", default=[], help="folders that hold it, as in an experiment"
    )
    given = parser.parse_args(words)
    plugins.set_folders(given.catalogues)
    plugin = plugins.check(given.part, given.kind)
    print(f"contract of {given.kind} {given.part} ({plugin.place})", flush=True)
    clauses = tried(given.kind, given.part, given.catalogues)
    show(clauses)
    print("the contract is broken" if clauses.broken else "the contract is kept")
    sys.exit(1 if clauses.broken else 0)
