"""List what an experiment can select: tasks, encoders, strategies, subsets, heads, probes or outputs.

thaw list tasks                        id, type, examples, where the data are, label
thaw list encoders --catalogues my     those of your folder too
thaw list strategies lora              only what contains a word
"""

import sys
from collections.abc import Callable
from pathlib import Path

from thaw.cli.selection import parser_of
from thaw.core.errors import UserError
from thaw.core.home import HOME
from thaw.schema.catalogue import Catalogue, shipped

Row = tuple[str, ...]
MISSING = "missing"  # where the data of a task are, that are in no file


def main(words: list[str]) -> None:
    """Print the entries of one kind, a line each."""
    parser = parser_of("list", __doc__)
    parser.add_argument("kind", choices=COLUMNS, type=_plural)
    parser.add_argument("word", nargs="?", default="", help="list only lines that contain it")
    parser.add_argument(
        "--catalogues", nargs="+", action="extend", default=[], metavar="FOLDER", help="folders of your own"
    )
    parser.add_argument("--data-dir", default="data", metavar="FOLDER", help="where local data sets are (tasks)")
    given = parser.parse_args(words)
    catalogue = Catalogue([*shipped(HOME), *given.catalogues])
    names, describe = COLUMNS[given.kind]
    rows = [describe(catalogue, name, Path(given.data_dir)) for name in catalogue.ids(given.kind)]
    rows = [row for row in rows if given.word.lower() in " ".join(row).lower()]
    if not rows:
        raise UserError(f"no line of `thaw list {given.kind}` contains '{given.word}'")
    _print([names, *rows])
    if given.kind == "tasks" and any(row[3] == MISSING for row in rows):
        other = "--data-dir names another folder, as data_dir: of an experiment does"
        print(f"{MISSING}: no such file below {given.data_dir}; {other}", file=sys.stderr)


def _plural(word: str) -> str:
    """Return the kind that a word in the singular means, as strategy; any other word as it is."""
    return next((kind for kind in (f"{word}s", f"{word[:-1]}ies") if kind in COLUMNS), word)


def _print(rows: list[Row]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _task(catalogue: Catalogue, name: str, data_dir: Path) -> Row:
    task = catalogue.get("tasks", name, "list")
    corpus = catalogue.get("corpora", task.corpus, f"tasks.{name}")
    examples = f"{corpus.size.examples:,}" if corpus.size else "unknown"
    return name, task.type, examples, source_of(corpus, data_dir), task.label or ""


def source_of(corpus, data_dir: Path) -> str:
    """Return where the data of a corpus will come from: synthetic, local, Hub, or missing."""
    if corpus.synthetic:
        return "synthetic"
    paths = corpus.files.splits.values() if corpus.files else ()
    there = [(data_dir / path).is_file() or (data_dir / f"{path}.gz").is_file() for path in paths]
    if there and all(there):
        return "local"
    return "Hub" if corpus.hub else MISSING


def _encoder(catalogue: Catalogue, name: str, _) -> Row:
    entry = catalogue.get("encoders", name, "list")
    source = next(f"{key} {getattr(entry, key)}" for key in ("hub", "folder", "package", "file") if getattr(entry, key))
    return name, entry.kind, str(entry.layers), str(entry.width), source, entry.label or ""


def _strategy(catalogue: Catalogue, name: str, _) -> Row:
    entry = catalogue.get("strategies", name, "list")
    return name, str(len(entry.phases)), ", ".join(entry.sweep or ()), entry.label or ""


def _subset(catalogue: Catalogue, name: str, _) -> Row:
    entry = catalogue.get("subsets", name, "list")
    return name, f"{entry.rows:,}" if entry.rows else "all", str(entry.draw), entry.label or ""


def _kind(block: str) -> Callable[[Catalogue, str, Path], Row]:
    def describe(catalogue: Catalogue, name: str, _) -> Row:
        entry = catalogue.get(block, name, "list")
        return name, entry.kind, entry.label or ""

    return describe


# kind -> names of its columns, and what makes a line of them
COLUMNS = {
    "tasks": (("id", "type", "examples", "data", "label"), _task),
    "encoders": (("id", "kind", "layers", "width", "source", "label"), _encoder),
    "strategies": (("id", "phases", "sweep", "label"), _strategy),
    "subsets": (("id", "examples", "draw", "label"), _subset),
    "heads": (("id", "kind", "label"), _kind("heads")),
    "probes": (("id", "kind", "label"), _kind("probes")),
    "outputs": (("id", "kind", "label"), _kind("outputs")),
}
