"""The command line of a step: --spec and --out, which each step has, and what it reads, one line for each argument."""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from thaw.core import layout
from thaw.core.devices import ask_for
from thaw.core.runtime import name_job

Argument = tuple[str, dict]


def required(name: str, meaning: str, kind=Path) -> Argument:
    """Return an argument that is given once. Args: kind, what makes its value from text."""
    return name, {"required": True, "type": kind, "help": meaning}


def at_least_one(name: str, meaning: str, kind=Path) -> Argument:
    """Return an argument with a list of values. Args: as of `required`."""
    return name, {"required": True, "type": kind, "help": meaning, "nargs": "+"}


def any_number(name: str, meaning: str, kind=Path) -> Argument:
    """Return an argument that may be absent or have a list of values. Args: as of `required`."""
    return name, {"default": [], "type": kind, "help": meaning, "nargs": "*"}


DATA = required("--data", "folder of the corpus, as prepare writes it")
ENCODER = required("--encoder", "folder of the encoder, as fetch writes it")
CATALOGUES = any_number("--catalogues", "folders of the catalogues, which hold the plug-ins too")
CORES = ("--cores", {"type": int, "help": "processes with the threads of the spec share them; default: one process"})
NEEDED = "what the run needs of another job: its role, then its files"
GPU_MB = ("--gpu-mb", {"type": int, "help": "MiB that the job takes of a GPU; default: a GPU of its own"})
RUN_INPUTS = (
    DATA,
    ENCODER,
    GPU_MB,
    at_least_one("--features", "folder of the store of each view"),
    CATALOGUES,
    ("--need", {"nargs": "+", "action": "append", "default": [], "metavar": ("ROLE", "FILE"), "help": NEEDED}),
    any_number("--also-data", "card.json of the corpus of a transfer set, by store"),
    any_number("--also-tokens", "tokens.json of its stores"),
)


def parse_arguments(description: str, *arguments: Argument, out: str) -> Namespace:
    """Read the command line of a step, and name its job in the log.

    Args: the step's docstring, for --help; its arguments but for --spec and --out; what --out names.
    """
    parser = ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)
    spec = required("--spec", "all that the result depends on, as canonical JSON, or @ and a file of it", read_spec)
    for name, settings in (spec, *arguments, required("--out", out)):
        parser.add_argument(name, **settings)
    given = parser.parse_args()
    name_job(layout.label(Path(sys.argv[0]).stem, given.out))
    if vars(given).get("gpu_mb"):
        ask_for(given.gpu_mb)
    return given


def read_word(text: str):
    """Return the value of JSON, or of a file of it named after @; argparse prints what is wrong with another text."""
    try:
        return json.loads(Path(text[1:]).read_text() if text.startswith("@") else text)
    except ValueError as error:
        raise ArgumentTypeError(f"not JSON ({error})") from error
    except OSError as error:
        raise ArgumentTypeError(
            f"{text[1:]} cannot be read ({error.strerror}); plan again to have it written"
        ) from error


def read_spec(text: str) -> dict:
    spec = read_word(text)
    if not isinstance(spec, dict):
        raise ArgumentTypeError(f"expected a JSON object, not {text}")
    return spec
