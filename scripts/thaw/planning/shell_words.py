"""What the plan puts into shell lines: the command that makes files again, quoted words, and long words by file."""

import json
import shlex
from os.path import relpath
from pathlib import Path

from thaw.core.digests import digest
from thaw.core.files import write_text

LONGEST = 2000  # characters of a spec that stands on a command line
SPECS = ".snakemake/specs"  # folder of the others


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


def by_file(word: str) -> str:
    """Return a spec as a step is given it: itself, or @ and the file that it is written to where it is long."""
    if len(word) <= LONGEST:
        return word
    path = Path(SPECS, f"{digest(word)}.json")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, word)
    return f"@{path}"
