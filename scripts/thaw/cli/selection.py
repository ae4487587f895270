"""The part of a command line that selects an experiment: its files and single keys, as Snakemake reads them."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from thaw.core.errors import UserError, nearest
from thaw.core.home import HOME
from thaw.planning.config_files import SUFFIXES, read_config
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.yaml_files import read_yaml

DEFAULT = Path("config/config.yaml")
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
    files = "the experiment, then overlays; default: config/config.yaml here, else the demo"
    parser.add_argument("files", nargs="*", metavar="FILE.yaml", help=files)
    return with_flags(parser)


def with_flags(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add Snakemake's flags for files and single keys."""
    parser.add_argument(*FILE_OPTIONS, nargs="+", default=[], metavar="FILE", help="the same, as Snakemake has it")
    parser.add_argument(*KEY_OPTIONS, nargs="+", default=[], metavar="KEY=VALUE", help="single keys, as data_dir=...")
    return parser


def names_files(words: list[str]) -> bool:
    """Return whether a command line names files by Snakemake's option."""
    return any(word.partition("=")[0] in FILE_OPTIONS for word in words)


def leading_files(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the experiment's files that a command line begins with, and the rest, which is Snakemake's."""
    ends = (n for n, word in enumerate(words) if word.startswith("-") or not word.endswith(SUFFIXES))
    count = next(ends, len(words))
    return words[:count], words[count:]


def default_file() -> str:
    """Return the experiment where none is named: that of this folder, or the demo."""
    return str(DEFAULT if DEFAULT.is_file() else HOME / DEFAULT)


def files_of(arguments: argparse.Namespace) -> list[str]:
    """Return the files of the experiment that a parsed command line of `selecting` names, or the default one."""
    return [*arguments.files, *arguments.configfile] or [default_file()]


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
    for sentence in _replaced(files):
        print(f"note: {sentence}", file=sys.stderr)
    return read_config(files or [default_file()], overrides)


def _replaced(files: list[str]) -> Iterator[str]:
    """Yield a sentence for each file that is an experiment of its own and is applied after another one.

    An overlay may rename the experiment that it changes; it lacks keys that an experiment must have.
    """
    needed = {key for key, field in ExperimentConfig.model_fields.items() if field.is_required()}
    below: tuple[str, str] | None = None  # the last file that has a name for the experiment, and that name
    for file in files:
        content = read_yaml(file).content
        name = content.get("experiment")
        if below and needed <= content.keys() and name != below[1]:
            yield (
                f"{file} is applied after {below[0]} and has its own experiment:, so {below[1]} does not run; run them "
                "one after the other"
            )
        below = (file, str(name)) if name else below


def misspelt(file: Path) -> Path | None:
    """Return the experiment of a file's folder that its name is nearly; the suffix alone makes none alike."""
    stems = {other.stem: other.name for other in sorted(file.parent.glob("*")) if other.suffix in SUFFIXES}
    near = nearest(file.stem, list(stems))
    return file.with_name(stems[near]) if near else None


def selected(arguments: argparse.Namespace) -> dict:
    """Return the configuration that a parsed command line of `selecting` names."""
    return configuration(files_of(arguments), arguments.config)
