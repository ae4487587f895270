"""Label new text with an exported model: one line in, one prediction out, in the same order.

thaw predict my_model lines.txt                    or < lines.txt

A model of texts reads one text a line. It writes its label, or its score; of several labels those above 0.5, with ;
between. A model of pairs reads two texts a line, separated by a tab. It writes their label, or their score.
A tagger reads a sentence a line, words separated by spaces; punctuation is a word of its own. It writes a line for each
word, word and tag with a tab between. After each sentence comes an empty line, as in CoNLL files.
Text is UTF-8; blank lines at the end are passed over. Lines are predicted in batches of some hundred, so a file may be
of any length.
"""

import io
import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from thaw.cli.selection import parser_of
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.phrases import plural

# Suffixes of tables, with what a model reads for which a line of one is too much.
TABLES = {".csv": ("text", "pair", "words"), ".tsv": ("text", "words")}


def main(words: list[str]) -> None:
    parser = parser_of("predict", __doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that thaw export wrote")
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="lines of text; default: standard input")
    columns = "after each label or tag, those of all labels, in the order of thaw.json, separated by tabs"
    parser.add_argument("--probabilities", action="store_true", help=columns)
    arguments = parser.parse_args(words)
    if not (arguments.folder / "thaw.json").is_file():
        raise UserError(f"{arguments.folder} is not an exported model (no thaw.json); create one with thaw export")
    if arguments.file and not arguments.file.is_file():
        wrong = "is a folder; name a file of lines" if arguments.file.is_dir() else "no such file"
        raise UserError(f"{arguments.file}: {wrong}")
    if "reads" not in read_json(arguments.folder / "thaw.json"):
        raise UserError(f"{arguments.folder} holds several tasks; use Model of its model.py, or docs/howto/serve.py")
    from thaw.exporting.standalone_model import Model

    model = Model(arguments.folder)
    if arguments.probabilities and not model.labels:
        raise UserError("--probabilities: this model gives scores, which have none; leave it out")
    if arguments.file and model.reads in TABLES.get(arguments.file.suffix.lower(), ()):
        said = f"each line is read as it is, a header and other columns too; expected {EXPECTED[model.reads]}"
        print(f"warning: {arguments.file}: {said}", file=sys.stderr)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    source = arguments.file.open("rb") if arguments.file else sys.stdin.buffer
    asked, kept = itertools.tee(examples(source, model.reads))
    predicted, cut = zip(model.predict_with_probabilities(asked), kept, strict=True), []
    try:
        for number, (prediction, example) in enumerate(predicted, 1):
            print(printed(example, prediction, model.reads, arguments.probabilities))
            cut += [number] * ("cut" in prediction)
    finally:
        if cut:
            left = "words beyond have the tag O" if model.reads == "words" else "what is beyond was not read"
            longer = f"{plural(len(cut), 'line')} longer than the {model.max_length} tokens that the model reads"
            print(f"warning: {longer}, the first is line {cut[0]}; {left}", file=sys.stderr)


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
