"""The part of a command line that selects an experiment: its files and single keys; other words are refused."""

import argparse
import contextlib
import re
import sys
from pathlib import Path

import yaml

from thaw.core.errors import UserError, nearest
from thaw.core.home import HOME
from thaw.planning.configuration import SUFFIXES, load_plan, read_config
from thaw.planning.plan import Plan
from thaw.planning.prepared_checks import refuse_shortfalls
from thaw.schema.experiment import ExperimentConfig

DEFAULT = Path("config/config.yaml")
LOCKS = Path(".snakemake/locks")  # of the working folder: lists of the files that runs read and write
# Snakemake's options for files and single keys, by each of their names.
FILE_OPTIONS, KEY_OPTIONS = ("--configfile", "--configfiles"), ("--config", "-C")


class _Parser(argparse.ArgumentParser):
    """A command line of which a mistake is one sentence; the usage is in --help."""

    def error(self, message: str):
        """Print the mistake and exit with 2."""
        self.exit(2, f"error: {self.prog}: {message}; {self.prog} --help describes it\n")


def parser_of(name: str, description: str) -> argparse.ArgumentParser:
    """Return the command line of a sub-command, described by the docstring of its module."""
    return _Parser(
        prog=f"thaw {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def selecting(name: str, description: str) -> argparse.ArgumentParser:
    """Return the command line of a sub-command that selects an experiment; the flags are Snakemake's."""
    parser = parser_of(name, description)
    files = "the experiment, then overlays; default: the only one here, config/config.yaml, or the demo"
    parser.add_argument("files", nargs="*", metavar="FILE.yaml", help=files)
    return with_flags(parser)


def with_flags(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add Snakemake's flags for files and single keys; given twice, the values of both count."""
    for options, metavar, said in (
        (FILE_OPTIONS, "FILE", "the same, as Snakemake has it"),
        (KEY_OPTIONS, "KEY=VALUE", "single keys, as data_dir=..."),
    ):
        parser.add_argument(*options, nargs="+", action="extend", default=[], metavar=metavar, help=said)
    return parser


def parsed(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """Parse the command line of a command of `selecting`; UserError where a word is none of its files and options."""
    given, further = parser.parse_known_args(words)
    given.files, others = leading_files(given.files)
    _refuse(parser.prog, given.files + given.configfile, [*others, *further], results=False)
    if further:
        parser.error(f"unrecognized arguments: {' '.join(further)}")
    given.files = [*given.files, *given.configfile] or [default_file()]
    return given


def leading_experiment(
    command: str, words: list[str], parser: argparse.ArgumentParser | None = None
) -> tuple[argparse.Namespace, list[str]]:
    """Return the experiment's files and single keys, as `configfile` and `config`, and Snakemake's options.

    Raises UserError for words that Snakemake would take for a file to make, or answer with a page of its options. Args:
    the command; the words after it; its own options.
    """
    files, rest = leading_files(words)
    given, further = with_flags(parser or parser_of(command, "")).parse_known_args(rest)
    given.configfile = [*files, *given.configfile]
    _refuse(f"thaw {command}", given.configfile, further, results=command in ("run", "demo"))
    return given, further


def given_plan(
    command: str, parser: argparse.ArgumentParser, words: list[str]
) -> tuple[Plan, argparse.Namespace, list[str]]:
    """Return the plan, and what `leading_experiment` returns.

    Raises UserError also for data that are too few, and where another run has locked the folder.
    """
    given, further = leading_experiment(command, words, parser)
    given.configfile = given.configfile or [default_file()]
    plan = load_plan(configuration(given.configfile, given.config), HOME, files=given.configfile)
    refuse_shortfalls(plan)
    _refuse_locked(plan, given.configfile, further)
    return plan, given, further


def _refuse(command: str, files: list[str], further: list[str], results: bool) -> None:
    """Raise UserError where the words after an experiment's files are keys of it, or no experiment."""
    for word in further:
        key, equals, _ = word.lstrip("-").replace("-", "_").partition("=")
        if word.startswith("--") and key in ExperimentConfig.model_fields:
            raise UserError(f"--{key}: is a key of an experiment and no option; write --config '{key}=...'")
        if equals and key in ExperimentConfig.model_fields:
            raise UserError(f"{word}: is a key with its value; write --config '{word}'")
        if not files and further[0].startswith("-") and word.endswith(SUFFIXES) and Path(word).is_file():
            raise UserError(f"{word}: the experiment comes first, as {command} {word} {further[0]} ...")
    first = further[0] if further and not further[0].startswith("-") else ""
    if first and not (results and (files or "/" in first) and not (Path(first).is_file() and "/" not in first)):
        raise UserError(f"{first}: {_no_experiment(command, first)}")


def _no_experiment(command: str, word: str) -> str:
    if Path(word).is_file():
        return f"is no experiment; thaw advise {word} takes it, if these are your data"
    if near := misspelt(Path(word)):
        return f"an experiment is named by its file, as {command} {near}"
    return f"there is no such experiment; name its file first, as {command} my.yaml"


def _refuse_locked(plan: Plan, files: list[str], further: list[str]) -> None:
    """Raise UserError where a run in this folder has locked files of a plan, or has left its locks.

    Snakemake would say so at each call, amid its own words. As there, two runs may read the same finished results.
    Args: a plan; the files of its experiment; Snakemake's options, of which some ask for no lock or take locks away.
    """
    if {"--nolock", "--unlock"} & set(further) or not LOCKS.is_dir():
        return
    read, written = _locked("input"), _locked("output")
    own = {file for step, keys in plan.jobs.items() for key in keys for file in plan.files(step, key)}
    if written & own or any(not Path(file).exists() for file in read & own):
        raise UserError(
            "this folder is locked: another run is at work here, or one was killed. If none is: "
            f"thaw run {' '.join(files)} --unlock, then the same command"
        )


def _locked(kind: str) -> set[str]:
    """Return the files that runs read (`input`) or write (`output`)."""
    files: set[str] = set()
    for lock in LOCKS.glob(f"*.{kind}.lock"):
        with contextlib.suppress(FileNotFoundError):  # that run has ended just now
            files.update(lock.read_text(encoding="utf-8").splitlines())
    return files


def leading_files(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the experiment's files that a command line begins with, and the rest, which is Snakemake's."""
    ends = (n for n, word in enumerate(words) if word.startswith("-") or not word.endswith(SUFFIXES))
    count = next(ends, len(words))
    return words[:count], words[count:]


def default_file() -> str:
    """Return the experiment where none is named: the only one here, else config/config.yaml, else the demo."""
    files = [file for file in sorted(Path().glob("*.y*ml")) if file.suffix in SUFFIXES and _is_experiment(file)]
    if len(files) == 1:
        print(f"no experiment is named: {files[0]} is the only one here and is taken", file=sys.stderr)
        return str(files[0])
    return str(DEFAULT if DEFAULT.is_file() else HOME / DEFAULT)


def _is_experiment(file: Path) -> bool:
    """Return whether a file has the keys of an experiment. Other programs' YAML may be none that Thaw can parse."""
    text = file.read_text(encoding="utf-8", errors="replace")
    return all(re.search(rf"^{key}:", text, re.MULTILINE) for key in ("experiment", "tasks"))


def configuration(files: list[str], given: list[str]) -> dict:
    """Merge the configuration files and single keys of the command line."""
    for file in files:
        if not Path(file).exists() and (near := misspelt(Path(file))):
            raise UserError(f"{file}: no such file; did you mean '{near}'?")
    overrides = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not equals:
            raise UserError(f"--config {item}: expected KEY=VALUE, as data_dir=path")
        try:
            overrides[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UserError(f"--config {item}: {value} is not valid YAML; quote it, as 'seeds=[1, 2]'") from error
        if "." in key:
            outer, _, inner = key.partition(".")
            raise UserError(f"--config {item}: no key has a dot; write --config '{outer}={{{inner}: {value}}}'")
    return read_config(files or [default_file()], overrides)


def misspelt(file: Path) -> Path | None:
    """Return the experiment of a file's folder that its name is nearly; the suffix alone makes none alike."""
    stems = {other.stem: other.name for other in sorted(file.parent.glob("*")) if other.suffix in SUFFIXES}
    near = nearest(file.stem, list(stems))
    return file.with_name(stems[near]) if near else None
