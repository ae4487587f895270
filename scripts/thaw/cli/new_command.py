"""Write the first draft of the catalogue entry of your data, after a look at the file.

thaw new task my.csv                       prints it
thaw new task my.csv --out my/tasks.yaml   writes it; an existing file stays as it is

The file may be csv, tsv, jsonl, parquet, conll, conllu, or lines `<label> <text>`; also packed (.gz).
"""

import argparse
from pathlib import Path

from thaw.cli.selection import parser_of
from thaw.core.errors import UserError
from thaw.core.home import HOME
from thaw.data.catalogue_stub import write_stub
from thaw.schema.catalogue import Catalogue, shipped


def arguments(words: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of("new", __doc__)
    parser.add_argument("what", choices=["task"], help="what to write an entry for")
    parser.add_argument("file", type=Path, help="your data")
    parser.add_argument("--out", type=Path, help="the tasks.yaml to write, in a folder of your own")
    return parser.parse_args(words)


def main(words: list[str]) -> None:
    """Write the stub, or print it."""
    given = arguments(words)
    if given.out and given.out.name != "tasks.yaml":
        raise UserError(f"{given.out}: a catalogue of tasks has the name tasks.yaml, in a folder of your own")
    if given.out and given.out.exists():
        raise UserError(f"{given.out} exists already; leave --out away and copy what is printed into it")
    known = Catalogue(shipped(HOME))
    folder = str(given.out.parent) if given.out else "my"
    text = write_stub(given.file, {*known.ids("corpora"), *known.ids("tasks")}, folder)
    if given.out is None:
        print(text, end="")
        return
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(text, encoding="utf-8")
    print(f"{given.out} is written. Check it; the next command is at its top.")
