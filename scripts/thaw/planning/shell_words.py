"""What the plan puts into shell lines: the command that makes files again, and quoted words."""

import json
import shlex
from os.path import relpath
from pathlib import Path


def command(home: Path, files: list[Path], overrides: dict) -> str:
    """Return the command that makes files of an experiment again, up to their names, for this folder.

    Args: home, the folder of the Snakefile; the configuration files and the keys given with them, as Snakemake was
    given them.
    """
    if (home / "scripts").is_dir():
        words = ["snakemake"] if relpath(home) == "." else ["snakemake", "--snakefile", relpath(home / "Snakefile")]
        words += ["--configfile", *map(relpath, files)] if files else []
    else:  # installed from a wheel, where nobody knows the Snakefile's place
        words = ["thaw", "run", *map(relpath, files)]
    given = {key: json.dumps(it) if isinstance(it, (dict, list)) else it for key, it in overrides.items()}
    words += ["--config", *(f"{key}={'' if it is None else it}" for key, it in given.items())] if given else []
    return shlex.join([*words, "--"])


def quoted(path: str) -> str:
    """Return a path, or any one word, quoted for a rule's shell line."""
    return shlex.quote(path).replace("{", "{{").replace("}", "}}")
