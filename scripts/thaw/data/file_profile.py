"""A user's file looked at: its format, encoding, quoting and header, and its columns as raw values.

Nothing here is needed to run anything: `scripts/new.py` writes the first draft of a catalogue entry from it.
"""

import codecs
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from thaw.core.errors import UserError
from thaw.data.conll import CONLLU, read_sentences
from thaw.data.readers import (
    LABEL_TEXT,
    read_delimited,
    read_jsonl,
    read_label_text,
    read_parquet,
    split_plain,
    split_quoted,
)
from thaw.data.rows_table import open_bytes, read_lines
from thaw.schema.corpora import FilesConfig

SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
SUFFIXES |= {".conllu": "conllu", ".conll": "conll", ".csv": "delimited", ".tsv": "delimited"}
LOOKED_AT = 300  # so many lines are enough to know a format by
MOST_LABELS = 60


@dataclass
class FileProfile:
    """What a file was found to be.

    `keys` are those of an entry's `files:` but for splits and columns; `columns` the raw values by name, or by position
    where the file names none; `guesses` what was guessed, by key.
    """

    keys: dict
    columns: dict[str | int, list]
    guesses: dict[str, str] = field(default_factory=dict)

    @property
    def named(self) -> bool:
        """Whether the file names its columns."""
        return all(isinstance(name, str) for name in self.columns)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(next(iter(self.columns.values())))


def profile_file(path: Path) -> FileProfile:
    """Return what a file is and what it holds; it is read whole.

    Raises UserError where it is not there, not of a known format, or not sound in that format.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    kind = SUFFIXES.get(Path(path.name.removesuffix(".gz")).suffix.lower())
    with open_bytes(path) as file:
        content = file.read()
    if kind == "parquet" or content.startswith(b"PAR1"):
        return _look_at_parquet(path)
    encoding, guess = _encoding(path, content)
    guesses = {"encoding": guess} if guess else {}
    lines = [line for _, line in zip(range(LOOKED_AT), read_lines(path, encoding), strict=False)]
    lines = [text for _, text in lines]
    if not any(line.strip() for line in lines):
        raise UserError(f"{path}: is empty")
    kind = kind or _format(lines)
    if kind is None:
        known = "csv, tsv, jsonl, parquet, conll, conllu and lines of a label and a text"
        raise UserError(f"{path}: of no format that Thaw reads; there are {known}")
    keys = {"format": kind} | ({"encoding": encoding} if encoding != "utf-8" else {})
    if kind == "delimited":
        sight = _look_at_delimited(path, encoding, lines)
        return FileProfile(sight.keys | keys | {"format": sight.keys["format"]}, sight.columns, guesses | sight.guesses)
    source = FilesConfig(splits={"train": path.name}, **keys)
    return FileProfile(keys, {"jsonl": _jsonl, "label_text": _label_text}.get(kind, _sentences)(path, source), guesses)


def _encoding(path: Path, content: bytes) -> tuple[str, str | None]:
    """Return the encoding of a file and, where it is not UTF-8, what was guessed."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UserError(f"{path}: is UTF-16, which is not read line by line; convert the file to UTF-8")
    try:
        content.decode("utf-8")
        return "utf-8", None
    except UnicodeDecodeError:
        pass
    try:
        content.decode("cp1252")
        encoding = "cp1252" if re.search(rb"[\x80-\x9f]", content) else "latin-1"
    except UnicodeDecodeError:
        encoding = "latin-1"
    return encoding, "the file is not UTF-8; look at words with accents"


def _format(lines: list[str]) -> str | None:
    """Return the format of a file without a telling name, by its first lines; None where it has none."""
    full = [line for line in lines if line.strip()]
    if full[0].lstrip().startswith("{"):
        return "jsonl"
    words = [line for line in full if not line.startswith("#")]
    if words and all(re.match(r"\d[\d.-]*\t", line) and line.count("\t") == len(CONLLU) - 1 for line in words):
        return "conllu"
    widths = {len(line.split()) for line in full if not line.startswith("-DOCSTART-")}
    if len(widths) == 1 and widths.pop() > 1 and any(not line.strip() for line in lines[:-1]):
        return "conll"
    if all("\t" in line for line in full):
        return "delimited"
    labels = Counter(line.split(" ", 1)[0] for line in full)
    if all(" " in line.strip() for line in full) and len(labels) <= min(MOST_LABELS, max(2, len(full) // 3)):
        return "label_text"
    return "delimited" if all("," in line for line in full) else None


def _look_at_delimited(path: Path, encoding: str, lines: list[str]) -> FileProfile:
    """Look at a CSV or TSV file: what parts its fields, whether quotes are quotes, whether it has a header."""
    full = [line for line in lines if line.strip()]
    tabs = all("\t" in line for line in full)
    if not tabs and ";" in full[0] and "," not in full[0]:
        raise UserError(f"{path}:1: fields stand between semicolons; Thaw reads commas and tabs: convert the file")
    delimiter, keys, guesses = "\t" if tabs else ",", {"format": "tsv" if tabs else "csv"}, {}
    plain = [fields for _, fields in split_plain(path, encoding, delimiter)]
    try:
        quoted = [fields for _, fields in split_quoted(path, encoding, delimiter)]
    except UserError:
        quoted = None
    rows, keys["quoting"] = plain, "none"
    marked = any(value.startswith('"') for fields in plain for value in fields)
    if quoted and _even(quoted) and (marked or not tabs):
        rows, keys["quoting"] = quoted, "double"
        if marked and _even(plain):
            guesses["quoting"] = "fields in quotes lose them; none if the quotes belong to the texts"
    header, reason = _has_header(rows)
    guesses |= {"header": reason} if reason else {}
    least, most = min(map(len, rows)), max(map(len, rows))
    if least < most and not header and tabs and least > 1:
        guesses["header"] = f"lines have {least} to {most} fields; the last ones are not used"
    elif least < most:
        header = True  # the reader says which line has another width than the first
    source = FilesConfig(splits={"train": path.name}, encoding=encoding, header=header, **keys)
    titles = rows[0] if header and len(set(rows[0])) == len(rows[0]) else range(least)
    names = {str(i): i for i in range(len(titles))}
    found = [values for _, values in read_delimited(path, source, names)]
    columns = {title: [values[str(i)] for values in found] for i, title in enumerate(titles)}
    return FileProfile(keys if header else keys | {"header": False}, columns, guesses)


def _even(rows: list[list[str]]) -> bool:
    return len({len(fields) for fields in rows}) == 1 and len(rows[0]) > 1


def _has_header(rows: list[list[str]]) -> tuple[bool, str | None]:
    """Return whether the first row names the columns and, where that is not plain, what was guessed.

    Names are short, unlike each other and no numbers, and never come again below as one of a few labels; and
    somewhere they differ from what stands below them: a column of numbers, a few labels, or texts of many words.
    """
    first, below = rows[0], rows[1:]
    if not below or len(set(first)) < len(first) or not all(_is_name(value) for value in first):
        return False, None
    columns = dict(zip(first, zip(*below, strict=False), strict=False))
    few = {name for name, values in columns.items() if len(set(values)) <= max(2, len(values) // 5)}
    if any(name in columns[name] for name in few):
        return False, None
    for values in columns.values():
        if few or all(map(is_number, values)) or sum(len(value.split()) for value in values) > 3 * len(values):
            return True, None
    return False, "the first line was taken for a row; header: true if it names the columns"


def _is_name(value: str) -> bool:
    return bool(re.fullmatch(r"[^\n]{1,40}", value.strip())) and not is_number(value) and len(value.split()) <= 4


def is_number(value) -> bool:
    """Return whether a raw value is a number, or text that is one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


def _look_at_parquet(path: Path) -> FileProfile:
    """Look at a Parquet file: every column by its name."""
    from pyarrow import ArrowInvalid, BufferReader, parquet

    try:
        with open_bytes(path) as file:
            names = parquet.ParquetFile(BufferReader(file.read())).schema_arrow.names
    except (ArrowInvalid, OSError, EOFError) as error:
        raise UserError(f"{path}: not a Parquet file ({error})") from error
    source = FilesConfig(splits={"train": path.name}, format="parquet")
    found = [values for _, values in read_parquet(path, source, {name: name for name in names})]
    return FileProfile({"format": "parquet"}, {name: [values[name] for values in found] for name in names})


def _jsonl(path: Path, source: FilesConfig) -> dict[str, list]:
    """Return the columns that every object of a JSONL file has; the reader says what is wrong with a line."""
    for _ in read_jsonl(path, source, {}):
        pass
    records = [json.loads(text) for _, text in read_lines(path, source.encoding) if text.strip()]
    names = [name for name in records[0] if all(name in record for record in records)]
    if not names:
        raise UserError(f"{path}: no key is in all objects")
    return {name: [record[name] for record in records] for name in names}


def _label_text(path: Path, source: FilesConfig) -> dict[str, list]:
    found = [values for _, values in read_label_text(path, source, {name: name for name in LABEL_TEXT})]
    return {name: [values[name] for values in found] for name in LABEL_TEXT}


def _sentences(path: Path, source: FilesConfig) -> dict[str | int, list]:
    """Return the columns of a CoNLL or CoNLL-U file, each value a list with one entry a word."""
    if source.format == "conllu":
        names = {name: name for name in ("form", "upos", "xpos", "deprel")}
    else:
        first = next(text for _, text in read_lines(path, source.encoding) if text.strip() and "-DOCSTART-" not in text)
        names = {str(i): i for i in range(len(first.split()))}
    table = read_sentences(path, source, names)
    return {names[key]: values for key, values in table.columns.items()}
