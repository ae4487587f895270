"""docs/reference/command-line.md: every command with its examples and options, made from the parsers themselves."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from thaw.cli import main as thaw

INTRODUCTION = """# The command line

<!-- Made by `make reference` from the commands in scripts/thaw/cli. -->

`thaw COMMAND --help` prints the same. The exit code is 0, 1 after a mistake that one sentence names, and 2 where the
command line is wrong; that of `thaw run` and `thaw demo` is Snakemake's.
"""
SNAKEMAKE = ("demo", "run")  # their options are Snakemake's


class _Parser(Exception):
    """Carries the parser of a command out of it, before it reads a word."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def command_line_page() -> str:
    """Return the page as Markdown."""
    parts = [INTRODUCTION, "| command | |", "|---|---|"]
    parts += [f"| [`thaw {name}`](#thaw-{name}) | {sentence} |" for name, sentence in thaw.COMMANDS.items()]
    for name in thaw.COMMANDS:
        parts += ["", f"## thaw {name}", "", *_described(name)]
    return "\n".join(parts) + "\n"


def _described(name: str) -> list[str]:
    command = thaw._command(name)
    if name in SNAKEMAKE:
        return _text(command.__doc__ if name == "demo" else sys.modules[command.__module__].__doc__)
    return _section(_parser_of(command))


def _section(parser: argparse.ArgumentParser) -> list[str]:
    rows = [(_invocation(action), _meaning(action)) for action in parser._actions if action.dest != "help"]
    below = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    parts = [part for one in below for kind in one.values() for part in ("", f"### {kind.prog}", "", *_section(kind))]
    table = [f"| {argument} | {meaning} |" for argument, meaning in rows]
    return [*_text(parser.description), "", "| argument | meaning |", "|---|---|", *table, *parts]


def _text(description: str) -> list[str]:
    """Return a docstring: its first sentence as prose, the rest as it is printed."""
    first, _, rest = description.strip().partition("\n\n")
    return [first, *(["", "```text", rest, "```"] if rest else [])]


def _parser_of(command) -> argparse.ArgumentParser:
    with _reading_raises():
        try:
            command([])
        except _Parser as seen:
            return seen.parser
    raise LookupError(f"{command} reads no words by argparse")


@contextmanager
def _reading_raises() -> Iterator[None]:
    known = argparse.ArgumentParser.parse_known_args

    def parse_known_args(parser, *_, **__):
        raise _Parser(parser)

    argparse.ArgumentParser.parse_known_args = parse_known_args
    try:
        yield
    finally:
        argparse.ArgumentParser.parse_known_args = known


def _invocation(action: argparse.Action) -> str:
    values = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    values = " ".join(values) if isinstance(values, tuple) else values
    if action.choices:
        values = "{" + ",".join(map(str, action.choices)) + "}"
    optional = action.nargs == "?"
    several = action.nargs in ("*", "+") and not isinstance(action.metavar, tuple)
    values = f"{'[' if optional else ''}{values}{']' if optional else ''}{' ...' if several else ''}"
    flags = ", ".join(action.option_strings)
    words = flags if action.nargs == 0 else f"{flags} {values}".strip()
    return f"`{words}`"


def _meaning(action: argparse.Action) -> str:
    return (action.help or "").replace("|", "\\|")
