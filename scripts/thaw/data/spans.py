"""Span tags: the schemes that files are written in, and BIO (IOB2), which everything after `prepare` reads."""

import re

WORD = re.compile(r"\w+|[^\w\s]")  # a word, or a mark
MARKED = re.compile(r"([BIESLU])[-_](.+)", re.IGNORECASE)
MARKS = {"BIO": "BI", "IOBES": "BIES", "BILOU": "BILU"}  # of each scheme, without O
IN_BIO = {"B": "B", "S": "B", "U": "B", "I": "I", "E": "I", "L": "I"}
BOUNDS = (("start", "end", "label"), ("start_offset", "end_offset", "label"), ("begin", "end", "type"))


def scheme_of(tags: set[str]) -> tuple[str, dict[str, str]]:
    """Return the scheme of a column's tags and, of each that BIO writes otherwise, its name in BIO.

    A tag is a mark (B, I, E, S, L, U), a hyphen or underscore, and a type. No scheme ("") where one is none of these.
    """
    outside, marked = {"O", "o"}.intersection(tags), {}
    for tag in set(tags) - outside:
        if (match := MARKED.fullmatch(tag)) is None:
            return "", {}
        marked[tag] = (match[1].upper(), match[2])
    used = {mark for mark, _ in marked.values()}
    scheme = next((name for name, marks in MARKS.items() if used <= set(marks)), "")
    if not scheme or not used & set("BISU"):
        return "", {}
    bio = {tag: f"{IN_BIO[mark]}-{kind}" for tag, (mark, kind) in marked.items()} | dict.fromkeys(outside, "O")
    return scheme, {tag: bio[tag] for tag in sorted(bio) if tag != bio[tag]}


def iob1_to_bio(tags: list[str]) -> list[str]:
    """Return BIO tags for IOB1, where B- only parts touching spans of one type (Ramshaw and Marcus 1995)."""
    begins = [
        tag != "O" and (before == "O" or before[2:] != tag[2:]) for before, tag in zip(["O", *tags], tags, strict=False)
    ]
    return [f"B-{tag[2:]}" if begin else tag for begin, tag in zip(begins, tags, strict=True)]


def bounds_of(span) -> tuple[int, int, str] | None:
    """Return first character, end and label of a span: a list of them, or an object as annotation tools write it."""
    if isinstance(span, dict):
        span = next(([span[key] for key in keys] for keys in BOUNDS if set(keys) <= set(span)), None)
    if not isinstance(span, list) or len(span) != 3:
        return None
    start, end, label = span
    whole = all(isinstance(number, int) and not isinstance(number, bool) for number in (start, end))
    return (start, end, label) if whole and isinstance(label, str) and label else None


def of_offsets(text: str, spans: list) -> tuple[list[str], list[str]]:
    """Return the words of a text and their BIO tags; a span takes all words that it touches.

    Raises ValueError, with what is wrong, for a span that is none, lies beyond the text, or touches another's words.
    """
    words = list(WORD.finditer(text))
    tags = ["O"] * len(words)
    for span in sorted(map(_checked, spans)):
        start, end, label = span
        inside = [place for place, word in enumerate(words) if word.start() < end and start < word.end()]
        if not 0 <= start < end <= len(text) or not inside:
            raise ValueError(f"the span {start} to {end} is no part of the text, which has {len(text)} characters")
        if any(tags[place] != "O" for place in inside):
            raise ValueError(f"the span {start} to {end} shares a word with another; a word has one tag")
        for place in inside:
            tags[place] = f"{'B' if place == inside[0] else 'I'}-{label}"
    return [word.group() for word in words], tags


def _checked(span) -> tuple[int, int, str]:
    if (found := bounds_of(span)) is None:
        raise ValueError(f"expected [first character, end, label], this is {span!r:.40}")
    return found
