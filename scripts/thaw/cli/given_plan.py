"""The plan of what `thaw advise` and `thaw budget` are given, and the words that go on to Snakemake with it."""

import argparse

from thaw.cli.folder_locks import refuse_locked
from thaw.cli.refused_words import leading_experiment
from thaw.cli.selection import configuration, default_file, with_flags
from thaw.core.home import HOME
from thaw.planning.configuration import load_plan
from thaw.planning.plan import Plan
from thaw.planning.prepared_checks import refuse_shortfalls


def given_plan(
    command: str, parser: argparse.ArgumentParser, words: list[str]
) -> tuple[Plan, argparse.Namespace, list[str]]:
    """Return the plan, the experiment's files and single keys as `with_flags` has them, and further options.

    Raises UserError for words that are no experiment, for data that are too few, and where another run has locked the
    folder. Args: the command, as advise; its own options; the words after it.
    """
    files, rest = leading_experiment(command, words)
    given, further = with_flags(parser).parse_known_args(rest)
    given.configfile = files or given.configfile or [default_file()]
    plan = load_plan(configuration(given.configfile, given.config), HOME, files=given.configfile)
    refuse_shortfalls(plan)
    refuse_locked(plan, given.configfile, further)
    return plan, given, further
