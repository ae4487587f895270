"""Readers of files with one example a row: CSV, TSV, JSONL, Parquet, lines of a label and a text.

Sentences in columns are read by `thaw.data.conll`, questions in SQuAD's format by `thaw.data.squad`.

Every reader yields (first line of the row, {our column: raw value}); `read` collects them in a Table.
"""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

from thaw.core.errors import UserError, suggestion
from thaw.data.rows_table import RowsTable, columns_of, find_position, join, open_bytes, parts, read_lines
from thaw.data.squad import read_squad
from thaw.data.surface_tasks import read_surface
from thaw.schema.corpora import FilesConfig

Columns = dict[str, str | int]
Rows = Iterator[tuple[int, dict]]
LONGEST_FIELD = 2**31 - 1
LABEL_TEXT = ["label", "text"]


def read(path: Path, source: FilesConfig, wanted: list[str]) -> RowsTable:
    """Read one file of a corpus: the wanted columns, by the entry's `columns`, under our names.

    Raises UserError with file and line for whatever the file does not hold as the entry says it should.
    """
    asked = columns_of(source, wanted)
    columns = parts(asked)
    if source.format in ("conll", "conllu"):
        from thaw.data.conll import read_sentences

        return read_sentences(path, source, columns)
    reader = {
        "csv": read_delimited,
        "tsv": read_delimited,
        "jsonl": read_jsonl,
        "parquet": read_parquet,
        "label_text": read_label_text,
        "conllu_sentences": read_surface,
        "squad": read_squad,
    }
    unit = {"parquet": "row", "squad": "place"}.get(source.format, "line")
    table = RowsTable(str(path), {ours: [] for ours in columns}, unit=unit, called=columns)
    for line, values in reader[source.format](path, source, columns):
        table.lines.append(line)
        for ours in columns:
            table.columns[ours].append(values[ours])
    if not table.lines:
        raise UserError(f"{path}: holds no rows")
    table.columns = join(table.columns, asked, source.indicators)
    return table


def read_delimited(path: Path, source: FilesConfig, columns: Columns) -> Rows:
    """Yield the rows of a CSV or TSV file.

    With a header every row has as many fields as it; without one, fields after the named ones are allowed. Where the
    source has a mark, only rows that begin with it.
    """
    delimiter = source.delimiter or ("," if source.format == "csv" else "\t")
    split = split_quoted if _quotes(source) == "double" else split_plain
    records = split(path, source.encoding, delimiter)
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
    marks = list(source.marks.values())
    for line, fields in records:
        if marks and fields[0] not in marks:
            continue
        if len(fields) != width if source.header else len(fields) < least:
            raise UserError(f"{path}:{line}: {_ragged(fields, width, least, positions, source)}")
        yield line, {ours: fields[position] for ours, position in positions.items()}


def _quotes(source: FilesConfig) -> str:
    """Return how quotation marks are read: none, or double as RFC 4180 has it for csv."""
    return source.quoting or ("double" if source.format == "csv" else "none")


def _ragged(fields: list[str], width: int | None, least: int, positions: dict, source: FilesConfig) -> str:
    """Say what is wrong with a row of another width than expected, and the first of our columns that it lacks."""
    if len(fields) <= 1 and not "".join(fields):
        return "the line is blank; delete it"
    lacking = [ours for ours, position in positions.items() if position >= len(fields) and not ours.isdigit()]
    column = f"column '{min(lacking, key=positions.get)}': " if lacking else ""
    expected = f"{width}, as in the header" if width is not None else f"at least {least}"
    hint = f"check the separator inside a text and quoting: {_quotes(source)}"
    return f"{column}{len(fields)} field{'s' * (len(fields) != 1)}, expected {expected}; {hint}"


def split_plain(path: Path, encoding: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Split every line at the delimiter; quotes are ordinary characters."""
    for line, text in read_lines(path, encoding):
        yield line, text.split(delimiter)


def split_quoted(path: Path, encoding: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Split records with fields in double quotes (RFC 4180), which may span lines; yield first lines."""
    csv.field_size_limit(LONGEST_FIELD)
    taken: list[str] = []

    def lines():
        for _, text in read_lines(path, encoding):
            taken.append(text + "\n")
            yield taken[-1]

    records, first = csv.reader(lines(), delimiter=delimiter, strict=True), 1
    while True:
        taken.clear()
        try:
            fields = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(f"{path}:{first}: {_broken_record(error, ''.join(taken), delimiter, first)}") from error
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


def read_jsonl(path: Path, source: FilesConfig, columns: Columns) -> Rows:
    """Yield the rows of a file with one JSON object per line; blank lines are passed over."""
    first = True
    for line, text in read_lines(path, source.encoding):
        if not text.strip():
            continue
        if first and text.lstrip().startswith("["):
            written = f'pandas.read_json("{path.name}").to_json("{path.stem}.jsonl", orient="records", lines=True)'
            raise UserError(f"{path}: is one JSON list; expected an object in each line, as {written} writes them")
        first = False
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            raise UserError(f"{path}:{line}:{error.colno}: not valid JSON ({error.msg})") from error
        except RecursionError as error:
            raise UserError(f"{path}:{line}: not valid JSON (its brackets are nested too deeply)") from error
        if not isinstance(record, dict):
            raise UserError(f'{path}:{line}: expected a JSON object, as {{"text": ...}}; this is another value')
        for name in columns.values():
            if name not in record:
                raise UserError(f"{path}:{line}: column '{name}': is missing{suggestion(name, record)}")
        yield line, {ours: record[name] for ours, name in columns.items()}


def read_parquet(path: Path, source: FilesConfig, columns: Columns) -> Rows:
    """Yield (row number from 1, values) of a Parquet file."""
    import pyarrow

    try:
        yield from _rows_of_parquet(path, columns)
    except (pyarrow.ArrowException, EOFError, OSError, ValueError) as error:
        raise UserError(f"{path}: not a Parquet file, or a damaged one ({' '.join(str(error).split())})") from error


def _rows_of_parquet(path: Path, columns: Columns) -> Rows:
    """Yield rows as `read_parquet` does; what pyarrow finds wrong is its own error."""
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
