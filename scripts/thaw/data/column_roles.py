"""Which column of a file is the text, the second text or the words, and which is to be predicted, as a guess."""

import re
from dataclasses import dataclass, field

from thaw.core.errors import UserError
from thaw.data.file_profile import MOST_LABELS, FileProfile, is_number

TEXTS = {"text", "sentence", "review", "content", "body", "question", "comment", "tweet", "document", "string"}
LABELS = {"label", "labels", "class", "category", "target", "sentiment", "topic", "intent", "judgment", "stars", "gold"}
SCORES = {"score", "similarity", "relatedness", "rating", "value"}
TAGS = {"tags", "ner", "pos", "upos", "entities", "labels"}
IDS = {"id", "idx", "index", "row", "uid", "guid", "unnamed"}
PAIRS = [("premise", "hypothesis"), ("question", "answer"), ("question", "sentence"), ("query", "document")]
TWINS = ({"1", "2"}, {"a", "b"}, {"0", "1"})
FEW_SCORES = 20  # whole numbers that take more values than this are scores, not labels
HAND = "config/tasks.yaml says how"
LONG_TEXT = 90  # words on average, above which the shorter views cut much off


@dataclass
class Roles:
    """What each column is for: `texts` or `words`, the `target` and its kind, all by the file's own names."""

    texts: list[str | int]
    words: str | int | None
    target: str | int
    kind: str
    values: list[str]
    scheme: str = "bio"
    spans: bool = False
    long: bool = False
    guesses: dict[str, str] = field(default_factory=dict)


def find_roles(sight: FileProfile, place: str) -> Roles:
    """Return the roles of a file's columns. Raises UserError where no text or nothing to predict can be told."""
    lists = _as_lists(sight)
    if lists:
        return _tagged(lists)
    texts, guesses = _texts(sight, place)
    target, kind, guess = _target(sight, texts, place)
    guesses |= {"targets": guess} if guess else {}
    values = [] if kind == "score" else sorted({_plain(value) for value in sight.columns[target]})
    words = sum(len(str(value).split()) for name in texts for value in sight.columns[name]) / sight.rows
    return Roles(texts, None, target, kind, values, long=words > LONG_TEXT, guesses=guesses)


def _plain(value) -> str:
    """Return a label as `prepare` will have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _tokens(name) -> set[str]:
    return set(re.split("[^a-z]+", str(name).lower()))


def _as_lists(sight: FileProfile) -> dict[str | int, list[list[str]]]:
    """Return the columns with as many entries as words in every row, the words first; none where there are no two.

    They are lists already, or texts in which one column has as many words as the other and much fewer distinct ones.
    """
    lists = {name: values for name, values in sight.columns.items() if all(isinstance(v, list) for v in values)}
    if len(lists) < 2:
        strings = {n: v for n, v in sight.columns.items() if all(isinstance(value, str) for value in v)}
        lists = {name: [value.split() for value in values] for name, values in strings.items()}
        lists = {n: v for n, v in lists.items() if sum(map(len, v)) > 2 * len(v)}
    for words, sentences in lists.items():
        twins = {n: v for n, v in lists.items() if n != words and list(map(len, v)) == list(map(len, sentences))}
        tags = {n: v for n, v in twins.items() if _distinct(v) <= min(MOST_LABELS, _distinct(sentences) - 1)}
        if tags and all(isinstance(entry, str) for sentence in sentences for entry in sentence):
            return {words: sentences, **tags}
    return {}


def _distinct(lists: list[list]) -> int:
    return len({entry for values in lists for entry in values})


def _tagged(lists: dict[str | int, list[list[str]]]) -> Roles:
    """Return the roles of words with tags: the last column of spans, else one that is named so, else the last."""
    words, *others = lists
    tags = {name: {str(tag) for row in lists[name] for tag in row} for name in others}
    spans = [name for name in others if any(tag.startswith(("B-", "I-")) for tag in tags[name])]
    named = [name for name in others if _tokens(name) & TAGS]
    target = spans[-1] if spans else (named or others)[-1]
    rest = [str(name) for name in others if name != target]
    guesses = {"targets": f"other columns of tags: {', '.join(rest)}"} if rest else {}
    values, scheme = tags[target], "bio"
    if spans and not all(map(_is_bio, lists[target])):
        values, scheme = {f"{mark}{tag[1:]}" if tag != "O" else tag for tag in values for mark in "BI"}, "iob1"
        guesses["scheme"] = "somewhere I- begins a span"
    return Roles([], words, target, "tags", sorted(values), scheme=scheme, spans=bool(spans), guesses=guesses)


def _is_bio(tags: list[str]) -> bool:
    before = ["O", *tags]
    return all(not tag.startswith("I-") or last[2:] == tag[2:] for last, tag in zip(before, tags, strict=False))


def _texts(sight: FileProfile, place: str) -> tuple[list[str | int], dict[str, str]]:
    """Return the text column, or the two of a pair, and what was guessed of it."""
    wordy = {}
    for name, values in sight.columns.items():
        if all(value is None or isinstance(value, str) for value in values) and not all(map(is_number, values)):
            words = sum(len((value or "").split()) for value in values) / len(values)
            if words >= 2 and len(set(values)) >= len(values) / 4 or _tokens(name) & TEXTS and words > 1:
                wordy[name] = words
    if not wordy:
        raise UserError(f"{place}: no column holds texts of several words; write the entry by hand ({HAND})")
    for first in wordy:
        for second in wordy:
            if _are_pair(first, second):
                return [first, second], {}
    if len(wordy) == 2 and not sight.named and max(wordy.values()) < 2 * min(wordy.values()):
        return list(wordy), {"texts": "two columns of texts; one name only if they are no pair"}
    longest = max(wordy, key=wordy.get)
    rest = [str(name) for name in wordy if name != longest]
    joined = f"further texts: {', '.join(rest)}; columns: {{text: [one, other]}} joins two in one" if rest else None
    return [longest], {"texts": joined} if joined else {}


def _are_pair(first, second) -> bool:
    """Return whether two names are those of a pair: sentence1 and sentence2, text_a and text_b, premise, hypothesis."""
    one, other = str(first).lower(), str(second).lower()
    if isinstance(first, int) or (one, other) in PAIRS:
        return (one, other) in PAIRS
    differing = [{a, b} for a, b in zip(one, other, strict=False) if a != b]
    return len(one) == len(other) and len(differing) == 1 and differing[0] in TWINS and one < other


def _target(sight: FileProfile, texts: list, place: str) -> tuple[str | int, str, str | None]:
    """Return the column to predict, its kind (label or score), and what was guessed."""
    found = {}
    for name in (name for name in sight.columns if name not in texts):
        kind = _kind(sight.columns[name], bool(_tokens(name) & SCORES))
        if kind and not _tokens(name) & IDS:
            found[name] = kind
    if not found:
        raise UserError(f"{place}: no column looks like labels or scores; write the entry by hand ({HAND})")
    for names in (LABELS, SCORES, set()):
        chosen = next((name for name in found if _tokens(name) & names), None)
        if chosen is not None:
            break
    else:
        chosen = min(found, key=lambda name: _order(found[name], sight.columns[name]))
    rest = ", ".join(f"{name} ({kind})" for name, kind in found.items() if name != chosen)
    return chosen, found[chosen], f"could also be {rest}" if rest else None


def _order(kind: str, values: list) -> tuple[int, int]:
    """Order columns without telling names: broken numbers, then labels, the fewest first, then whole numbers."""
    broken = kind == "score" and not all(float(value).is_integer() for value in values)
    return (0 if broken else 1 if kind == "label" else 2), len(set(map(str, values)))


def _kind(values: list, scored: bool) -> str | None:
    """Return label or score for a column's values, or None where they are neither."""
    distinct = {str(value) for value in values}
    if any(value is None or isinstance(value, (list, dict)) for value in values) or len(distinct) < 2:
        return None
    if all(map(is_number, values)):
        whole = all(float(value).is_integer() for value in values)
        counted = whole and len(distinct) == len(values)  # a running number
        many = len(distinct) > (4 if scored else FEW_SCORES)
        return None if counted and not scored else "score" if not whole or many else "label"
    return "label" if len(distinct) <= min(MOST_LABELS, max(2, len(values) // 2)) else None
