"""Readers of sentences in columns, one word a line: CoNLL (whitespace-separated) and CoNLL-U (ten fields)."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from thaw.core.errors import UserError
from thaw.data.edges import ARCS, arcs
from thaw.data.rows_table import RowsTable, find_position, read_lines
from thaw.schema.corpora import FilesConfig

CONLLU = ["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]
HEAD, RELATION = CONLLU.index("head"), CONLLU.index("deprel")
DOCUMENT = "document"  # a column that is no field, as is ARCS
TABS = re.compile("\t")
DOCSTART = "-DOCSTART-"
BLANKS = re.compile("[ \t]+")  # not str.split: a no-break space may be inside a word


@dataclass
class Sentence:
    """The words of one sentence, their lines in the file and their fields, and its document."""

    document: str
    lines: list[int] = field(default_factory=list)
    fields: list[list[str]] = field(default_factory=list)


def read_sentences(path: Path, source: FilesConfig, columns: dict[str, str | int]) -> RowsTable:
    """Read a file of sentences; each wanted column becomes one list of strings per sentence.

    Two columns are no field: `document` numbers (CoNLL) or names (CoNLL-U) each sentence's document, and `arcs` has the
    edges of its tree (CoNLL-U). Raises UserError for a line of another width, a missing column, heads that make no
    tree, no document marks where they are wanted.
    """
    names = CONLLU if source.format == "conllu" else None
    made = (DOCUMENT, ARCS) if names else (DOCUMENT,)
    fields = {ours: name for ours, name in columns.items() if name not in made}
    positions = {ours: find_position(name, names, str(path), ours) for ours, name in fields.items()}
    sentences = list((conllu if names else sentences_of)(path, source.encoding))
    if not sentences:
        raise UserError(f"{path}: holds no sentences")
    least = max(positions.values(), default=0) + 1
    lines = [sentence.lines for sentence in sentences]
    table = RowsTable(str(path), {ours: [] for ours in columns}, word_lines=lines, called=columns)
    for sentence in sentences:
        for line, values in zip(sentence.lines, sentence.fields, strict=True):
            if len(values) < least:
                ours = min((name for name in positions if positions[name] >= len(values)), key=positions.__getitem__)
                few = f"{len(values)} fields, expected at least {least}"
                raise UserError(f"{path}:{line}: column '{ours}': {few}; sentences end with a blank line")
        table.lines.append(sentence.lines[0])
        for ours in columns:
            table.columns[ours].append(_values(sentence, columns[ours], positions.get(ours), path))
    if DOCUMENT in columns.values() and all(sentence.document == "" for sentence in sentences):
        mark = "# newdoc" if names else "-DOCSTART-"
        raise UserError(f"{path}: column '{DOCUMENT}': no {mark} line is in the file; group by sentence or row instead")
    return table


def _values(sentence: Sentence, name, position: int | None, path: Path) -> str | list:
    if position is not None:
        return [word[position] for word in sentence.fields]
    if name == DOCUMENT:
        return sentence.document
    return arcs(heads_of(sentence, path), [word[RELATION] for word in sentence.fields])


def sentences_of(path: Path, encoding: str) -> Iterator[Sentence]:
    """Yield sentences separated by blank lines; a -DOCSTART- line is no word, it starts a document.

    All words of a file have as many fields as the first one has. Lines that begin with # above the words of every
    sentence are comments. Fields are cut at blanks and tabs, or at tabs alone where only that is even.
    """
    lines = [(line, text.strip(" \t")) for line, text in read_lines(path, encoding)]
    groups = [[text for _, text in group] for full, group in itertools.groupby(lines, lambda one: bool(one[1])) if full]
    groups = [group for group in groups if not group[0].startswith(DOCSTART)]
    if groups and all(len(group) > 1 and group[0].startswith("# ") for group in groups):
        lines = [(line, text) for line, text in lines if not text.startswith("# ")]
    words = [text for _, text in lines if text and not text.startswith(DOCSTART)]
    even = [one for one in (BLANKS, TABS) if len({len(one.split(text)) for text in words}) == 1]
    separator = TABS if even == [TABS] and "\t" in words[0] else BLANKS
    document, sentence, width = "", Sentence(""), None
    for line, text in lines:
        values = [value.strip(" ") for value in separator.split(text)] if text else []
        if values and values[0] != DOCSTART:
            width = width or len(values)
            if len(values) != width:
                raise UserError(f"{path}:{line}: {len(values)} fields, expected {width}, as in the first word's line")
            sentence.lines.append(line)
            sentence.fields.append(values)
            continue
        if sentence.lines:
            yield sentence
        if values:
            document = str(int(document or 0) + 1)
        sentence = Sentence(document)
    if sentence.lines:
        yield sentence


def conllu(path: Path, encoding: str) -> Iterator[Sentence]:
    """Yield sentences of syntactic words: multiword ranges (1-2) and empty nodes (1.1) are passed over."""
    document, count, sentence = "", 0, Sentence("")
    for line, text in read_lines(path, encoding):
        if text.startswith("#"):
            if text[1:].strip().startswith("newdoc"):
                count += 1
                document = text.partition("=")[2].strip() or str(count)
                sentence.document = document
            continue
        if not text:
            if sentence.lines:
                yield sentence
            sentence = Sentence(document)
            continue
        values = text.split("\t")
        if len(values) != len(CONLLU):
            raise UserError(f"{path}:{line}: {len(values)} tab-separated fields where CoNLL-U has {len(CONLLU)}")
        if "-" not in values[0] and "." not in values[0]:
            sentence.lines.append(line)
            sentence.fields.append(values)
    if sentence.lines:
        yield sentence


def heads_of(sentence: Sentence, path: Path) -> list[int]:
    """Return the position of each word's head, from 0; -1 for the root's. Raises UserError where they make no tree."""
    count, heads = len(sentence.fields), []
    for line, word in zip(sentence.lines, sentence.fields, strict=True):
        if not word[HEAD].isdigit() or int(word[HEAD]) > count:
            raise UserError(f"{path}:{line}: column 'head': {word[HEAD]!r} is no word; the sentence has 1 to {count}")
        heads.append(int(word[HEAD]) - 1)
    rising = [word for word in range(count) if not _reaches_root(word, heads)]
    if heads.count(-1) != 1 or rising:
        line = sentence.lines[rising[0] if rising else 0]
        roots = f"{heads.count(-1)} of its words hang on 0"
        raise UserError(f"{path}:{line}: column 'head': the sentence is no tree with one root; {roots}")
    return heads


def _reaches_root(word: int, heads: list[int]) -> bool:
    for _ in heads:
        if heads[word] < 0:
            return True
        word = heads[word]
    return False
