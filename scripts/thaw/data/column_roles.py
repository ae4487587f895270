"""Which column of a file is the text, the second text or the words, and which is to be predicted, as a guess."""

import re
from collections import Counter
from dataclasses import dataclass, field

from thaw.core.errors import UserError, suggestion
from thaw.data.checks import split_labels
from thaw.data.file_profile import MOST_LABELS, FileProfile, is_number
from thaw.data.refused_targets import (
    Name,
    almost_scores,
    are_written_lists,
    refuse_objects,
    refuse_written_lists,
    single_label,
)
from thaw.data.squad import are_answers

TEXTS = {"text", "sentence", "review", "content", "body", "question", "comment", "tweet", "document", "string"}
LABELS = {"label", "labels", "class", "category", "target", "sentiment", "topic", "intent", "judgment", "stars", "gold"}
SCORES = {"score", "similarity", "relatedness", "rating", "value"}
SETS = {"labels", "categories", "topics", "genres", "tags", "intents", "emotions", "classes"}  # several in a row
SEPARATORS = (";", "|", ",")
FEWEST_INDICATORS = 3  # two columns of 0 and 1 are more often two questions
TAGS = {"tags", "ner", "pos", "upos", "entities", "labels"}
IDS = {"id", "idx", "index", "row", "uid", "guid", "unnamed"}
PAIRS = [("premise", "hypothesis"), ("question", "answer"), ("question", "sentence"), ("query", "document")]
TWINS = ({"1", "2"}, {"a", "b"}, {"0", "1"})
FEW_SCORES = 20  # whole numbers that take more values than this are scores, not labels
HAND = "config/tasks.yaml says how"


@dataclass
class Roles:
    """What each column is for, by the file's own names: `texts` or `words`, the `target` and its kind."""

    texts: list[Name]
    words: Name | None
    target: Name | None  # None where it is in several columns
    kind: str
    values: list[str]
    scheme: str = "bio"
    spans: bool = False
    guesses: dict[str, str] = field(default_factory=dict)
    separator: str | None = None  # between the labels of a set, where they are one text
    indicators: list[Name] = field(default_factory=list)  # columns of 0 and 1, one for each label of a set


def find_roles(profile: FileProfile, path: str, texts: list[Name] = (), target: Name | None = None) -> Roles:
    """Return the roles of a file's columns. Raises UserError where no column can be the text, or none the target.

    Args: texts, target: columns that the user named, where not all is to be guessed.
    """
    if all(isinstance(name, int) for name in profile.columns):
        texts, target = list(map(_position, texts)), _position(target)
    _check_named(profile, path, texts, target)
    if not texts and target in (None, "answers") and _has_answers(profile):
        return Roles(["question", "context"], None, "answers", "answers", [])
    if texts or target is not None:
        return _named(profile, path, list(texts), target)
    if sentences := _sentences(profile.columns):
        refuse_written_lists({name: profile.columns[name] for name in sentences}, path)
        return _tagged(sentences)
    texts, guesses = _texts(profile, path)
    if indicators := _indicators(profile, texts):
        names = sorted(map(str, indicators))
        guesses |= {
            "indicators": f"each of these {len(indicators)} columns is a label; the target could be one of them"
        }
        return Roles(texts, None, None, "label_set", names, indicators=indicators, guesses=guesses)
    target, kind, guess = _target(profile, texts, path)
    return _of_texts(profile, texts, target, kind, guesses | guess)


def _position(name: Name | None) -> Name | None:
    """Return a column as a file without names has it, by its position, where it is a whole number."""
    return int(name) if str(name).isdecimal() else name


def _check_named(profile: FileProfile, path: str, texts: list[Name], target: Name | None) -> None:
    """Raise UserError for columns that the user named and that are not there, too many, or one for both purposes."""
    if len(texts) > 2:
        raise UserError(f"{path}: {len(texts)} columns are named as texts; expected one, or two for a pair")
    if target is not None and target in texts:
        raise UserError(f"{path}: column '{target}' is the text, so it can not be predicted too; name another")
    for name in [*texts, *([target] if target is not None else [])]:
        if name in profile.gaps:
            raise UserError(f"{path}:{profile.gaps[name]}; give these rows one, or drop them")
        if name not in profile.columns:
            raise UserError(f"{path}: has no column '{name}'{suggestion(name, profile.columns)}")


def _has_answers(profile: FileProfile) -> bool:
    """Return whether a file has the columns of SQuAD."""
    return {"question", "context", "answers"} <= set(profile.columns) and are_answers(profile.columns["answers"])


def _named(profile: FileProfile, path: str, texts: list[Name], target: Name | None) -> Roles:
    """Return the roles where the user named the texts, or the target, or both."""
    columns, guesses = profile.columns, {}
    if target is not None:
        refuse_written_lists({target: columns[target]}, path)
    if target is not None and (sentences := _sentences({name: columns[name] for name in [*texts, target]})):
        return _tagged(sentences)
    if not texts:
        rest = {name: values for name, values in columns.items() if name != target}
        texts, guesses = _texts(FileProfile(profile.keys, rest), path, f" besides '{target}', the one to predict,")
    if target is None:
        target, kind, guess = _target(profile, texts, path)
        guesses |= guess
    elif (kind := _kind(columns[target], _has_word(target, SCORES))) is None:
        if empty := sum(value is None for value in columns[target]):
            rows = f"{empty} of {profile.rows} rows"
            raise UserError(f"{path}: column '{target}' is empty in {rows}; give these rows a value, or drop them")
        only = {target: columns[target]}
        otherwise = f"column '{target}' has neither a few labels nor scores in all rows, nor lists of labels"
        raise UserError(f"{path}: {single_label(only) or almost_scores(only) or otherwise}")
    return _of_texts(profile, texts, target, kind, guesses)


def _of_texts(profile: FileProfile, texts: list[Name], target: Name, kind: str, guesses: dict[str, str]) -> Roles:
    column, separator = profile.columns[target], None
    if kind == "label":
        separator = _separator(column, _has_word(target, SETS))
    if kind == "label_set" or separator:
        column, kind = [label for labels in split_labels(column, separator) for label in labels], "label_set"
    if separator:
        guesses = guesses | {"separators": f"{separator!r} was taken to be between several labels of a row"}
    values = {str(value).lower() if isinstance(value, bool) else str(value) for value in column}
    names = [] if kind == "score" else sorted(values)
    return Roles(texts, None, target, kind, names, separator=separator, guesses=guesses)


def _indicators(profile: FileProfile, texts: list[Name]) -> list[Name]:
    """Return the columns with 0 and 1 alone, if there are several and no column is named as labels or scores are."""
    others = {name: values for name, values in profile.columns.items() if name not in texts}
    if any(_has_word(name, LABELS | SCORES | SETS) and _kind(values, True) for name, values in others.items()):
        return []
    known = [
        name for name, values in others.items() if not isinstance(name, int) and set(map(str, values)) == {"0", "1"}
    ]
    return known if len(known) >= FEWEST_INDICATORS else []


def _separator(values: list, named: bool) -> str | None:
    """Return what separates the labels of each row, of a column that holds texts; None where it has one label a row.

    Cut at it, there are fewer labels than texts, which recur: three times as often, unless the column is named so.
    """
    texts = list(map(str, values))
    for separator in SEPARATORS:
        rows = split_labels(texts, separator)
        labels = Counter(label for row in rows for label in row)
        several = sum(len(row) > 1 for row in rows)
        recurring = several and min(labels.values()) > 1 and len(labels) <= MOST_LABELS
        if recurring and (named or 3 * len(labels) <= len(set(texts))) and len(labels) < len(set(texts)):
            return separator
    return None


def _is_id(name: Name) -> bool:
    """Return whether a column is named as the number of a row, or not at all, as that of pandas."""
    return name == "" or _has_word(name, IDS)


def _has_word(name: Name, words: set[str]) -> bool:
    return bool(set(re.split("[^a-z]+", str(name).lower())) & words)


def _sentences(columns: dict[Name, list]) -> dict[Name, list[list[str]]]:
    """Return the columns with as many entries as words in every row, the words first; none where there are no two.

    They are lists already, or texts in which one column has as many words as the other and much fewer distinct ones.
    """
    lists = {name: values for name, values in columns.items() if all(isinstance(value, list) for value in values)}
    if len(lists) < 2:
        strings = {name: v for name, v in columns.items() if all(isinstance(value, str) for value in v)}
        lists = {name: [value.split() for value in values] for name, values in strings.items()}
        lists = {name: values for name, values in lists.items() if sum(map(len, values)) > 2 * len(values)}
    distinct = {name: {entry for row in values for entry in row} for name, values in lists.items()}
    for words, rows in lists.items():
        most = min(MOST_LABELS, len(distinct[words]) - 1)
        alike = [name for name in lists if name != words and list(map(len, lists[name])) == list(map(len, rows))]
        tags = [name for name in alike if len(distinct[name]) <= most]
        if tags and all(isinstance(word, str) for word in distinct[words]):
            return {name: lists[name] for name in [words, *tags]}
    return {}


def _tagged(lists: dict[Name, list[list[str]]]) -> Roles:
    """Return the roles of words with tags: the last column of spans, else one that is named so, else the last."""
    words, *others = lists
    tags = {name: {str(tag) for row in lists[name] for tag in row} for name in others}
    spans = [name for name in others if any(tag.startswith(("B-", "I-")) for tag in tags[name])]
    target = (spans or [name for name in others if _has_word(name, TAGS)] or others)[-1]
    rest = ", ".join(str(name) for name in others if name != target)
    guesses, values, scheme = {"targets": f"other columns of tags: {rest}"} if rest else {}, tags[target], "bio"
    before_each = ((last, tag) for row in lists[target] for last, tag in zip(["O", *row], row, strict=False))
    if spans and any(tag.startswith("I-") and last[2:] != tag[2:] for last, tag in before_each):
        values, scheme = {f"{mark}{tag[1:]}" if tag != "O" else tag for tag in values for mark in "BI"}, "iob1"
        guesses["scheme"] = "somewhere I- begins a span"
    return Roles([], words, target, "tags", sorted(values), scheme, bool(spans), guesses)


def _texts(profile: FileProfile, path: str, besides: str = "") -> tuple[list[Name], dict[str, str]]:
    """Return the text column, or the two of a pair, and what was guessed of it."""
    wordy = {}
    for name, values in profile.columns.items():
        strings = all(value is None or isinstance(value, str) for value in values)
        if strings and not all(map(is_number, values)) and not are_written_lists(values):
            words = sum(len((value or "").split()) for value in values) / len(values)
            if words >= 2 and len(set(values)) >= len(values) / 4 or words > 1 and _has_word(name, TEXTS):
                wordy[name] = words
    if not wordy:
        refuse_objects(profile.columns, path)
        raise UserError(f"{path}: no column{besides} holds texts of several words; write the entry by hand ({HAND})")
    if pair := next(([a, b] for a in wordy for b in wordy if _are_pair(str(a).lower(), str(b).lower())), None):
        return pair, {}
    unnamed = all(isinstance(name, int) for name in profile.columns)
    if len(wordy) == 2 and unnamed and max(wordy.values()) < 2 * min(wordy.values()):
        return list(wordy), {"texts": "two columns of texts; one name only if they are no pair"}
    longest = max(wordy, key=wordy.get)
    rest = [str(name) for name in wordy if name != longest]
    two = [str(name) for name in wordy if str(name) in (str(longest), *rest[:1])]
    joined = f"further texts: {', '.join(rest)}; columns: {{text: [{', '.join(two)}]}} joins two in one, "
    joined += f"--text {' '.join(two)} makes a pair of them"
    return [longest], {"texts": joined} if rest else {}


def _are_pair(one: str, other: str) -> bool:
    """Return whether two names are those of a pair: sentence1 and sentence2, text_a and text_b, premise, hypothesis."""
    differing = [{a, b} for a, b in zip(one, other, strict=False) if a != b]
    twins = len(one) == len(other) and len(differing) == 1 and differing[0] in TWINS and one < other
    return (one, other) in PAIRS or twins and not one.isdigit()


def _target(profile: FileProfile, texts: list[Name], path: str) -> tuple[Name, str, dict[str, str]]:
    """Return the column to predict, its kind (label or score), and what was guessed."""
    others = {name: values for name, values in profile.columns.items() if name not in texts}
    kinds = {name: _kind(values, _has_word(name, SCORES)) for name, values in others.items()}
    kinds = {name: kind for name, kind in kinds.items() if kind and not _is_id(name)}
    if not kinds:
        refuse_objects(others, path)
        refuse_written_lists(others, path)
        missing = "".join(f"; line {gap.replace(': ', ' has ', 1)}" for gap in list(profile.gaps.values())[:1])
        no_ids = {name: values for name, values in others.items() if not _is_id(name)}
        named = {name: values for name, values in no_ids.items() if _has_word(name, LABELS | SETS)}
        if reason := almost_scores(no_ids) or single_label(named):
            raise UserError(f"{path}: {reason}")
        raise UserError(f"{path}: no column looks like labels or scores{missing}; write the entry by hand ({HAND})")

    def order(name: Name) -> tuple:
        """Named labels first, then named scores, broken numbers, labels, the fewest first, and whole numbers."""
        broken = kinds[name] == "score" and not all(float(value).is_integer() for value in others[name])
        labels = kinds[name].startswith("label")
        rank = [_has_word(name, LABELS), _has_word(name, SCORES), broken, labels, True].index(True)
        return rank, len(set(map(str, others[name]))) if rank > 1 else 0

    chosen = min(kinds, key=order)
    refuse_written_lists({chosen: others[chosen]}, path)
    rest = ", ".join(f"{name} ({kind})" for name, kind in kinds.items() if name != chosen)
    return chosen, kinds[chosen], {"targets": f"could also be {rest}"} if rest else {}


def _kind(values: list, named_score: bool) -> str | None:
    """Return label, label_set or score for a column's values, or None where they are none of these."""
    if all(isinstance(value, list) and all(isinstance(one, str | int) for one in value) for value in values):
        labels = {str(label) for row in values for label in row}
        return "label_set" if 2 <= len(labels) <= MOST_LABELS else None
    distinct = {str(value) for value in values}
    if any(value is None or isinstance(value, (list, dict)) for value in values) or len(distinct) < 2:
        return None
    if not all(map(is_number, values)):
        few = len(distinct) <= min(MOST_LABELS, max(2, len(values) // 2))
        return "label" if few or _separator(values, named=False) else None
    whole = all(float(value).is_integer() for value in values)
    if whole and len(distinct) == len(values) and not named_score:  # a running number
        return None
    return "score" if not whole or len(distinct) > (4 if named_score else FEW_SCORES) else "label"
