"""A user's file or a data set of the Hub at a first look: its format, and its columns as raw values.

Files are read by the readers of `prepare`, so that what is seen here is what a run will read.
"""

import codecs
import contextlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from thaw.core.errors import UserError
from thaw.data import squad
from thaw.data.conll import CONLLU
from thaw.data.readers import LABEL_TEXT, read, read_jsonl, split_plain, split_quoted
from thaw.data.rows_table import open_bytes
from thaw.data.sources import SCRIPT_BRANCH, named_values
from thaw.schema.corpora import FilesConfig

Name = str | int  # of a column; its position where a file names none
SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
SUFFIXES |= {".conllu": "conllu", ".conll": "conll", ".csv": "delimited", ".tsv": "delimited"}
SAMPLE = 300  # lines by which a format is known
MOST_LABELS = 60
# split in Thaw -> its usual names on the Hub, the first that is there
SPLITS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev", "development", "validation_matched"),
    "test": ("test", "testing"),
}


@dataclass
class FileProfile:
    """What a file or a training split holds: keys of the entry's source, columns, splits, and guesses by key."""

    keys: dict
    columns: dict[Name, list]
    splits: dict[str, str]
    guesses: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def table(self) -> str:
        """Return the columns in print: type, distinct values, mean length in words or entries."""
        lines = [("column", "type", "distinct", "words")]
        for name, values in self.columns.items():
            kinds = {type(value).__name__ for value in values if value is not None}
            lengths = [len(value if isinstance(value, list) else str(value).split()) for value in values]
            kind = "number" if all(map(is_number, values)) else "/".join(sorted(kinds)).replace("str", "text")
            lines += [(str(name), kind, str(len(set(map(str, values)))), f"{sum(lengths) / len(lengths):.1f}")]
        widths = [max(len(line[n]) for line in lines) for n in range(4)]
        return "\n".join(
            f"  {name:<{widths[0]}}  {kind:<{widths[1]}}  {count:>{widths[2]}}  {words:>{widths[3]}}"
            for name, kind, count, words in lines
        )


def is_number(value) -> bool:
    """Return whether a raw value is a number, or text that is one."""
    with contextlib.suppress(TypeError, ValueError):
        float(value)
        return not isinstance(value, bool)
    return False


def profile_file(path: Path, named: tuple[str, ...] = ()) -> FileProfile:
    """Return what a file is and what it holds; it is read whole.

    Args: the file; columns that the user named: a first line that has one of them is the header. Raises UserError
    where the file is not there, not of a known format, or not sound in that format.
    """
    if not path.is_file():
        raise UserError(f"{path}: {'is a folder; name a file in it' if path.is_dir() else 'no such file'}")
    kind = SUFFIXES.get(Path(path.name.removesuffix(".gz")).suffix.lower())
    guesses: dict[str, str] = {}
    with open_bytes(path) as file:
        content = file.read()
    if kind == "parquet" or content.startswith(b"PAR1"):
        keys, names = {"format": "parquet"}, _parquet_names(path, content)
    elif squad.recognised(content):
        keys, names = {"format": "squad"}, squad.COLUMNS
    else:
        encoding = _encoding(path, content)
        if encoding != "utf-8":
            guesses["encoding"] = "the file is not UTF-8; look at words with accents"
        lines = [line.removesuffix("\r") for line in content.decode(encoding).removeprefix("\ufeff").split("\n")]
        if not any(line.strip() for line in lines):
            raise UserError(f"{path}: is empty")
        kind = kind or _format(path, lines[:SAMPLE])
        if kind == "delimited":
            keys, names = _delimited(path, encoding, lines[:SAMPLE], named, guesses)
        else:
            keys, names = {"format": kind}, _names(path, kind, encoding, lines, named)
        keys |= {"encoding": encoding} if encoding != "utf-8" else {}
    columns = {str(position): name for position, name in enumerate(names)}
    table = read(path, FilesConfig(splits={"train": path.name}, columns=columns, **keys), list(columns))
    return FileProfile(keys, {name: table.columns[key] for key, name in columns.items()}, {}, guesses)


def profile_hub(id: str, config: str | None, revision: str | None) -> tuple[FileProfile, dict]:
    """Return what the training split of a data set holds, and the data set's splits by their names on the Hub.

    Raises UserError where the data set cannot be loaded or has no split for training.
    """
    from datasets import load_dataset

    try:
        data = load_dataset(id, config, revision=revision)
    except Exception as error:  # of many kinds, from several libraries
        reason = " ".join(str(error).split())[:300]
        if "script" in reason:
            reason = f"it is made by a program, which Thaw does not run; try --revision {SCRIPT_BRANCH}"
        raise UserError(f"hub:{id}: could not be loaded ({reason}); check id, --config and network") from error
    splits = {ours: next((name for name in names if name in data), None) for ours, names in SPLITS.items()}
    if splits["train"] is None:
        raise UserError(f"hub:{id}: no split is called train; there are {', '.join(data)}: write the entry by hand")
    train = data[splits["train"]]
    keys = {"id": id, **({"config": config} if config else {}), **({"revision": revision} if revision else {})}
    columns = {name: named_values(train[name], train.features[name]) for name in train.column_names}
    return FileProfile(keys, columns, {ours: name for ours, name in splits.items() if name}), data


def without_labels(data: dict, splits: dict[str, str], targets: list[Name]) -> list[str]:
    """Return the splits in which a target is withheld, as in GLUE's tests: they cannot be scored."""
    withheld = []
    for ours, split in ((ours, data[theirs]) for ours, theirs in splits.items()):
        there = set(targets) <= set(split.column_names)
        if not there or any(None in named_values(split[name], split.features[name]) for name in targets):
            withheld.append(ours)
    return withheld


def _encoding(path: Path, content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UserError(f"{path}: is UTF-16, which is not read line by line; convert the file to UTF-8")
    for encoding in ("utf-8", "cp1252"):
        with contextlib.suppress(UnicodeDecodeError):
            content.decode(encoding)
            return encoding if encoding == "utf-8" or re.search(rb"[\x80-\x9f]", content) else "latin-1"
    return "latin-1"


def _format(path: Path, lines: list[str]) -> str:
    """Return the format of a file without a telling name, by its first lines."""
    full = [line for line in lines if line.strip()]
    words = [line for line in full if not line.startswith("#")]
    widths = {len(line.split()) for line in full if not line.startswith("-DOCSTART-")}
    labels = {line.split(" ", 1)[0] for line in full}
    if full[0].lstrip().startswith("{"):
        return "jsonl"
    if words and all(re.match(r"\d[\d.-]*\t", line) and line.count("\t") == len(CONLLU) - 1 for line in words):
        return "conllu"
    if len(widths) == 1 and widths.pop() > 1 and any(not line.strip() for line in lines[:-1]):
        return "conll"
    if all(" " in line.strip() and "\t" not in line for line in full) and len(labels) <= max(2, len(full) // 3):
        return "label_text"
    if any(all(mark in line for line in full) for mark in "\t,;"):
        return "delimited"
    known = "csv, tsv, jsonl, parquet, conll, conllu and lines of a label and a text"
    raise UserError(f"{path}: of no format that Thaw reads; there are {known}")


def _names(path: Path, kind: str, encoding: str, lines: list[str], named: tuple[str, ...]) -> list[Name]:
    """Return the columns of a file that is not delimited: names or positions, of JSON lines the keys of all."""
    if kind == "conll":
        return list(range(len(next(line for line in lines if line.strip() and "-DOCSTART-" not in line).split())))
    if kind != "jsonl":
        return LABEL_TEXT if kind == "label_text" else ["form", "upos", "xpos", "deprel"]
    for _ in read_jsonl(path, FilesConfig(splits={"train": path.name}, format=kind, encoding=encoding), {}):
        pass  # the reader says what is wrong with a line
    records = [json.loads(line) for line in lines if line.strip()]
    every = dict.fromkeys(key for record in records for key in record)
    names = [key for key in every if key in named or all(key in record for record in records)]
    if not names:
        raise UserError(f"{path}: no key is in all objects")
    return names


def _parquet_names(path: Path, content: bytes) -> list[str]:
    from pyarrow import ArrowException, BufferReader, parquet

    try:
        return parquet.ParquetFile(BufferReader(content)).schema_arrow.names
    except (ArrowException, OSError) as error:
        raise UserError(f"{path}: not a Parquet file ({error})") from error


def _delimited(path: Path, encoding: str, lines: list[str], named: tuple[str, ...], guesses: dict) -> tuple[dict, list]:
    """Return keys and columns of a CSV or TSV file: what separates fields, whether quotes are quotes, the header."""
    full = [line for line in lines if line.strip()]
    tabs = all("\t" in line for line in full)
    delimiter = "\t" if tabs else ";" if full[0].count(";") > full[0].count(",") else ","
    keys = {"format": "tsv" if tabs else "csv"} | ({"delimiter": ";"} if delimiter == ";" else {})
    rows, quoted = [fields for _, fields in split_plain(path, encoding, delimiter)], []
    marked = any(value.startswith('"') for fields in rows for value in fields)
    with contextlib.suppress(UserError):
        quoted = [fields for _, fields in split_quoted(path, encoding, delimiter)]
    keys["quoting"] = "double" if quoted and _is_even(quoted) and (marked or not tabs) else "none"
    if keys["quoting"] == "double":
        if marked and _is_even(rows):
            guesses["quoting"] = "fields in quotes lose them; none if the quotes belong to the texts"
        rows = quoted
    first = rows[0]
    recurs = any(name and name in {row[n] for row in rows[1:] if n < len(row)} for n, name in enumerate(first))
    short = all(len(name) <= 40 and len(name.split()) <= 4 and not is_number(name) for name in first)
    names = {name for name in named if not is_number(name)}  # a number is a position, or a value of the first row
    if names & set(first) or short and not recurs and len(set(first)) == len(first):
        return keys, first
    guesses["header"] = "the first line looks like a row; write header: true if it names the columns"
    return keys | {"header": False}, list(range(min(map(len, rows))))


def _is_even(rows: list[list[str]]) -> bool:
    return len({len(fields) for fields in rows}) == 1 and len(rows[0]) > 1
