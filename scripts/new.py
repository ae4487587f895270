#!/usr/bin/env python3
"""Look at a file of yours and write the first draft of its catalogue entry.

python scripts/new.py task my.csv                       prints it
python scripts/new.py task my.csv --out my/tasks.yaml   writes it; an existing file stays as it is

The file may be csv, tsv, jsonl, parquet, conll, conllu, or lines `<label> <text>`; also packed (.gz).
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.core.errors import UserError
from thaw.data.catalogue_stub import write_stub
from thaw.schema.catalogue import Catalogue, shipped

HOME = Path(__file__).resolve().parents[1]


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["task"], help="what to write an entry for")
    parser.add_argument("file", type=Path, help="your data")
    parser.add_argument("--out", type=Path, help="the tasks.yaml to write, in a folder of your own")
    return parser.parse_args()


def main() -> None:
    """Write the stub, or print it."""
    given = arguments()
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


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
