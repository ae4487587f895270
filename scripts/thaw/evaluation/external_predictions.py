"""Predictions that were made elsewhere: a file matched to a task's rows, as those of a run are.

The file has the columns split, row and prediction, as a run's predictions.parquet, where `row` is that of the split's
Parquet file; or prediction alone, one for each row of the task's only test split, in its order. A list of tags is text
with blanks between, a set of labels text with `;` between; or either is a list. An answer is text, empty for none.
"""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from thaw.core.errors import UserError, suggestion, wrap_corruption
from thaw.data.checks import VALUES, split_labels
from thaw.data.corpus import Corpus
from thaw.data.readers import read, split_quoted
from thaw.data.rows_table import RowsTable, read_lines
from thaw.declarations.task_types import TARGET_OF_TYPE
from thaw.evaluation.result_files import Predictions
from thaw.evaluation.target_kinds import target_of
from thaw.schema.corpora import FilesConfig

SEPARATOR = ";"  # between the labels of a set
PLACED = ["split", "row", "prediction"]


def read_predictions(path: Path, form: str, task: dict, corpus: Corpus) -> dict[str, Predictions]:
    """Return the predictions in a file, by split: the test splits, and validation and train where it has them.

    Args: format of the file, csv, tsv, jsonl or parquet; a whole task; its corpus. Raises UserError, with file, line
    and column, for a prediction that cannot be one, a row that is not there, is there twice or is missing, and a count
    that is not that of the split.
    """
    placed = {"split", "row"} & set(_columns(path, form))
    source = FilesConfig(format=form, quoting="double" if form in ("csv", "tsv") else None, splits={"test": str(path)})
    table = read(path, source, PLACED if placed else PLACED[2:])
    kind = TARGET_OF_TYPE[task["type"]]
    raw = split_labels(table.columns["prediction"], SEPARATOR if kind == "label_set" else None)
    check = {"answers": _answer, "tags": _tags}.get(kind, VALUES[kind])
    values = [check(value, table, i, "prediction") for i, value in enumerate(raw)]
    positions = _places(table, task, corpus) if placed else _in_order(table, task, corpus)
    predictions = {}
    for split, by_row in positions.items():
        rows = np.array(sorted(by_row), dtype=np.int64)
        encoded = [_encoded(values[by_row[row]], table, by_row[row], task, corpus, split, row) for row in rows]
        predictions[split] = Predictions(rows, target_of(task).array(encoded))
    return predictions


def _columns(path: Path, form: str) -> list[str]:
    """Return the names of a file's columns; none where it is empty, which the reader reports."""
    if form == "parquet":
        import pyarrow.parquet

        try:
            return pyarrow.parquet.read_schema(path).names
        except pyarrow.ArrowInvalid as error:
            raise UserError(f"{path}: not a Parquet file ({error})") from error
    if form == "jsonl":
        first = next((text for _, text in read_lines(path, "utf-8") if text.strip()), "{}")
        try:
            return list(json.loads(first))
        except (json.JSONDecodeError, TypeError):
            return []
    return next(split_quoted(path, "utf-8", "," if form == "csv" else "\t"), (1, []))[1]


def _places(table: RowsTable, task: dict, corpus: Corpus) -> dict[str, dict[int, int]]:
    """Return for each split {position of its row: position in the table}; every row of the split has one."""
    splits = ["train", task["validation"], *task["test"]]
    positions = {split: {int(row): i for i, row in enumerate(corpus.column(split, "row"))} for split in set(splits)}
    read_rows: dict[str, dict[int, int]] = defaultdict(dict)
    for i, (split, row) in enumerate(zip(table.columns["split"], table.columns["row"], strict=True)):
        if split not in positions:
            raise table.mistake(i, "split", f"'{split}' is no split of task {task['id']}{suggestion(split, positions)}")
        position = positions[split].get(int(row)) if str(row).isdecimal() else None
        if position is None:
            raise table.mistake(
                i,
                "row",
                f"{split} has no row {row!r:.40}; expected a number of column row in {corpus.folder / split}.parquet",
            )
        if position in read_rows[split]:
            first = table.location(read_rows[split][position])
            raise table.mistake(i, "row", f"row {row} of {split} is here a second time; the first is in {first}")
        read_rows[split][position] = i
    for split, by_row in read_rows.items():
        missing = [row for row, position in positions[split].items() if position not in by_row]
        if missing:
            counts = f"{len(by_row)} of {len(positions[split])} rows have one"
            raise UserError(
                f"{table.name}: column 'prediction': row {missing[0]} of {split} has no prediction; {counts}"
            )
    if not set(task["test"]) & set(read_rows):
        raise UserError(f"{table.name}: column 'split': no row is of a test split ({', '.join(task['test'])})")
    return read_rows


def _in_order(table: RowsTable, task: dict, corpus: Corpus) -> dict[str, dict[int, int]]:
    """Return the same as `_places` for a file without splits and rows: the task's only test split, row by row."""
    if len(task["test"]) > 1:
        splits = ", ".join(task["test"])
        raise UserError(f"{table.name}: task {task['id']} has several test splits ({splits}); give {', '.join(PLACED)}")
    (split,) = task["test"]
    rows = corpus.size(split)
    if len(table) != rows:
        raise UserError(
            f"{table.location(len(table) - 1)}: column 'prediction': the file ends with {len(table)} predictions; "
            f"{split} of task {task['id']} has {rows} rows; expected one for each"
        )
    return {split: {row: row for row in range(rows)}}


def _answer(value, table: RowsTable, row: int, column: str) -> str:
    """Return an answer to a question; None and an empty text are no answer."""
    if value is not None and not isinstance(value, str):
        raise table.mistake(row, column, f"expected an answer as text, empty for none; this is {value!r:.40}")
    return value or ""


def _tags(value, table: RowsTable, row: int, column: str) -> list[str | None]:
    """Return a list of tags; None is a word without one, as predictions.parquet has it."""
    if not isinstance(value, list):
        return VALUES["tags"](value, table, row, column)
    VALUES["tags"]([tag for tag in value if tag is not None], table, row, column)
    return value


def _encoded(value, table: RowsTable, i: int, task: dict, corpus: Corpus, split: str, row: int):
    """Return a prediction as metrics want it: a class index, float, answer, or list of tag indices or of 0 and 1."""
    labels = corpus.labels(task["target"])
    if not labels:
        return target_of(task).encoded(value, labels)
    for position, name in enumerate(value if isinstance(value, list) else [value]):
        if name is not None and name not in labels:
            word = position if corpus.words else None
            message = f"'{name}' is no label of {task['target']}{suggestion(name, labels)}"
            raise table.mistake(i, "prediction", message, word=word)
    if not corpus.words:
        return target_of(task).encoded(value, labels)
    words = len(corpus.column(split, task["target"]).iloc[row])
    if len(value) != words:
        raise table.mistake(i, "prediction", f"{len(value)} tags for {words} words; expected one tag a word")
    return target_of(task).encoded(value, labels)


def combined(
    files: list[Path], by: str, task: dict, corpus: Corpus, rows: dict[str, np.ndarray]
) -> dict[str, Predictions]:
    """Return the predictions of an ensemble for validation and test.

    Args: each member's predictions.parquet; by, "mean" (of probabilities, or of scores) or "majority" (of labels, or of
    each word's tags; of equally many the first member's that is among them). A whole task; its corpus; by split the
    rows that are scored.
    """
    import pandas

    frames = []
    for file in files:
        with wrap_corruption(file, f"{file.parent}/metrics.json"):
            frames.append(pandas.read_parquet(file))
    labels, predictions = corpus.labels(task["target"]), {}
    for split, asked in rows.items():
        expected = corpus.column(split, "row").to_numpy()[asked]
        parts = [frame[frame["split"] == split] for frame in frames]
        for file, part in zip(files, parts, strict=True):
            if not np.array_equal(part["row"].to_numpy(), expected):
                raise UserError(
                    f"{file} does not hold the {len(expected)} rows of {split}; delete its run and run again"
                )
        predictions[split] = Predictions(asked, *target_of(task).combined(parts, by, labels))
    return predictions
