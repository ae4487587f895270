"""What a column's values and its name say of it: a text, labels, scores, spans, or none of these."""

import re
from collections import Counter

from thaw.core.errors import UserError
from thaw.core.phrases import plural
from thaw.data.checks import split_labels
from thaw.data.file_profile import SPLITS, Name, is_number
from thaw.data.spans import bounds_of

TEXTS = {"text", "sentence", "review", "content", "body", "question", "comment", "tweet", "document", "string"}
LABELS = {"label", "labels", "class", "category", "target", "sentiment", "topic", "intent", "judgment", "stars", "gold"}
LABELS |= {"categories", "topics", "genres", "tags", "tag", "intents", "emotions", "classes", "ner", "pos", "upos"}
SCORES = {"score", "similarity", "relatedness", "rating", "value"}
WORDS = {"word", "words", "token", "tokens", "form"}
SPLIT = {"split", "splits", "set", "fold", "partition", "subset"}
IDS = {"id", "idx", "index", "row", "uid", "guid", "unnamed"}
PAIRS = [("premise", "hypothesis"), ("question", "answer"), ("question", "sentence"), ("query", "document")]
TWINS = ({"1", "2"}, {"a", "b"}, {"0", "1"})
SEPARATORS = (";", "|", ",")  # between the labels of a row
FEW_SCORES = 20  # whole numbers that take more values than this are scores, unless their column is called a label
CALLED = {"label": "labels", "label_set": "sets of labels", "score": "scores"}
FEW_LABELS = 60  # with more, a column is taken for labels only where no other can be
WRITTEN_LIST = re.compile(r"""\s*\[\s*((['"]).*\2|\d+(\s*,\s*\d+)*)?\s*\]\s*""", re.DOTALL)
WRITTEN_NUMBERS = {  # numbers that `float` does not read: what they look like, and how to write them
    r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?": "commas between thousands; write 1036",
    r"[+-]?\d+,\d+": "decimal commas; write points, as 3.75",
    r"[+-]?\d+([.,]\d+)?\s*%": "per cent signs; write the number alone, as 12",
}
# Scripts that put no blanks between words: Chinese, Japanese, Thai, Lao, Burmese, Khmer.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def stated(values: list) -> list:
    return [value for value in values if value not in (None, "")]


def is_whole(value) -> bool:
    return float(value).is_integer()


def is_indicator(values: list) -> bool:
    """Return whether values are 0 and 1, which say what has a label."""
    return {str(value) for value in values} == {"0", "1"}


def are_texts(values: list, name: Name) -> bool:
    """Return whether values are texts: of several words, or of a script without blanks; most of them differ."""
    strings = all(value is None or isinstance(value, str) for value in values)
    if not strings or all(map(is_number, values)) or _are_written_lists(values):
        return False
    words = sum(len((value or "").split()) for value in values) / len(values)
    unspaced = sum(len(UNSPACED.findall(value or "")) >= 3 for value in values) > len(values) / 2
    differ = len(set(values)) >= len(values) / 4
    return (words >= 2 or unspaced) and differ or words > 1 and has_word(name, TEXTS)


def refuse_written_lists(name: Name, values: list, path: str) -> None:
    """Raise UserError for lists as Python or JSON write them, which are no lists in CSV."""
    if _are_written_lists(values):
        advice = "write the file as JSONL, or several labels without brackets and quotes, as food;room"
        raise UserError(f"{path}: column '{name}' holds lists written as text, as {max(values, key=len):.60}; {advice}")


def _are_written_lists(values: list) -> bool:
    lists = all(isinstance(value, str) and WRITTEN_LIST.fullmatch(value) for value in values)
    return lists and any(value.strip("[] \t\n") for value in values)


def _written_numbers(values: list) -> str | None:
    """Return how numbers are written that are none for `float`; None where they are, or are none at all."""
    texts = [str(value).strip() for value in values]
    for form, said in WRITTEN_NUMBERS.items():
        odd = [text for text in texts if re.fullmatch(form, text)]
        if odd and all(is_number(text) or re.fullmatch(form, text) for text in texts):
            return said
    return None


def kind_of(values: list, name: Name) -> str | None:
    """Return label, label_set, score or spans for a column's values, or None where they are none of these.

    Values that recur are labels, of whole numbers where they are few or the column is called so. Empty ones are passed
    over, see `_of_targets`.
    """
    values = stated(values)
    if values and all(isinstance(value, list) and all(map(bounds_of, value)) for value in values):
        return "spans"
    if values and all(isinstance(value, list) and all(isinstance(one, str | int) for one in value) for value in values):
        return "label_set" if 2 <= len({str(label) for row in values for label in row}) < len(values) else None
    distinct = {str(value) for value in values}
    if any(isinstance(value, (list, dict)) for value in values) or len(distinct) < 2:
        return None
    recurs = len(distinct) <= max(2, len(values) // 2)
    if not all(map(is_number, values)):
        if not is_named(name, LABELS) and _written_numbers(values):
            return None
        return "label" if recurs or separator_of(values) else None
    whole = all(map(is_whole, values))
    if whole and len(distinct) == len(values) and not has_word(name, SCORES):  # a running number
        return None
    if not whole:
        return "score"
    few = 4 if has_word(name, SCORES) else FEW_SCORES
    return "label" if len(distinct) <= few or recurs and has_word(name, LABELS) else "score"


def why_unfit(values: list, drop_empty: bool = False) -> str:
    """Return why a column can not be predicted; empty values are no reason where they are dropped."""
    if (empty := sum(value in (None, "") for value in values)) and not drop_empty:
        return f"is empty in {empty} of {len(values)} rows; give them a value, or leave them out by --drop-empty"
    distinct = {str(label) for value in values for label in (value if isinstance(value, list) else [value])}
    if len(distinct) == 1:
        return f"has only one label, {distinct.pop()!r:.60}; add rows with another one"
    if written := _written_numbers(values):
        return f"has {written}"
    others = [row for row, value in enumerate(values) if not is_number(value)]
    if 0 < len(others) <= len(values) / 5:
        return f"has numbers but for {plural(len(others), 'row')}, as row {others[0] + 1} with {values[others[0]]!r}"
    if any(isinstance(value, list) and value and isinstance(value[0], int | list) for value in values):
        return "has lists that are neither labels nor [first character, end, label] of spans"
    if len({str(value) for value in values}) == len(values):
        return "has another value in each row, so there is nothing to learn from"
    return "has neither labels that recur, nor scores in all rows, nor lists of labels"


def separator_of(values: list) -> str | None:
    """Return what separates the labels of each row; None where it has one label. Cut at it, all labels recur."""
    texts = list(map(str, values))
    for separator in SEPARATORS:
        rows = split_labels(texts, separator)
        labels = Counter(label for row in rows for label in row)
        if any(len(row) > 1 for row in rows) and min(labels.values()) > 1 and len(labels) < len(set(texts)):
            return separator
    return None


def has_word(name: Name, words: set[str]) -> bool:
    """Return whether one of some words is part of a name, as in question_text."""
    return bool(set(re.split("[^a-z]+", str(name).lower())) & words)


def is_named(name: Name, words: set[str]) -> bool:
    return str(name).lower() in words


def one_of(names: list[Name], known: set[str]) -> list[Name]:
    """Return the one column that is left, by its exact name or a word of it where several are; else all."""
    for by_name in ([name for name in names if fits(name, known)] for fits in (is_named, has_word)):
        if len(by_name) == 1:
            return by_name
    return names


def are_pair(one: Name, other: Name) -> bool:
    """Return whether two names are those of a pair: sentence1 and sentence2, text_a and text_b, premise, hypothesis."""
    a, b = str(one).lower(), str(other).lower()
    differing = [{x, y} for x, y in zip(a, b, strict=False) if x != y]
    twins = len(a) == len(b) and len(differing) == 1 and differing[0] in TWINS and a < b
    return (a, b) in PAIRS or twins and not a.isdigit()


def marked_splits(name: Name, values: list) -> dict[str, str]:
    """Return the value of each split in a column that names the split of each row; none in another column."""
    written = sorted({str(value) for value in stated(values)})
    found = {ours: value for ours, theirs in SPLITS.items() for value in written if value.lower() in theirs}
    return found if is_named(name, SPLIT) and "train" in found and len(found) > 1 else {}


def evidence_table(columns: dict[Name, list]) -> str:
    """Return the columns in print: type, distinct values, what each could be, how sure that is, and why."""
    lines = [("column", "type", "distinct", "could be", "how sure", "why")]
    for name, values in columns.items():
        types = "/".join(sorted({type(value).__name__ for value in stated(values)})).replace("str", "text")
        of_numbers = bool(stated(values)) and all(map(is_number, stated(values)))
        count = str(len(set(map(str, stated(values)))))
        lines.append((str(name), "number" if of_numbers else types, count, *_could_be(name, values)))
    a, b, c, d, e = (max(len(line[n]) for line in lines) for n in range(5))
    return "\n".join(
        f"  {line[0]:<{a}}  {line[1]:<{b}}  {line[2]:>{c}}  {line[3]:<{d}}  {line[4]:<{e}}  {line[5]}" for line in lines
    )


def _could_be(name: Name, values: list) -> tuple[str, str, str]:
    """Return what a column could be, how sure that is (sure, guess or unlikely), and why."""
    full, kind = stated(values), kind_of(values, name)
    distinct = len({str(value) for value in full})
    called = f"; called {name}"
    if marked_splits(name, values):
        return "split", "sure", f"names splits{called}"
    if kind == "spans":
        return "spans", "sure", "[first character, end, label]"
    if full and all(isinstance(value, list) for value in full):
        entries = f"{sum(map(len, full)) / len(full):.1f} entries a row"
        if kind is None or is_named(name, WORDS):
            return ("words", "sure", entries + called) if is_named(name, WORDS) else ("words", "guess", entries)
        return "tags or sets of labels", "guess", entries
    if are_texts(values, name) and not (kind and is_named(name, LABELS)):
        words = f"{sum(len(str(value).split()) for value in full) / len(full):.1f} words a row"
        return ("text", "sure", words + called) if has_word(name, TEXTS) else ("text", "guess", words)
    if kind is None:
        is_score = has_word(name, SCORES) or _written_numbers(full)
        return "scores" if is_score else "labels", "unlikely", why_unfit(values, drop_empty=True)
    empty = f"; empty in {plural(len(values) - len(full), 'row')}" if len(full) < len(values) else ""
    if name == "" or has_word(name, IDS):
        return CALLED[kind], "unlikely", f"called {name or 'nothing'}"
    if kind == "label" and (separator := separator_of(full)):
        return CALLED["label_set"], "guess", f"{separator!r} stands between values that recur{empty}"
    numbers = all(map(is_number, full))
    fractions = numbers and not all(map(is_whole, full))
    why = "numbers with fractions" if fractions else f"{distinct} " + ("numbers" if kind == "score" else "values recur")
    by_name = has_word(name, SCORES if kind == "score" else LABELS)
    sure = by_name and (fractions if kind == "score" else not numbers or distinct <= FEW_SCORES)
    return CALLED[kind], "sure" if sure else "guess", why + (called if by_name else "") + empty
