"""A split as read from its source: raw values under our column names, and the location of each."""

import codecs
import gzip
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from thaw.core.errors import UserError, suggestion
from thaw.schema.corpora import SourceConfig


@dataclass
class RowsTable:
    """Raw columns of one split, N rows.

    `lines` holds each row's first line in its file (`unit` line, from 1), its number (`unit` row, from 1) or its path
    in a JSON document (`unit` place);
    `word_lines` the line of each word where a file has one word a line, else None. `called` is how the source calls our
    columns, where it calls them otherwise.
    """

    name: str
    columns: dict[str, list]
    lines: list = field(default_factory=list)
    unit: str = "line"
    word_lines: list[list] | None = None
    called: dict[str, str | int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    def location(self, row: int, word: int | None = None) -> str:
        """Return `file:line` (or `file: row n`) of a row, or of one word in it where words have lines."""
        if word is not None and self.word_lines is not None:
            return f"{self.name}:{self.word_lines[row][word]}"
        separator = {"line": ":", "row": ": row ", "place": ": "}[self.unit]
        return f"{self.name}{separator}{self.lines[row]}"

    def mistake(self, row: int, column: str, message: str, word: int | None = None) -> UserError:
        """Return the error `location: column 'x': message`; where words have no line, with the word's number."""
        which = f" word {word + 1}:" if word is not None and self.word_lines is None else ""
        called = self.called.get(column)
        shown = called if isinstance(called, str) else column
        return UserError(f"{self.location(row, word)}: column '{shown}':{which} {message}")


def columns_of(source: SourceConfig, wanted: list[str]) -> dict[str, str | int | list]:
    """Return which of a source's columns are each of ours; a list for several that are joined, or are indicators."""
    return {ours: source.indicators.get(ours) or source.columns.get(ours, ours) for ours in wanted}


def parts(columns: dict[str, str | int | list]) -> dict[str, str | int]:
    """Return the columns to read for ours: theirs as it is, or `ours, part n` for each of several to be joined."""
    columns_read: dict = {}
    for ours, theirs in columns.items():
        several = {f"{ours}, part {n}": part for n, part in enumerate(theirs, 1)} if isinstance(theirs, list) else {}
        columns_read |= several or {ours: theirs}
    return columns_read


def join(values: dict[str, list], columns: dict[str, str | int | list], indicators=()) -> dict[str, list]:
    """Return our columns from those that `parts` names; parts of a text are joined by blanks, empty ones left out.

    Args: indicators, which of ours become {name of their column: its value}, and are no texts.
    """
    joined: dict[str, list] = {}
    for ours, theirs in columns.items():
        if isinstance(theirs, list):
            rows = zip(*(values[f"{ours}, part {n}"] for n in range(1, len(theirs) + 1)), strict=True)
            if ours in indicators:
                joined[ours] = [dict(zip(map(str, theirs), row, strict=True)) for row in rows]
                continue
            joined[ours] = [" ".join(str(part) for part in row if part not in (None, "")) for row in rows]
        else:
            joined[ours] = values[ours]
    return joined


def open_bytes(path: Path) -> io.BufferedIOBase:
    """Open a file for reading bytes; a name that ends in .gz is unpacked on the way."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")


def read_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without its line end) of a text file; lines end in LF or CRLF.

    A byte order mark is taken off UTF-8. Undecodable bytes, unknown encodings, those whose line feed is not one
    byte (UTF-16, UTF-32) and broken .gz files raise UserError.
    """
    try:
        codec = codecs.lookup(encoding).name
    except LookupError as error:
        raise UserError(f"{path}: no encoding is called '{encoding}'; utf-8 and latin-1 are common ones") from error
    if codec.startswith(("utf-16", "utf-32")):
        raise UserError(f"{path}: encoding {encoding} is not read line by line; convert the file to UTF-8")
    number = 0
    try:
        with open_bytes(path) as file:
            for number, raw in enumerate(file, 1):
                if number == 1 and codec.startswith("utf-8"):
                    raw = raw.removeprefix(codecs.BOM_UTF8)
                yield number, raw.decode(codec).removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x} at position {error.start + 1}"
        message = f"{path}:{number}: {byte} is not {encoding}; state the file's own encoding, such as latin-1"
        raise UserError(message) from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise UserError(f"{path}:{number + 1}: not a whole gzip file ({error}); fetch it again") from error


def read_whole_json(path: Path, encoding: str):
    """Return the value of a JSON file."""
    return parsed_json("\n".join(text for _, text in read_lines(path, encoding)), str(path), 1)


def parsed_json(text: str, name: str, line: int):
    """Return a JSON value; `line` is that of its beginning."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{name}:{line + error.lineno - 1}:{error.colno}: not valid JSON ({error.msg})") from error
    except RecursionError as error:
        raise UserError(f"{name}:{line}: not valid JSON (its brackets are nested too deeply)") from error


def find_position(name: str | int, header: list[str] | None, location: str, ours: str) -> int:
    """Return the position of a column, given by name or by position from 0.

    Raises UserError for a name that the header lacks or has twice, a position beyond it, a name without it.
    """
    if isinstance(name, int):
        if name < 0 or (header is not None and name >= len(header)):
            width = f"; the file has {len(header)}, counted from 0" if header is not None else "; count from 0"
            raise UserError(f"{location}: column '{ours}': there is no column {name}{width}")
        return name
    if header is None:
        message = f"the file names no columns; state columns: {{{ours}: <position from 0>}}"
        raise UserError(f"{location}: column '{ours}': {message}")
    if header.count(name) != 1:
        if name in header:
            raise UserError(
                f"{location}: column '{name}': is there {header.count(name)} times; give its position from 0"
            )
        raise UserError(f"{location}: column '{name}': is missing{suggestion(name, header)}")
    return header.index(name)
