"""The tables of an experiment that recommend a strategy, whatever their ids, found among its results alone."""

import csv
from pathlib import Path

from thaw.core import layout

ADVISED = "advised"  # the column that says of each candidate whether it is recommended; no other kind of table has it


def advice_tables(folder: Path) -> list[Path]:
    """Return the CSV files of these tables. Args: the folder of an experiment's outputs."""
    files = layout.output(folder, "table", "*").with_suffix(".csv")
    return [file for file in sorted(files.parent.glob(files.name)) if ADVISED in _header(file)]


def _header(file: Path) -> list[str]:
    with open(file, encoding="utf-8", newline="") as table:
        return next(csv.reader(table), [])
