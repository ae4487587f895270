"""Lines of text in, lines of predictions out: what `thaw predict` reads and writes.

W words, C classes.
"""

from collections.abc import Iterable, Iterator

from thaw.core.errors import UserError

EXPECTED = {
    "text": "one text a line",
    "pair": "two texts separated by one tab",
    "words": "the words of one sentence, separated by spaces",
}


def examples(lines: Iterable[bytes], reads: str) -> Iterator[str | list[str]]:
    """Yield the text, the pair [first, second] or the words of each line; a line that has none is a UserError.

    Blank lines at the end are passed over. lines: UTF-8, as read from a file; reads: text, pair or words.
    """
    blank = 0  # the first of the blank lines before this one
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(f"line {number} is not UTF-8; save the text as UTF-8") from error
        if not text.strip():
            blank = blank or number
            continue
        if blank:
            raise UserError(f"line {blank} is empty; expected {EXPECTED[reads]}")
        parts = text.split("\t") if reads == "pair" else [text]
        if reads == "pair" and not (len(parts) == 2 and all(part.strip() for part in parts)):
            raise UserError(f"line {number} has {len(parts) - 1} tabs and no two texts; expected {EXPECTED[reads]}")
        yield text if reads == "text" else parts if reads == "pair" else text.split()


def printed(example, prediction: dict, reads: str, probabilities: bool) -> str:
    """Return a prediction as it is printed, without the last line feed.

    A text or pair has its label, its labels with `;` between, or its score on a line, then with `probabilities` those
    of all C labels. A sentence has a line for each of its W words, the word before its tag, and an empty line after
    them; a word that was cut off has no probabilities.
    """
    if reads != "words":
        said = prediction["prediction"]
        said = "; ".join(said) if isinstance(said, list) else said
        return _line([said], prediction["probabilities"] if probabilities else None)
    words = zip(example, prediction["prediction"], prediction["probabilities"], strict=True)
    return "\n".join(_line([word, tag], shares if probabilities else None) for word, tag, shares in words) + "\n"


def _line(fields: list, shares: list[float] | None) -> str:
    fields = [f"{field:.6g}" if isinstance(field, float) else field for field in fields]
    return "\t".join([*fields, *(f"{share:.6f}" for share in shares or [])])
