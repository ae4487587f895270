"""A user's file or a data set of the Hub at a first look: its format, and its columns as raw values.

Files are read by the readers of `prepare`, so that what is seen here is what a run will read.
"""

import codecs
import contextlib
import csv
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from thaw.core import hub
from thaw.core.errors import UserError
from thaw.data import squad
from thaw.data.conll import CONLLU
from thaw.data.readers import LABEL_TEXT, QUOTES, json_lines, json_records, read, records_of
from thaw.data.rows_table import RowsTable, open_bytes
from thaw.data.sources import SCRIPT_BRANCH, named_values
from thaw.schema.corpora import FilesConfig

Name = str | int  # of a column; its position where a file names none
SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
SUFFIXES |= {".conllu": "conllu", ".conll": "conll", ".csv": "delimited", ".tsv": "delimited"}
SAMPLE = 300  # lines by which a format is known
DELIMITERS = "\t,;|"
KNOWN_NAMES = re.compile(r"text|label|sentence\d?|class|category|target|score|id", re.IGNORECASE)
# split in Thaw -> its usual names on the Hub and in files, the first that is there
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
    rows_read: RowsTable | None = None  # of a file, which knows where each row is

    def place(self, path: str, row: int) -> str:
        """Return where a row from 0 is, as the beginning of a message."""
        return f"{self.rows_read.location(row) if self.rows_read else f'{path}: row {row + 1}'}:"

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values())))


def is_number(value) -> bool:
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
        raise UserError(f"{path}: no such file")
    kind = SUFFIXES.get(Path(path.name.removesuffix(".gz")).suffix.lower())
    guesses: dict[str, str] = {}
    names: Sequence[Name]
    with open_bytes(path) as file:
        content = file.read()
    if kind == "parquet" or content.startswith(b"PAR1"):
        keys, names = {"format": "parquet"}, _parquet_names(path, content)
    elif path.suffix.lower() in (".xlsx", ".xls"):
        raise UserError(f"{path}: is an Excel file; save it as CSV with UTF-8")
    elif squad.recognised(content):
        keys, names = {"format": "squad"}, squad.COLUMNS
    else:
        encoding = _encoding(path, content)
        if encoding != "utf-8":
            guesses["encoding"] = "the file is not UTF-8; look at words with accents"
        if b"\n" not in content.rstrip() and content.count(b"\r") > 1:
            raise UserError(f"{path}: its lines end in CR alone, as on old Macs; convert them by tr '\\r' '\\n'")
        lines = [line.removesuffix("\r") for line in content.decode(encoding).removeprefix("\ufeff").split("\n")]
        if not any(line.strip() for line in lines):
            raise UserError(f"{path}: is empty")
        document = kind == "jsonl" and next(filter(str.strip, lines)).lstrip().startswith("[")
        kind = "json" if document or _is_document(lines) else kind or _format(path, lines[:SAMPLE])
        if kind == "delimited":
            keys, names = _delimited(path, encoding, lines[:SAMPLE], named, guesses)
        else:
            keys, names = {"format": kind}, _names(path, kind, encoding, named)
        keys |= {"encoding": encoding} if encoding != "utf-8" else {}
    columns = {str(position): name for position, name in enumerate(names)}
    table = read(path, FilesConfig(splits={"train": path.name}, columns=columns, **keys), list(columns))
    return FileProfile(keys, {name: table.columns[key] for key, name in columns.items()}, {}, guesses, table)


def profile_hub(id: str, config: str | None, revision: str | None) -> tuple[FileProfile, dict]:
    """Return what the training split of a data set holds, and the data set's splits by their names on the Hub.

    Raises UserError where the data set cannot be loaded or has no split for training.
    """
    if silence := "" if Path(id).exists() else hub.silence():
        os.environ[hub.OFFLINE] = "1"  # as `datasets` reads it when it is imported
    from datasets import load_dataset

    try:
        data = load_dataset(id, config, revision=revision)
    except Exception as error:  # of many kinds, from several libraries
        if silence:
            raise UserError(
                f"hub:{id}: is in no cache of this machine, and the Hub does not answer ({silence}); give its rows in "
                "a file, as data.csv"
            ) from error
        reason = " ".join(str(error).split())[:300]
        if "script" in reason:
            reason = f"it is made by a program, which Thaw does not run; try --revision {SCRIPT_BRANCH}"
        raise UserError(
            f"hub:{id}: could not be loaded ({reason}); check id, thaw new task --config, network"
        ) from error
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


def _is_document(lines: list[str]) -> bool:
    if not next(line for line in lines if line.strip()).lstrip().startswith(("[", "{")):
        return False
    try:
        whole = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return False
    if isinstance(whole, dict):
        return len(whole) > 1 and all(isinstance(values, (dict, list)) for values in whole.values())
    return isinstance(whole, list) and all(isinstance(record, dict) for record in whole)


def _format(path: Path, lines: list[str]) -> str:
    full = [line for line in lines if line.strip()]
    words = [line for line in full if not line.startswith("#")]
    plain = [line for line in full if not line.startswith("-DOCSTART-")]
    widths = {len(line.split()) for line in plain}
    if len(widths) > 1:  # words with blanks in them
        widths = {line.count("\t") + 1 for line in plain}
    labels = {line.split(" ", 1)[0] for line in full}
    if full[0].lstrip().startswith("{"):
        return "jsonl"
    if words and all(re.match(r"\d[\d.-]*\t", line) and line.count("\t") == len(CONLLU) - 1 for line in words):
        return "conllu"
    if len(widths) == 1 and widths.pop() > 1 and any(not line.strip() for line in lines[:-1]):
        return "conll"
    if all(" " in line.strip() and "\t" not in line for line in full) and len(labels) <= max(2, len(full) // 3):
        return "label_text"
    if any(all(mark in line for line in full) for mark in DELIMITERS):
        return "delimited"
    known = "csv, tsv, json, jsonl, parquet, conll, conllu and lines of a label and a text"
    raise UserError(f"{path}: of no format that Thaw reads; there are {known}")


def _names(path: Path, kind: str, encoding: str, named: tuple[str, ...]) -> Sequence[Name]:
    if kind == "conll":
        from thaw.data.conll import sentences_of

        return list(range(len(next(sentences_of(path, encoding)).fields[0])))
    if kind == "json":
        return _keys_of_all(path, json_records(path, encoding), named)
    if kind == "jsonl":
        return _keys_of_all(path, [record for _, record in json_lines(path, encoding)], named)
    return LABEL_TEXT if kind == "label_text" else ["form", "upos", "xpos", "deprel"]


def _keys_of_all(path: Path, records: list[dict], named: tuple[str, ...]) -> Sequence[Name]:
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
    if re.fullmatch(r"sep=.", lines[0], re.IGNORECASE):
        raise UserError(f"{path}:1: is Excel's line '{lines[0]}'; delete it")
    delimiter, quoting = _dialect(lines)
    tabs = delimiter == "\t"
    keys: dict = {"format": "tsv" if tabs else "csv"} | ({"delimiter": delimiter} if delimiter in ";|" else {})
    rows = [fields for _, fields in records_of(path, encoding, delimiter, quoting or "none")]
    if quoting is None:
        marked, quoted = any(value.startswith('"') for fields in rows for value in fields), []
        with contextlib.suppress(UserError):
            quoted = [fields for _, fields in records_of(path, encoding, delimiter, "double")]
        quoting = "double" if len({*map(len, quoted)}) == 1 and (marked or not tabs) else "none"
        if quoting == "double":
            if marked and _is_even(rows):
                guesses["quoting"] = "fields in quotes lose them; none if the quotes belong to the texts"
            rows = quoted
    keys["quoting"] = quoting
    first = rows[0]
    recurs = any(name and name in {row[n] for row in rows[1:] if n < len(row)} for n, name in enumerate(first))
    short = all(len(name) <= 40 and len(name.split()) <= 4 and not is_number(name) for name in first)
    telling = len(set(first)) == len(first) or any(KNOWN_NAMES.fullmatch(name) for name in first)
    names = {name for name in named if not is_number(name)}  # a number is a position, or a value of the first row
    if names & set(first) or short and not recurs and telling:
        return keys, [position if first.count(name) > 1 else name for position, name in enumerate(first)]
    guesses["header"] = "the first line looks like a row; write header: true if it names the columns"
    return keys | {"header": False}, list(range(min(map(len, rows))))


def _dialect(lines: list[str]) -> tuple[str, str | None]:
    """Return what separates fields, and how they are quoted where it is neither in double quotes nor not at all.

    The usual one goes before others: a tab that is in all lines, else a semicolon that is more frequent than commas in
    the first line, else a comma. Another is taken where rows have one width by it alone, or more columns recur by it.
    """
    full = [line for line in lines if line.strip()]
    tabs = all("\t" in line for line in full)
    usual = "\t" if tabs else ";" if full[0].count(";") > full[0].count(",") else ","
    found: list[tuple[int, str, str | None]] = []
    for delimiter in (usual, *(mark for mark in DELIMITERS if mark != usual)):
        plain = [line.split(delimiter) for line in full]
        apostrophes = [
            all(len(value) > 1 and value[0] == value[-1] == "'" for value in column)
            for column in zip(*plain[1:], strict=False)
        ]
        for way, fits in (("single", any(apostrophes)), ("backslash", any('\\"' in line for line in full))):
            if fits and _is_even(rows := _sniffed(full, delimiter, way)):
                found.append((_recurring(rows), delimiter, way))
        if _is_even(plain) or _is_even(rows := _sniffed(full, delimiter, "double")):
            found.append((_recurring(plain if _is_even(plain) else rows), delimiter, None))
    _, delimiter, quoting = max(found, key=lambda one: one[0], default=(0, usual, None))
    return delimiter, quoting


def _sniffed(lines: list[str], delimiter: str, quoting: str) -> list[list[str]]:
    """Return the records of the first lines but the last, which may be cut; none where they are not sound."""
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=True, **QUOTES[quoting])
    records: list[list[str]] = []
    try:
        records.extend(reader)
    except csv.Error:
        return records if reader.line_num == len(lines) else []
    return records[:-1]


def _recurring(rows: list[list[str]]) -> int:
    return sum(2 <= len(set(column)) <= max(2, len(column) // 2) for column in zip(*rows[1:], strict=False))


def _is_even(rows: list[list[str]]) -> bool:
    return len({len(fields) for fields in rows}) == 1 and len(rows[0]) > 1
