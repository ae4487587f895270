#!/usr/bin/env python3
"""Write the seven datasets of config/experiments/unseen.yaml as files that its catalogue reads.

    python scripts/unseen_data.py path/to/published results/unseen_data

SUBJ, CR and MPQA are published as a file for each class, without splits. They become one CSV file each. Blank lines go.
Of MPQA a repeated phrase is kept once, and a phrase with both labels goes. The other four are copied.
"""

import shutil
import sys
from pathlib import Path

import pandas as pd

from thaw.core.files import write_text

BY_CLASS = {  # file: its encoding and {class: published file}
    "subj.csv": ("cp1252", {"objective": "subj/subj.objective", "subjective": "subj/subj.subjective"}),
    "cr.csv": ("ascii", {"positive": "cr/custrev.pos", "negative": "cr/custrev.neg"}),
    "mpqa.csv": ("ascii", {"positive": "mpqa/mpqa.pos", "negative": "mpqa/mpqa.neg"}),
}
DISTINCT = "mpqa.csv"
COPIED = (
    *("wnut17/wnut17train.conll", "wnut17/emerging.dev.conll", "wnut17/emerging.test.annotated"),
    *("rte/train.tsv", "rte/dev.tsv", "qnli/dev.tsv", "ag_news/part.tsv"),
)


def rows(source: Path, encoding: str, files: dict[str, str]) -> list[tuple[str, str]]:
    """Return (text, class) of each line that is not blank."""
    found = []
    for name, file in files.items():
        lines = (source / file).read_text(encoding).split("\n")
        found += [(line.strip(), name) for line in lines if line.strip()]
    return found


def distinct(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return each text once, without those that have two classes."""
    classes: dict[str, set[str]] = {}
    for text, name in found:
        classes.setdefault(text, set()).add(name)
    return [(text, name) for text, names in classes.items() if len(names) == 1 for name in names]


def main(source: Path, target: Path) -> None:
    """Write all files, and print how many rows each CSV file has."""
    for file, (encoding, files) in BY_CLASS.items():
        found = rows(source, encoding, files)
        found = distinct(found) if file == DISTINCT else found
        write_text(target / file, pd.DataFrame(found, columns=["text", "label"]).to_csv(index=False))
        print(f"{target / file}: {len(found):,} rows")
    for file in COPIED:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, target / file)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
