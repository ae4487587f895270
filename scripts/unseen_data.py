#!/usr/bin/env python3
"""Write the seven datasets of config/experiments/unseen.yaml as files that its catalogue reads.

    python scripts/unseen_data.py path/to/published results/unseen_data

The files are published on GitHub, and go into folders of these names: subj, cr and mpqa in harvardnlp/sent-conv-torch
(data/raw), wnut17 in leondz/emerging_entities_17, ag_news in forest-snow/alps (data/agnews/dev.tsv, as part.tsv). RTE
and the development set of QNLI are those of GLUE.

SUBJ, CR and MPQA are published as a file for each class, without splits. They become one CSV file each. Blank lines go.
Of MPQA a repeated phrase is kept once, and a phrase with both labels goes. The other four are copied. For
config/experiments/label_noise.yaml a fifth of SUBJ and AG News is test, and a fifth of the others have a wrong label.
"""

import csv
import shutil
import sys
from pathlib import Path

import numpy as np
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
WRONG = 0.2  # of the training rows


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


def with_wrong(labels: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return labels [N] of which a share, in rows drawn without replacement, is each another class, all as likely."""
    classes, numbers = np.unique(labels, return_inverse=True)
    wrong = rng.permutation(len(labels))[: round(share * len(labels))]
    numbers[wrong] += rng.integers(1, len(classes), len(wrong))
    return classes[numbers % len(classes)]


def write_noise(frame: pd.DataFrame, target: Path) -> None:
    """Write train.csv, noisy.csv and test.csv of texts and labels. Args: a frame of them; the folder."""
    rng = np.random.default_rng(0)
    frame = frame.iloc[rng.permutation(len(frame))]
    test, train = frame[: len(frame) // 5], frame[len(frame) // 5 :]
    noisy = train.assign(label=with_wrong(train["label"].to_numpy(str), WRONG, rng))
    for name, made in {"train": train, "noisy": noisy, "test": test}.items():
        write_text(target / f"{name}.csv", made.to_csv(index=False))


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
    write_noise(pd.read_csv(target / "subj.csv"), target / "noise/subj")
    news = {"sep": "\t", "header": None, "names": ["text", "label"], "quoting": csv.QUOTE_NONE}
    write_noise(pd.read_csv(target / "ag_news/part.tsv", **news), target / "noise/ag_news")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
