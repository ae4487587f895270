"""List what an experiment can select: tasks, encoders, strategies, subsets, heads, probes or outputs.

thaw list tasks                        id, type, examples, where the data are, label
thaw list encoders --catalogues my     those of your folder too
thaw list strategies lora              only what contains a word
"""

import sys
from pathlib import Path

from thaw.cli.selection import parser_of
from thaw.core.errors import UserError
from thaw.core.home import HOME
from thaw.schema.catalogue import Catalogue, shipped

Row = tuple[str, ...]
MISSING = "missing"  # where the data of a task are, that are in no file


def main(words: list[str]) -> None:
    parser = parser_of("list", __doc__)
    plurals = {f"{kind[:-3]}y" if kind.endswith("ies") else kind[:-1]: kind for kind in COLUMNS}
    kinds = f"{{{','.join(COLUMNS)}}}"
    parser.add_argument("kind", choices=COLUMNS, metavar=kinds, type=lambda word: plurals.get(word, word))
    parser.add_argument("word", nargs="?", default="", help="list only lines that contain it")
    parser.add_argument(
        "--catalogues", nargs="+", action="extend", default=[], metavar="FOLDER", help="folders of your own"
    )
    parser.add_argument("--data-dir", default="data", metavar="FOLDER", help="where local data sets are (tasks)")
    given = parser.parse_args(words)
    catalogue = Catalogue([*shipped(HOME), *given.catalogues])
    names, describe = COLUMNS[given.kind]
    entries = {name: catalogue.get(given.kind, name, "list") for name in catalogue.ids(given.kind)}
    rows = [
        (name, *describe(catalogue, entry, Path(given.data_dir)), entry.label or "") for name, entry in entries.items()
    ]
    rows = [row for row in rows if given.word.lower() in " ".join(row).lower()]
    if not rows:
        raise UserError(f"no line of `thaw list {given.kind}` contains '{given.word}'")
    rows = [("id", *names, "label"), *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    if given.kind == "tasks" and any(row[3] == MISSING for row in rows):
        other = "--data-dir names another folder, as data_dir: of an experiment does"
        print(f"{MISSING}: no such file below {given.data_dir}; {other}", file=sys.stderr)


def _task(catalogue: Catalogue, task, data_dir: Path) -> Row:
    corpus = catalogue.get("corpora", task.corpus, "tasks")
    return task.type, f"{corpus.size.examples:,}" if corpus.size else "unknown", source_of(corpus, data_dir)


def source_of(corpus, data_dir: Path) -> str:
    """Return where the data of a corpus will come from: synthetic, local, Hub, or missing."""
    if corpus.synthetic:
        return "synthetic"
    paths = corpus.files.splits.values() if corpus.files else ()
    there = [(data_dir / path).is_file() or (data_dir / f"{path}.gz").is_file() for path in paths]
    if there and all(there):
        return "local"
    return "Hub" if corpus.hub else MISSING


def _encoder(_, entry, __) -> Row:
    source = next(f"{key} {getattr(entry, key)}" for key in ("hub", "folder", "package", "file") if getattr(entry, key))
    return entry.kind, str(entry.layers), str(entry.width), source


def _kind(_, entry, __) -> Row:
    return (entry.kind,)


# kind -> names of its columns between id and label, and what makes a line of them
COLUMNS = {
    "tasks": (("type", "examples", "data"), _task),
    "encoders": (("kind", "layers", "width", "source"), _encoder),
    "strategies": (("phases", "sweep"), lambda _, entry, __: (str(len(entry.phases)), ", ".join(entry.sweep or ()))),
    "subsets": (("examples", "draw"), lambda _, one, __: (one.in_print, str(one.draw))),
    "heads": (("kind",), _kind),
    "probes": (("kind",), _kind),
    "outputs": (("kind",), _kind),
}
