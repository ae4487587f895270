"""Words of a command line that are no experiment, no key and no option, each refused with what would be right."""

import argparse
from pathlib import Path
from typing import get_origin

from thaw.cli.selection import FILE_OPTIONS, KEY_OPTIONS, leading_files, misspelt, names_files
from thaw.core.errors import UserError
from thaw.planning.config_files import SUFFIXES
from thaw.schema.experiment import ExperimentConfig


def parsed(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """Parse the command line of a command of `selecting`; UserError where a word is none of its files and options."""
    _refuse_keys(words)
    _refuse_repeated(parser.prog, leading_files(words)[0], words)
    arguments = parser.parse_args(words)
    files, further = leading_files(arguments.files)
    _refuse_first(parser.prog, files, further, results=False)
    return arguments


def leading_experiment(command: str, words: list[str]) -> tuple[list[str], list[str]]:
    """Return the experiment's files that a command line begins with, and the rest, which is Snakemake's.

    Raises UserError for words that Snakemake would take for a file to make, or answer with a page of its options. Args:
    the command, as run, after whose files alone results to make may follow; the words after it.
    """
    files, further = leading_files(words)
    _refuse_keys(further)
    _refuse_first(f"thaw {command}", files, further, results=command == "run")
    _refuse_repeated(f"thaw {command}", files, further)
    return files, further


def _refuse_first(command: str, files: list[str], further: list[str], results: bool) -> None:
    """Raise UserError where the first of the words after the experiment's files can be nothing that is asked for."""
    first = further[0] if further and not further[0].startswith("-") else ""
    if first and not files and not (results and "/" in first):
        raise UserError(f"{first}: {_no_experiment(command, first)}")
    if not files and not names_files(further):
        for word in further:
            if word.endswith(SUFFIXES) and "=" not in word and Path(word).is_file():
                raise UserError(f"{word}: the experiment comes first, as {command} {word} {further[0]} ...")
    if first and files and (_is_file_of_here(first) if results else Path(first).is_file()):
        what = f"only {'options and results' if results else 'overlays and options'} follow the experiment"
        raise UserError(f"{first}: is a file of yours, and {what}; thaw new task reads data")
    if "=" in first and not results:
        raise UserError(_key_with_value(first))
    if first and files and not results:
        raise UserError(f"{first}: is no experiment file and no option; only these may follow {command} {files[0]}")


def _refuse_repeated(command: str, files: list[str], words: list[str]) -> None:
    """Raise UserError where an option is given twice of which Snakemake reads the last one alone."""
    options = [word.partition("=")[0] for word in words]
    if sum(option in KEY_OPTIONS for option in options) > 1:
        raise UserError(
            "--config is there twice, and the last would count alone; write --config data_dir=data 'seeds=[1]'"
        )
    named = sum(option in FILE_OPTIONS for option in options)
    if named > 1 or (named and files):
        raise UserError(f"--configfile adds no file to those before it; write {command} my.yaml overlay.yaml")


def _refuse_keys(words: list[str]) -> None:
    """Raise UserError for a key of an experiment that is no value of --config."""
    option = ""
    for word in words:
        option = word if word.startswith("-") else option
        if word.partition("=")[0] in ExperimentConfig.model_fields and "=" in word and option not in KEY_OPTIONS:
            raise UserError(_key_with_value(word))
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("--") and (key := _key_of(option.removeprefix("--").replace("-", "_"))):
            value = "[...]" if get_origin(ExperimentConfig.model_fields[key].annotation) is list else "..."
            raise UserError(f"{option}: is a key of an experiment and no option; write --config '{key}={value}'")


def _key_with_value(word: str) -> str:
    return f"{word}: is a key with its value; write --config '{word}'"


def _is_file_of_here(word: str) -> bool:
    return Path(word).is_file() and Path(word).resolve().parent == Path.cwd()


def _no_experiment(command: str, word: str) -> str:
    """Return what is right where a word that names no file is in place of the experiment."""
    if Path(word).is_file():
        return f"is no experiment; thaw new task {word} writes one, if these are your data"
    if near := misspelt(Path(word)):
        return f"an experiment is named by its file, as {command} {near}"
    return f"there is no such experiment; name its file first, as {command} my.yaml"


def _key_of(option: str) -> str | None:
    """Return the key of an experiment that an option was meant to be, in the singular or the plural."""
    keys = ExperimentConfig.model_fields
    plurals = (option, f"{option}s", f"{option.removesuffix('y')}ies")
    return next((key for key in plurals if key in keys), None)
