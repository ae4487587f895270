"""Readers of files with one example a row: CSV, TSV, JSON, JSONL, Parquet, lines of a label and a text.

Sentences in columns are read by `thaw.data.conll`, questions in SQuAD's format by `thaw.data.squad`.

Every reader yields (first line of the row, {our column: raw value}); `read` collects them in a Table.
"""

import csv
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from thaw.core.errors import UserError, suggestion
from thaw.data.rows_table import (
    RowsTable,
    columns_of,
    find_position,
    join,
    open_bytes,
    parsed_json,
    parts,
    read_lines,
    read_whole_json,
)
from thaw.data.squad import read_squad
from thaw.schema.corpora import FilesConfig

Columns = dict[str, str | int]
Rows = Iterator[tuple[int, dict]]
LONGEST_FIELD = 2**31 - 1
LABEL_TEXT = ["label", "text"]
MARK, SENTENCE = "split of the row", "sentence of the row"  # columns that are read and not kept
# How fields are quoted, in the words of the module csv.
QUOTES: dict[str, dict] = {
    "double": {},
    "single": {"quotechar": "'"},
    "backslash": {"doublequote": False, "escapechar": "\\"},
}


def read(path: Path, source: FilesConfig, wanted: list[str]) -> RowsTable:
    """Read one file of a corpus: the wanted columns, by the entry's `columns`, under our names.

    Raises UserError with file and line for whatever the file does not hold as the entry says it should.
    """
    asked = columns_of(source, wanted)
    asked |= {MARK: source.split_column} if source.marks and source.split_column is not None else {}
    asked |= {SENTENCE: source.words_by} if source.words_by is not None else {}
    columns = parts(asked)
    if source.format in ("conll", "conllu"):
        from thaw.data.conll import read_sentences

        return read_sentences(path, source, columns)
    reader = {
        "csv": read_delimited,
        "tsv": read_delimited,
        "json": read_json,
        "jsonl": read_jsonl,
        "parquet": read_parquet,
        "label_text": read_label_text,
        "squad": read_squad,
    }
    unit = {"parquet": "row", "json": "row", "squad": "place"}.get(source.format, "line")
    table = RowsTable(str(path), {ours: [] for ours in columns}, unit=unit, called=columns)
    marks = {*source.marks.values()}
    for line, values in reader[source.format](path, source, columns):
        if MARK in values and str(values[MARK]) not in marks:
            continue
        table.lines.append(line)
        for ours in columns:
            table.columns[ours].append(values[ours])
    if not table.lines:
        raise UserError(f"{path}: holds no rows")
    table.columns = join(table.columns, asked, source.indicators)
    table.columns.pop(MARK, None)
    return _grouped(table) if SENTENCE in table.columns else table


def _grouped(table: RowsTable) -> RowsTable:
    """Return sentences for rows of one word each: a row without a number of its sentence goes on with the last one."""
    numbers: list = []
    for number in table.columns.pop(SENTENCE):
        numbers.append(numbers[-1] if numbers and number in ("", None) else number)
    begins = [place for place, number in enumerate(numbers) if place == 0 or number != numbers[place - 1]]
    sentences = list(itertools.pairwise([*begins, len(numbers)]))
    columns = {name: [values[a:b] for a, b in sentences] for name, values in table.columns.items()}
    lines = [table.lines[a:b] for a, b in sentences]
    word_lines = lines if table.unit == "line" else None
    return replace(table, columns=columns, lines=[of_words[0] for of_words in lines], word_lines=word_lines)


def read_delimited(path: Path, source: FilesConfig, columns: Columns) -> Rows:
    """Yield the rows of a CSV or TSV file.

    With a header every row has as many fields as it; without one, fields after the named ones are allowed. Where the
    source has a mark, only rows that begin with it.
    """
    delimiter = source.delimiter or ("," if source.format == "csv" else "\t")
    records = records_of(path, source.encoding, delimiter, _quotes(source))
    header, width = None, None
    if source.header:
        line, header = next(records, (1, None))
        if header is None:
            raise UserError(f"{path}:1: is empty; expected a header line that names the columns")
        width = len(header)
        positions = {ours: find_position(name, header, f"{path}:{line}", ours) for ours, name in columns.items()}
    else:
        positions = {ours: find_position(name, None, f"{path}:1", ours) for ours, name in columns.items()}
    least = max(positions.values()) + 1
    marks = list(source.marks.values()) if source.split_column is None else []
    for line, fields in records:
        if marks and fields[0] not in marks:
            continue
        if len(fields) != width if source.header else len(fields) < least:
            raise UserError(f"{path}:{line}: {_ragged(fields, width, least, positions, source)}")
        yield line, {ours: fields[position] for ours, position in positions.items()}


def _quotes(source: FilesConfig) -> str:
    return source.quoting or ("double" if source.format == "csv" else "none")


def _ragged(fields: list[str], width: int | None, least: int, positions: dict, source: FilesConfig) -> str:
    """Say what is wrong with a row of another width than expected, and the first of our columns that it lacks."""
    if len(fields) <= 1 and not "".join(fields):
        return (
            "the line is blank; delete it, or name the file .conll where blank lines part sentences of one word a line"
        )
    lacking = [ours for ours, position in positions.items() if position >= len(fields) and not ours.isdigit()]
    column = f"column '{min(lacking, key=positions.__getitem__)}': " if lacking else ""
    expected = f"{width}, as in the header" if width is not None else f"at least {least}"
    hint = f"check the separator inside a text and quoting: {_quotes(source)}"
    return f"{column}{len(fields)} field{'s' * (len(fields) != 1)}, expected {expected}; {hint}"


def records_of(path: Path, encoding: str, delimiter: str, quoting: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line, fields) of the records of a CSV or TSV file, by a value of `quoting`.

    Fields in quotes may span lines; `double` is RFC 4180. With `none` quotes are ordinary characters.
    """
    if quoting == "none":
        yield from ((line, text.split(delimiter)) for line, text in read_lines(path, encoding))
        return
    csv.field_size_limit(LONGEST_FIELD)
    taken: list[str] = []

    def lines():
        for _, text in read_lines(path, encoding):
            taken.append(text + "\n")
            yield taken[-1]

    records, first = csv.reader(lines(), delimiter=delimiter, strict=True, **QUOTES[quoting]), 1
    while True:
        taken.clear()
        try:
            fields = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            double = quoting == "double"
            said = _broken_record(error, "".join(taken), delimiter, first) if double else f"{error}; check the quotes"
            raise UserError(f"{path}:{first}: {said}") from error
        yield first, fields
        first = records.line_num + 1


def _broken_record(error: csv.Error, record: str, delimiter: str, first: int) -> str:
    """Say which field of a record has the quote that goes wrong, and in which line it does."""
    if "new-line" in str(error):
        return "a carriage return is inside a field; put the field in quotes, or end lines with LF or CRLF"
    sound = re.compile(f'(?:"(?:[^"]|"")*"|(?!")[^{re.escape(delimiter)}\n]*)(?:{re.escape(delimiter)}|\n)')
    position, column, advice = 0, 1, "write a quote inside a field twice, or state quoting: none"
    while match := sound.match(record, position):
        position, column = match.end(), column + 1
    closed = re.compile('"(?:[^"]|"")*"').match(record, position)
    if closed is None:
        return f"field {column}: a quote opens and never closes; {advice}"
    line = first + record.count("\n", 0, closed.end())
    where = f" in line {line}" if line != first else ""
    return f"field {column}: text follows a closing quote{where}; {advice}"


def read_label_text(path: Path, source: FilesConfig, columns: Columns) -> Rows:
    """Yield the rows of a file with lines `<label> <text>`, split at the first blank; they are its two columns."""
    positions = {ours: find_position(name, LABEL_TEXT, str(path), ours) for ours, name in columns.items()}
    for line, content in read_lines(path, source.encoding):
        fields = re.split("[ \t]", content, maxsplit=1)
        if len(fields) < 2:
            raise UserError(f"{path}:{line}: expected a label, a blank and a text; this is {content!r:.40}")
        yield line, {ours: fields[position] for ours, position in positions.items()}


def read_json(path: Path, source: FilesConfig, columns: Columns) -> Rows:
    """Yield (row number from 1, values) of one JSON document, see `json_records`."""
    for row, record in enumerate(json_records(path, source.encoding), 1):
        yield row, _values(record, columns, f"{path}: row {row}")


def _values(record: dict, columns: Columns, place: str) -> dict:
    """Return the wanted values of an object; one that it lacks is a UserError."""
    for name in columns.values():
        if name not in record:
            raise UserError(f"{place}: column '{name}': is missing{suggestion(name, record)}")
    return {ours: record[name] for ours, name in columns.items()}


def json_records(path: Path, encoding: str) -> list[dict]:
    """Return the rows of a list of objects, or of an object of columns, as pandas writes them (`to_json`)."""
    content = read_whole_json(path, encoding)
    if isinstance(content, dict) and content:
        columns = [list(values.values()) if isinstance(values, dict) else values for values in content.values()]
        if all(isinstance(values, list) for values in columns) and len(set(map(len, columns))) == 1:
            return [dict(zip(content, row, strict=True)) for row in zip(*columns, strict=True)]
    if not isinstance(content, list) or not all(isinstance(record, dict) for record in content):
        raise UserError(f'{path}: expected a list of objects, as [{{"text": ...}}], or of columns of one length')
    return content


def read_jsonl(path: Path, source: FilesConfig, columns: Columns) -> Rows:
    """Yield (line, values) of a file with one JSON object a line."""
    for line, record in json_lines(path, source.encoding):
        yield line, _values(record, columns, f"{path}:{line}")


def json_lines(path: Path, encoding: str) -> Iterator[tuple[int, dict]]:
    """Yield the objects of a file with one a line; blank lines are passed over."""
    first = True
    for line, text in read_lines(path, encoding):
        if not text.strip():
            continue
        if first and text.lstrip().startswith("["):
            raise UserError(f"{path}: is one JSON list; state format: json")
        first, record = False, parsed_json(text, str(path), line)
        if not isinstance(record, dict):
            raise UserError(f'{path}:{line}: expected a JSON object, as {{"text": ...}}; this is another value')
        yield line, record


def read_parquet(path: Path, source: FilesConfig, columns: Columns) -> Rows:
    """Yield (row number from 1, values) of a Parquet file."""
    import pyarrow

    try:
        yield from _rows_of_parquet(path, columns)
    except (pyarrow.ArrowException, EOFError, OSError, ValueError) as error:
        raise UserError(f"{path}: not a Parquet file, or a damaged one ({' '.join(str(error).split())})") from error


def _rows_of_parquet(path: Path, columns: Columns) -> Rows:
    import pyarrow
    from pyarrow import parquet

    with open_bytes(path) as file:
        content = parquet.ParquetFile(pyarrow.BufferReader(file.read()))
    names = content.schema_arrow.names
    sources = {ours: names[find_position(name, names, str(path), ours)] for ours, name in columns.items()}
    row = 0
    for batch in content.iter_batches(columns=sorted(set(sources.values()))):
        values = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        for i in range(batch.num_rows):
            row += 1
            yield row, {ours: values[name][i] for ours, name in sources.items()}
