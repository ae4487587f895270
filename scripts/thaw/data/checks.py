"""From raw values to the canonical columns: one sentence with its location for whatever is wrong."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from thaw.core.errors import UserError, suggestion
from thaw.core.phrases import plural, yaml_value
from thaw.data import edges, squad
from thaw.data.rows_table import RowsTable
from thaw.data.spans import iob1_to_bio, of_offsets, scheme_of
from thaw.schema.corpora import CorpusConfig, SourceConfig

SPAN = ("B-", "I-")
NAMELESS = ("score", "answers")  # kinds of targets without labels


class Cleaned(NamedTuple):
    """A split after the checks: canonical columns, each row's number (from 0) in its source.

    `left_out` counts the rows without a label, or with one that the entry's `only` does not name.
    """

    columns: dict[str, list]
    rows: list[int]
    left_out: int


def clean(table: RowsTable, corpus: CorpusConfig, source: SourceConfig) -> Cleaned:
    """Check one split and return it in canonical form.

    Texts become strings, words and tags lists of strings (spans in BIO), labels strings, sets of labels lists of
    strings, scores floats, answers lists of where they begin in the second text and what they are.
    Raises UserError for the first value that cannot be so.
    """
    columns: dict[str, list] = {}
    if source.offsets:
        table = _cut_into_words(table, corpus)
    for name in corpus.texts:
        columns[name] = [_text(value, table, i, name) for i, value in enumerate(table.columns[name])]
    if words := corpus.words:
        columns[words] = [_words(value, table, i, words) for i, value in enumerate(table.columns[words])]
    full = _not_empty(columns, table, corpus)
    kept = {i for i in full if all(table.columns[name][i] not in (None, "") for name in corpus.only)}
    for name, kind in corpus.targets.items():
        values = split_labels(table.columns[name], source.separators.get(name))
        columns[name] = [VALUES[kind](values[i], table, i, name) if i in kept else None for i in range(len(table))]
        if kind not in NAMELESS:
            columns[name] = _named(columns[name], source.until.get(name), source.rename.get(name, {}))
        if kind == "edges" and corpus.words:
            for i in sorted(kept):
                edges.check_within(columns[name][i], columns[corpus.words][i], table, i, name)
        if kind == "answers":
            for i in sorted(kept):
                squad.check_within(columns[name][i], columns[corpus.texts[1]][i], table, i, name)
        if kind == "tags":
            _check_tags(columns[name], columns.get(words or ""), table, name, source.scheme, sorted(kept))
    for name in (column for column in table.columns if column not in columns):
        columns[name] = [_kept(value) for value in table.columns[name]]
    rows = [i for i in sorted(kept) if all(columns[name][i] in only for name, only in corpus.only.items())]
    return Cleaned({name: [values[i] for i in rows] for name, values in columns.items()}, rows, len(full) - len(rows))


def _cut_into_words(table: RowsTable, corpus: CorpusConfig) -> RowsTable:
    """Return a table with words in place of texts, and a tag for each in place of spans by their characters."""
    (target,) = corpus.targets
    assert corpus.words
    words, tags = [], []
    for row, (text, spans) in enumerate(zip(table.columns[corpus.words], table.columns[target], strict=True)):
        try:
            of_row = of_offsets(_text(text, table, row, corpus.words), spans if isinstance(spans, list) else [spans])
        except ValueError as error:
            raise table.mistake(row, target, str(error)) from error
        words.append(of_row[0])
        tags.append(of_row[1])
    return replace(table, columns={**table.columns, corpus.words: words, target: tags})


def _kept(value) -> str | list[str] | None:
    if isinstance(value, list):
        return [str(item) for item in value]
    return None if value is None else str(value)


def _text(value, table: RowsTable, row: int, column: str) -> str:
    if value is not None and not isinstance(value, str):
        raise table.mistake(row, column, f"expected a text, this is {type(value).__name__} {value!r:.40}")
    return value or ""


def _words(value, table: RowsTable, row: int, column: str) -> list[str]:
    if isinstance(value, str):
        return value.split()
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise table.mistake(row, column, f"expected a list of words, this is {value!r:.40}")
    for i, word in enumerate(value):
        if not word.strip():
            raise table.mistake(row, column, "the word is empty; take it out, with its tag", word=i)
    return value


def _label(value, table: RowsTable, row: int, column: str) -> str:
    """Return a label as text: whole numbers as digits, booleans as true and false, of {label: 1 or 0} that with 1."""
    if isinstance(value, dict):
        labels = _label_set(value, table, row, column)
        if len(labels) != 1:
            raise table.mistake(row, column, f"{len(labels)} of {', '.join(value)} are 1; expected one of them")
        value = labels[0]
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        raise table.mistake(
            row, column, "has no label (the Hub writes -1 where labels are withheld); use a labelled split"
        )
    if not isinstance(value, (str, int)):
        several = "; where a row has several, the target is of kind label_set" if isinstance(value, list) else ""
        raise table.mistake(row, column, f"a label is text or a whole number, this is {value!r:.40}{several}")
    if not str(value):
        more = table.columns[column].count("") - 1
        also = f", as in {plural(more, 'further row')}" if more > 0 else ""
        raise table.mistake(row, column, f"the label is empty{also}; every row needs one")
    return str(value)


def split_labels(values: list, separator: str | None) -> list:
    """Return the values of a column, text cut into the labels of a set where there is a separator."""
    if separator is None:
        return values
    cut = (value.split(separator) if isinstance(value, str) else value for value in values)
    return [[label.strip() for label in one if label.strip()] if isinstance(one, list) else one for one in cut]


def _label_set(value, table: RowsTable, row: int, column: str) -> list[str]:
    if isinstance(value, dict):
        return [name for name, has in value.items() if _indicated(has, name, table, row)]
    if isinstance(value, str):
        message = (
            f"{value!r:.40} is a text and no list of labels; state separators: {{{column}: ';'}}, as it is written"
        )
        raise table.mistake(row, column, message)
    if not isinstance(value, list):
        raise table.mistake(row, column, f"expected a list of labels, [] for none; this is {value!r:.40}")
    return list(dict.fromkeys(_label(label, table, row, column) for label in value))


def _indicated(value, name: str, table: RowsTable, row: int) -> bool:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if number not in (0, 1):
        raise table.mistake(row, name, f"expected 1 or 0, whether the row has this label; this is {value!r:.40}")
    return number == 1


def _score(value, table: RowsTable, row: int, column: str) -> float:
    """Return a finite float; digits grouped with _ and decimal commas are no numbers."""
    try:
        number = float(value) if "_" not in str(value) and not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise table.mistake(row, column, f"{value!r:.40} is not a finite number; write it as 3.5")
    return number


def _tags(value, table: RowsTable, row: int, column: str) -> list[str]:
    """Return a list of tags; a text is one, split at white space, and numbers become digits."""
    tags = value.split() if isinstance(value, str) else value
    tags = [str(tag) if type(tag) is int else tag for tag in tags] if isinstance(tags, list) else tags
    if not isinstance(tags, list) or not all(isinstance(tag, str) and tag for tag in tags):
        raise table.mistake(row, column, f"expected a list of tags, this is {value!r:.40}")
    return tags


# By kind of target: (raw value, its table, row, column) -> the value in canonical form, or UserError.
VALUES: dict[str, Callable] = {
    "label": _label,
    "label_set": _label_set,
    "score": _score,
    "tags": _tags,
    "edges": edges.checked,
    "answers": squad.checked,
}


def _not_empty(texts: dict[str, list], table: RowsTable, corpus: CorpusConfig) -> set[int]:
    kept = set(range(len(table)))
    for i in range(len(table)):
        blank = next((name for name, values in texts.items() if is_empty(values[i])), None)
        if blank is None:
            continue
        if corpus.empty == "error":
            raise table.mistake(i, blank, "the text is empty; fill it in, or state empty: drop or empty: keep")
        if corpus.empty == "drop":
            kept.discard(i)
    return kept


def is_empty(text: str | list[str]) -> bool:
    """Return whether a text is only white space, or a list of words has none."""
    return not (text.strip() if isinstance(text, str) else text)


def _named(values: list, mark: str | None, names: dict[str, str]) -> list:
    """Rename labels, or the tags in lists: the part before the mark, by the entry's names. Dropped rows stay None."""
    if not (mark or names):
        return values

    def ours(label: str) -> str:
        label = label.partition(mark)[0] if mark else label
        return names.get(label, label)

    def of_row(value):
        if value and isinstance(value, list) and isinstance(value[0], dict):
            return edges.renamed(value, ours)
        return [ours(tag) for tag in value] if isinstance(value, list) else value and ours(value)

    return [of_row(value) for value in values]


def _check_tags(tags: list, words: list | None, table: RowsTable, column: str, scheme: str, kept: list[int]) -> None:
    """Check lengths, and span tags by their scheme; IOB1 is rewritten as BIO in place.

    A column holds spans when any of its tags begins with B- or I-; other tags (parts of speech) are free.
    """
    for i in kept:
        if words is not None and len(tags[i]) != len(words[i]):
            raise table.mistake(i, column, f"{len(tags[i])} tags for {len(words[i])} words; expected one tag a word")
    if not any(tag.startswith(SPAN) for i in kept for tag in tags[i]):
        return
    for i in kept:
        for position, tag in enumerate(tags[i]):
            if tag != "O" and (not tag.startswith(SPAN) or len(tag) == 2):
                known, named = scheme_of({tag for row in kept for tag in tags[row]})
                written = f"is of {known}; state rename: {yaml_value({column: named})}"
                message = written if tag in named else "is no span tag; O, B-TYPE and I-TYPE are"
                raise table.mistake(i, column, f"'{tag}' {message}", word=position)
        tags[i] = iob1_to_bio(tags[i]) if scheme == "iob1" else _same_bio(tags[i], table, i, column)


def _same_bio(tags: list[str], table: RowsTable, row: int, column: str) -> list[str]:
    for position, (before, tag) in enumerate(zip(["O", *tags], tags, strict=False)):
        if tag.startswith("I-") and (before == "O" or before[2:] != tag[2:]):
            message = f"{tag} continues nothing (the tag before it is {before}); BIO begins a span with B-{tag[2:]}"
            raise table.mistake(row, column, f"{message}; state scheme: iob1 if the file is in IOB1", word=position)
    return tags


def _in_order(labels: set[str]) -> list[str]:
    """Return labels sorted as text; whole numbers that count from 0 or 1 as numbers.

    Others stay in the order in which SentEval's depths (5 to 12) were prepared.
    """
    counted = labels & {"0", "1"} and all(re.fullmatch(r"-?[0-9]+", label) for label in labels)
    return sorted(labels, key=lambda label: (int(label) if counted else 0, label))


def label_names(splits: dict[str, Cleaned], tables: dict[str, RowsTable], corpus: CorpusConfig) -> dict[str, list[str]]:
    """Return the label names of each target that has any, in order: those of the entry, else those of train, sorted.

    Raises UserError for a value that is not among them, with its location.
    """
    names_by_column = {}
    for column, kind in corpus.targets.items():
        if kind in NAMELESS:
            continue
        labels_of_train = {value for item in splits["train"].columns[column] for value in edges.labels_of(item)}
        for label in corpus.only.get(column, []):
            if label not in labels_of_train:
                raise UserError(f"{tables['train'].name}: column '{column}': no row has '{label}', which `only` names")
        listed = corpus.labels.get(column)
        names = listed or _in_order(labels_of_train)
        for split, cleaned in splits.items():
            _check_known(cleaned, tables[split], column, names, listed is not None, kind)
        if len(names) < 2:
            has = f"only {names[0]}" if names else "no label"
            raise UserError(f"{tables['train'].name}: column '{column}': train has {has}; expected at least two")
        names_by_column[column] = names
    return names_by_column


def _check_known(cleaned: Cleaned, table: RowsTable, column: str, names: list[str], listed: bool, kind: str) -> None:
    """Raise UserError for the first label that is not among the names."""
    known = set(names)
    for row, item in zip(cleaned.rows, cleaned.columns[column], strict=True):
        for position, value in enumerate(edges.labels_of(item)):
            if value not in known:
                why = "is not among the entry's labels" if listed else "is not in train; state labels if that is meant"
                word = position if kind == "tags" else None
                raise table.mistake(row, column, f"label '{value}' {why}{suggestion(value, names)}", word=word)
