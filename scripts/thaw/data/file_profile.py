"""A user's file at a first look: its format, encoding, quoting and header, and its columns as raw values.

Only `thaw new` needs it, for the first draft of a catalogue entry. csv.Sniffer is no help: it knows no header
above texts of many lengths, and takes a quote at the beginning of a text for quoting.
"""

import codecs
import contextlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from thaw.core.errors import UserError
from thaw.data import squad
from thaw.data.conll import CONLLU
from thaw.data.readers import LABEL_TEXT, read, read_jsonl, split_plain, split_quoted
from thaw.data.rows_table import open_bytes
from thaw.schema.corpora import FilesConfig

SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
SUFFIXES |= {".conllu": "conllu", ".conll": "conll", ".csv": "delimited", ".tsv": "delimited"}
SAMPLE = 300  # so many lines are enough to know a format by
MOST_LABELS = 60


@dataclass
class FileProfile:
    """What a file holds.

    `keys` are those of an entry's `files:` but for splits and columns; `columns` the raw values by name, or by position
    where the file names none; `guesses` what was guessed, by key; `gaps`, by name of a column that some rows lack, the
    first such line and what it lacks.
    """

    keys: dict
    columns: dict[str | int, list]
    guesses: dict[str, str] = field(default_factory=dict)
    gaps: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(next(iter(self.columns.values())))


def profile_file(path: Path, named: tuple[str, ...] = ()) -> FileProfile:
    """Return what a file is and what it holds; it is read whole.

    Args: the file; columns that the user named: a first line that has one of them is the header. Raises UserError
    where the file is not there, not of a known format, or not sound in that format.
    """
    if not path.is_file():
        raise UserError(f"{path}: {'is a folder; name a file in it' if path.is_dir() else 'no such file'}")
    gaps: dict[str, str] = {}
    kind = SUFFIXES.get(Path(path.name.removesuffix(".gz")).suffix.lower())
    with open_bytes(path) as file:
        content = file.read()
    if kind == "parquet" or content.startswith(b"PAR1"):
        keys, names, guesses = {"format": "parquet"}, _parquet_names(path, content), {}
    elif squad.recognised(content):
        keys, names, guesses = {"format": "squad"}, squad.COLUMNS, {}
    else:
        encoding, guesses = _encoding(path, content)
        lines = [line.removesuffix("\r") for line in content.decode(encoding).removeprefix("\ufeff").split("\n")]
        kind = kind or _format(path, lines[:SAMPLE])
        if not any(line.strip() for line in lines):
            raise UserError(f"{path}: is empty")
        if kind == "delimited":
            keys, names = _delimited(path, encoding, lines[:SAMPLE], named, guesses)
        else:
            keys = {"format": kind}
            names = _names(path, kind, encoding, lines, gaps)
        keys |= {"encoding": encoding} if encoding != "utf-8" else {}
    columns = {str(position): name for position, name in enumerate(names)}
    table = read(path, FilesConfig(splits={"train": path.name}, columns=columns, **keys), list(columns))
    return FileProfile(keys, {name: table.columns[key] for key, name in columns.items()}, guesses, gaps)


def is_number(value) -> bool:
    """Return whether a raw value is a number, or text that is one."""
    with contextlib.suppress(TypeError, ValueError):
        float(value)
        return not isinstance(value, bool)
    return False


def _encoding(path: Path, content: bytes) -> tuple[str, dict[str, str]]:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UserError(f"{path}: is UTF-16, which is not read line by line; convert the file to UTF-8")
    with contextlib.suppress(UnicodeDecodeError):
        content.decode("utf-8")
        return "utf-8", {}
    encoding = "latin-1"
    with contextlib.suppress(UnicodeDecodeError):
        content.decode("cp1252")
        encoding = "cp1252" if re.search(rb"[\x80-\x9f]", content) else "latin-1"
    return encoding, {"encoding": "the file is not UTF-8; look at words with accents"}


def _format(path: Path, lines: list[str]) -> str:
    """Return the format of a file without a telling name, by its first lines."""
    full = [line for line in lines if line.strip()]
    words = [line for line in full if not line.startswith("#")]
    widths = {len(line.split()) for line in full if not line.startswith("-DOCSTART-")}
    labels = Counter(line.split(" ", 1)[0] for line in full)
    if full and full[0].lstrip().startswith("{"):
        return "jsonl"
    if words and all(re.match(r"\d[\d.-]*\t", line) and line.count("\t") == len(CONLLU) - 1 for line in words):
        return "conllu"
    if len(widths) == 1 and widths.pop() > 1 and any(not line.strip() for line in lines[:-1]):
        return "conll"
    if all("\t" in line for line in full):
        return "delimited"
    if all(" " in line.strip() for line in full) and len(labels) <= min(MOST_LABELS, max(2, len(full) // 3)):
        return "label_text"
    if all("," in line for line in full) or all(";" in line for line in full):
        return "delimited"
    known = "csv, tsv, jsonl, parquet, conll, conllu and lines of a label and a text"
    raise UserError(f"{path}: of no format that Thaw reads; there are {known}")


def _names(path: Path, kind: str, encoding: str, lines: list[str], gaps: dict[str, str]) -> list:
    """Return the names of the columns of a file that is not delimited, or their positions; add those that rows lack."""
    if kind == "conll":
        return list(range(len(next(line for line in lines if line.strip() and "-DOCSTART-" not in line).split())))
    if kind != "jsonl":
        return LABEL_TEXT if kind == "label_text" else ["form", "upos", "xpos", "deprel"]
    for _ in read_jsonl(path, FilesConfig(splits={"train": path.name}, format=kind, encoding=encoding), {}):
        pass  # the reader says what is wrong with a line
    records = {number: json.loads(line) for number, line in enumerate(lines, start=1) if line.strip()}
    names = []
    for name in dict.fromkeys(name for record in records.values() for name in record):
        lacking = [number for number, record in records.items() if name not in record]
        if lacking:
            gaps[name] = f"{lacking[0]}: no key '{name}', as {len(lacking)} of {len(records)} rows have none"
        else:
            names.append(name)
    if not names:
        raise UserError(f"{path}: no key is in all objects")
    return names


def _parquet_names(path: Path, content: bytes) -> list[str]:
    from pyarrow import ArrowException, BufferReader, parquet

    try:
        return parquet.ParquetFile(BufferReader(content)).schema_arrow.names
    except (ArrowException, OSError) as error:
        raise UserError(f"{path}: not a Parquet file ({error})") from error


def _delimited(
    path: Path, encoding: str, lines: list[str], named: tuple[str, ...], guesses: dict[str, str]
) -> tuple[dict, list]:
    """Return keys and columns of a CSV or TSV file: what separates fields, whether quotes are quotes, the header."""
    full = [line for line in lines if line.strip()]
    tabs = all("\t" in line for line in full)
    semicolons = not tabs and full[0].count(";") > full[0].count(",")
    keys, delimiter = {"format": "tsv" if tabs else "csv", "quoting": "none"}, "\t" if tabs else ","
    if semicolons:
        keys["delimiter"] = delimiter = ";"
    plain, quoted = [fields for _, fields in split_plain(path, encoding, delimiter)], []
    with contextlib.suppress(UserError):
        quoted = [fields for _, fields in split_quoted(path, encoding, delimiter)]
    rows, marked = plain, any(value.startswith('"') for fields in plain for value in fields)
    if quoted and _even(quoted) and (marked or not tabs):
        rows, keys["quoting"] = quoted, "double"
        if marked and _even(plain):
            guesses["quoting"] = "fields in quotes lose them; none if the quotes belong to the texts"
    names = {name for name in named if not is_number(name)}  # a number is a position, or a value of the first row
    has_names, widths = bool(names & set(rows[0])) or _has_header(rows), {len(fields) for fields in rows}
    ragged = len(widths) > 1 and not has_names and tabs and min(widths) > 1
    header = has_names or len(widths) > 1 and not ragged  # the reader says which line has another width than the first
    if not header:
        keys["header"] = False
        guesses["header"] = "the first line looks like a row; write header: true if it names the columns"
    if ragged:
        guesses["header"] += f"; lines have {min(widths)} to {max(widths)} fields, of which the last ones are not used"
    return keys, rows[0] if header and len(set(rows[0])) == len(rows[0]) else list(range(min(widths)))


def _even(rows: list[list[str]]) -> bool:
    return len({len(fields) for fields in rows}) == 1 and len(rows[0]) > 1


def _has_header(rows: list[list[str]]) -> bool:
    """Return whether the first row names the columns.

    Names are short, unlike each other and no numbers, and none is among the few labels of its column; that of the first
    one is empty where it numbers the rows, as pandas writes them. Somewhere they differ from what is below them: a
    column of numbers, a few labels, or texts of many words.
    """
    first, below = rows[0], rows[1:]
    if below and not first[0].strip() and all(fields[0].isdecimal() for fields in below):
        first, below = first[1:], [fields[1:] for fields in below]
    names = all(0 < len(name.strip()) <= 40 and len(name.split()) <= 4 and not is_number(name) for name in first)
    if not below or len(set(first)) < len(first) or not names:
        return False
    columns = dict(zip(first, zip(*below, strict=False), strict=False))
    few = [name for name, values in columns.items() if len(set(values)) <= max(2, len(values) // 5)]
    if any(name in columns[name] for name in few):
        return False
    return any(
        few or all(map(is_number, values)) or sum(len(value.split()) for value in values) > 3 * len(values)
        for values in columns.values()
    )
