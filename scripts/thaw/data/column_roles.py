"""Which column of a file is the text, the second text or the words, and which is to be predicted.

A column is taken where one alone is left, by its name or by its values; else the user is asked to name it.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from thaw.core.errors import UserError, suggestion
from thaw.core.phrases import listing, plural
from thaw.data.checks import split_labels
from thaw.data.file_profile import MOST_LABELS, FileProfile, Name, is_number
from thaw.data.squad import are_answers

TEXTS = {"text", "sentence", "review", "content", "body", "question", "comment", "tweet", "document", "string"}
LABELS = {"label", "labels", "class", "category", "target", "sentiment", "topic", "intent", "judgment", "stars", "gold"}
LABELS |= {"categories", "topics", "genres", "tags", "intents", "emotions", "classes", "ner", "pos", "upos"}
SCORES = {"score", "similarity", "relatedness", "rating", "value"}
IDS = {"id", "idx", "index", "row", "uid", "guid", "unnamed"}
PAIRS = [("premise", "hypothesis"), ("question", "answer"), ("question", "sentence"), ("query", "document")]
TWINS = ({"1", "2"}, {"a", "b"}, {"0", "1"})
SEPARATORS = (";", "|", ",")  # between the labels of a row
FEW_SCORES = 20  # whole numbers that take more values than this are scores, not labels
WRITTEN_LIST = re.compile(r"""\s*\[\s*((['"]).*\2|\d+(\s*,\s*\d+)*)?\s*\]\s*""", re.DOTALL)


@dataclass
class Roles:
    """What each column is for: `texts` or `words`, the columns to predict (several of 0 and 1 for a set), the kind."""

    texts: list[Name]
    words: Name | None
    targets: list[Name]
    kind: str
    values: list[str] = field(default_factory=list)
    scheme: str = "bio"
    spans: bool = False
    separator: str | None = None
    guesses: dict[str, str] = field(default_factory=dict)


def find_roles(profile: FileProfile, path: str, texts: tuple[str, ...] = (), targets: tuple[str, ...] = ()) -> Roles:
    """Return the roles of a file's columns. Args: the profile; the file, for messages; columns that the user named.

    Raises UserError, with a table of the columns, where not one alone can be the text, or the target.
    """
    columns = profile.columns
    if all(isinstance(name, int) for name in columns):
        texts, targets = ([int(name) if name.isdecimal() else name for name in names] for names in (texts, targets))
    _check_named(profile, path, [*texts], [*targets])
    if not texts and {"question", "context", "answers"} <= set(columns) and are_answers(columns["answers"]):
        return Roles(["question", "context"], None, ["answers"], "answers")
    asked = [name for name in columns if name in texts or name in targets or not (texts and targets)]
    if sentences := _sentences({name: columns[name] for name in asked}):
        for name in sentences:
            _refuse_written_lists(name, columns[name], path)
        return _tagged(sentences, targets)
    guesses: dict[str, str] = {}
    if not texts:
        texts = _texts(profile, path, [*targets], guesses)
    if len(targets) > 1:
        return Roles([*texts], None, [*targets], "label_set", sorted(map(str, targets)), guesses=guesses)
    (target,) = targets or _target(profile, path, [*texts], guesses)
    return _of_target(profile, path, [*texts], target, guesses)


def _check_named(profile: FileProfile, path: str, texts: list[Name], targets: list[Name]) -> None:
    if len(texts) > 2:
        raise UserError(f"{path}: {len(texts)} columns are named as texts; expected one, or two for a pair")
    for name in [*texts, *targets]:
        if name not in profile.columns:
            raise UserError(f"{path}: has no column '{name}'{suggestion(name, profile.columns)}")
        if name in texts and name in targets:
            raise UserError(f"{path}: column '{name}' is the text, so it can not be predicted too; name another")
        if len(targets) > 1 and name in targets and set(map(str, profile.columns[name])) != {"0", "1"}:
            raise UserError(f"{path}: column '{name}' is not of 0 and 1; several columns to predict are a label each")


def _refuse_written_lists(name: Name, values: list, path: str) -> None:
    """Raise UserError for lists as Python or JSON write them, which are no lists in CSV."""
    if _are_written_lists(values):
        advice = "write the file as JSONL, or several labels without brackets and quotes, as food;room"
        raise UserError(f"{path}: column '{name}' holds lists written as text, as {max(values, key=len):.60}; {advice}")


def _are_written_lists(values: list) -> bool:
    lists = all(isinstance(value, str) and WRITTEN_LIST.fullmatch(value) for value in values)
    return lists and any(value.strip("[] \t\n") for value in values)


def _has_word(name: Name, words: set[str]) -> bool:
    return bool(set(re.split("[^a-z]+", str(name).lower())) & words)


def _one_of(names: list[Name], known: set[str]) -> list[Name]:
    """Return the one column that is left, by its name where several are; else all."""
    by_name = [name for name in names if _has_word(name, known)]
    return by_name if len(by_name) == 1 else names


def _texts(profile: FileProfile, path: str, targets: list[Name], guesses: dict[str, str]) -> list[Name]:
    """Return the text column, or the two of a pair, and add what was guessed."""
    wordy = []
    for name, values in profile.columns.items():
        strings = all(value is None or isinstance(value, str) for value in values) and name not in targets
        if strings and not all(map(is_number, values)) and not _are_written_lists(values):
            words = sum(len((value or "").split()) for value in values) / len(values)
            if words >= 2 and len(set(values)) >= len(values) / 4 or words > 1 and _has_word(name, TEXTS):
                wordy.append(name)
    if pair := next(([a, b] for a in wordy for b in wordy if _are_pair(str(a).lower(), str(b).lower())), None):
        return pair
    taken = _one_of(wordy, TEXTS)
    if len(taken) != 1:
        _refuse_objects(profile, path)
        several = f"{listing(map(str, wordy))} may be the text" if wordy else "no column holds texts of several words"
        raise UserError(f"{path}: {several}; name it by --text, or the two of a pair\n{profile.table()}")
    if rest := [str(name) for name in wordy if name != taken[0]]:
        two = [str(name) for name in wordy if str(name) in (str(taken[0]), rest[0])]
        joined = f"columns: {{text: [{', '.join(two)}]}} joins two in one, --text {' '.join(two)} makes a pair of them"
        guesses["texts"] = f"further texts: {', '.join(rest)}; {joined}"
    return taken


def _are_pair(one: str, other: str) -> bool:
    """Return whether two names are those of a pair: sentence1 and sentence2, text_a and text_b, premise, hypothesis."""
    differing = [{a, b} for a, b in zip(one, other, strict=False) if a != b]
    twins = len(one) == len(other) and len(differing) == 1 and differing[0] in TWINS and one < other
    return (one, other) in PAIRS or twins and not one.isdigit()


def _refuse_objects(profile: FileProfile, path: str) -> None:
    """Raise UserError for the first column that holds objects: nobody looks for a text or label inside of them."""
    for name, values in profile.columns.items():
        if inside := next((list(value) for value in values if isinstance(value, dict) and value), None):
            advice = f"write {listing(map(str, inside[:3]))} as keys of the line itself"
            raise UserError(f"{path}: column '{name}' holds objects, whose keys are no columns; {advice}")


def _target(profile: FileProfile, path: str, texts: list[Name], guesses: dict[str, str]) -> list[Name]:
    """Return the column to predict, and add the other candidates."""
    others = {
        name: values
        for name, values in profile.columns.items()
        if name not in texts and not (name == "" or _has_word(name, IDS))
    }
    kinds = {name: kind for name, values in others.items() if (kind := _kind(values, name))}
    taken = _one_of(list(kinds), LABELS)
    taken = taken if len(taken) == 1 else _one_of(list(kinds), SCORES)
    if len(taken) != 1:
        _refuse_objects(profile, path)
        unfit = "".join(f"; '{name}': {_unfit(values)}" for name, values in others.items() if name not in kinds)
        said = (
            f"{listing(map(str, kinds))} may be predicted" if kinds else f"no column looks like labels or scores{unfit}"
        )
        several = (
            "name one by --label, or several columns of 0 and 1 as the labels of a set"
            if kinds
            else "--label names one"
        )
        raise UserError(f"{path}: {said}; {several}\n{profile.table()}")
    if rest := ", ".join(f"{name} ({kind})" for name, kind in kinds.items() if name != taken[0]):
        guesses["targets"] = f"could also be {rest}"
    return taken


def _kind(values: list, name: Name) -> str | None:
    """Return label, label_set or score for a column's values, or None where they are none of these."""
    if all(isinstance(value, list) and all(isinstance(one, str | int) for one in value) for value in values):
        return "label_set" if 2 <= len({str(label) for row in values for label in row}) <= MOST_LABELS else None
    distinct, scores = {str(value) for value in values}, _has_word(name, SCORES)
    if any(value is None or isinstance(value, (list, dict)) for value in values) or len(distinct) < 2:
        return None
    if not all(map(is_number, values)):
        few = len(distinct) <= min(MOST_LABELS, max(2, len(values) // 2))
        return "label" if few or _separator(values) else None
    whole = all(float(value).is_integer() for value in values)
    if whole and len(distinct) == len(values) and not scores:  # a running number
        return None
    return "score" if not whole or len(distinct) > (4 if scores else FEW_SCORES) else "label"


def _unfit(values: list) -> str:
    """Return why a column can not be predicted."""
    distinct = {str(label) for value in values for label in (value if isinstance(value, list) else [value])}
    if empty := sum(value in (None, "") for value in values):
        return f"is empty in {empty} of {len(values)} rows; give these rows a value, or drop them"
    if len(distinct) == 1:
        return f"has only one label, {distinct.pop()!r:.60}; expected at least two"
    if sum(bool(re.fullmatch(r"[+-]?\d+,\d{1,2}", str(value))) for value in values) > len(values) / 2:
        return "has decimal commas; write points, as 3.75"
    others = [row for row, value in enumerate(values) if not is_number(value)]
    if 0 < len(others) <= len(values) / 5:
        return f"has numbers but for {plural(len(others), 'row')}, as row {others[0] + 1} with {values[others[0]]!r}"
    return "has neither a few labels nor scores in all rows, nor lists of labels"


def _of_target(profile: FileProfile, path: str, texts: list[Name], target: Name, guesses: dict[str, str]) -> Roles:
    column = profile.columns[target]
    _refuse_written_lists(target, column, path)
    if (kind := _kind(column, target)) is None:
        raise UserError(f"{path}: column '{target}' {_unfit(column)}")
    separator = _separator(column) if kind == "label" else None
    if separator:
        guesses["separators"] = f"{separator!r} was taken to be between several labels of a row"
    if kind == "label_set" or separator:
        column, kind = [label for labels in split_labels(column, separator) for label in labels], "label_set"
    names = {str(value).lower() if isinstance(value, bool) else str(value) for value in column}
    values = [] if kind == "score" else sorted(names)
    return Roles(texts, None, [target], kind, values, separator=separator, guesses=guesses)


def _separator(values: list) -> str | None:
    """Return what separates the labels of each row; None where it has one label. Cut at it, all labels recur."""
    texts = list(map(str, values))
    for separator in SEPARATORS:
        rows = split_labels(texts, separator)
        labels = Counter(label for row in rows for label in row)
        if any(len(row) > 1 for row in rows) and min(labels.values()) > 1 and len(labels) < len(set(texts)):
            return separator
    return None


def _sentences(columns: dict[Name, list]) -> dict[Name, list[list[str]]]:
    """Return the columns with as many entries as words in every row, the words first; none where there are no two.

    They are lists already, or texts in which one column has as many words as the other and fewer distinct ones.
    """
    lists = {name: values for name, values in columns.items() if all(isinstance(value, list) for value in values)}
    if len(lists) < 2:
        strings = {name: v for name, v in columns.items() if all(isinstance(value, str) for value in v)}
        lists = {name: [value.split() for value in values] for name, values in strings.items()}
        lists = {name: values for name, values in lists.items() if sum(map(len, values)) > 2 * len(values)}
    distinct = {name: {str(entry) for row in values for entry in row} for name, values in lists.items()}
    for words, rows in lists.items():
        alike = [name for name in lists if name != words and list(map(len, lists[name])) == list(map(len, rows))]
        tags = [name for name in alike if len(distinct[name]) <= min(MOST_LABELS, len(distinct[words]) - 1)]
        if tags and all(isinstance(word, str) for row in rows for word in row):
            return {name: lists[name] for name in [words, *tags]}
    return {}


def _tagged(lists: dict[Name, list[list[str]]], targets: list[Name]) -> Roles:
    """Return the roles of words with tags: the named column, the last of spans, one named so, or the last."""
    words, *others = lists
    tags = {name: {str(tag) for row in lists[name] for tag in row} for name in others}
    spans = [name for name in others if any(tag.startswith(("B-", "I-")) for tag in tags[name])]
    named = [name for name in others if name in targets]
    target = (named or spans or [name for name in others if _has_word(name, LABELS)] or others)[-1]
    rest = ", ".join(str(name) for name in others if name != target)
    roles = Roles([], words, [target], "tags", sorted(tags[target]), spans=target in spans)
    roles.guesses |= {"targets": f"other columns of tags: {rest}"} if rest and not named else {}
    before_each = ((last, tag) for row in lists[target] for last, tag in zip(["O", *row], row, strict=False))
    if roles.spans and any(tag.startswith("I-") and last[2:] != tag[2:] for last, tag in before_each):
        values = {f"{mark}{tag[1:]}" if tag != "O" else tag for tag in tags[target] for mark in "BI"}
        roles.values, roles.scheme = sorted(values), "iob1"
        roles.guesses["scheme"] = "somewhere I- begins a span"
    return roles
