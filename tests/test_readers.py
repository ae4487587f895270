"""Readers: what is written is read back, every row knows its line, and every mistake is one sentence with its place."""

import csv
import gzip
import io
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thaw.core.errors import UserError
from thaw.data.readers import read
from thaw.data.sources import of_split
from thaw.schema.corpora import FilesConfig

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
# Any text, but no carriage returns (line ends are not kept apart) and no byte order mark.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\ufeff"), max_size=12)
LINE = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\t\ufeff"), max_size=12)
WORD = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\t \ufeff"), min_size=1, max_size=6)
SENTENCES = st.lists(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=4), min_size=1, max_size=5)


def rows_of(text):
    return st.lists(st.tuples(text, text), min_size=1, max_size=6)


def read_bytes(folder, content: bytes, wanted=("text", "label"), name="data.txt", **entry):
    """Write a file and read it as one split of an entry."""
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return read(path, FilesConfig.model_validate({"splits": {"train": name}, **entry}), list(wanted))


def rows(table):
    return list(zip(*table.columns.values(), strict=True))


@QUICK
@given(rows_of(TEXT), st.sampled_from([",", "\t"]), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_quoted_tables_round_trip_with_their_lines(tmp_path, table, delimiter, end, mark, packed):
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(["label", "text"])
    lines = []
    for text, label in table:
        lines.append(buffer.getvalue().count("\n") + 1)
        writer.writerow([label, text])
    content = buffer.getvalue().encode("utf-8-sig" if mark else "utf-8")
    found = read_bytes(
        tmp_path,
        content,
        format="csv" if delimiter == "," else "tsv",
        quoting="double",
        name="data.csv.gz" if packed else "data.csv",
    )
    assert rows(found) == table
    assert found.lines == lines


@QUICK
@given(rows_of(LINE), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_plain_tables_round_trip(tmp_path, table, header, end):
    lines = [["x", "label", "text"]] * header + [["0", label, text] for text, label in table]
    content = "".join("\t".join(line) + end for line in lines).encode()
    columns = {} if header else {"text": 2, "label": 1}
    found = read_bytes(tmp_path, content, format="tsv", quoting="none", header=header, columns=columns)
    assert rows(found) == table
    assert found.lines == list(range(1 + header, len(table) + 1 + header))


@QUICK
@given(rows_of(TEXT | st.none()), st.booleans())
def test_jsonl_round_trips(tmp_path, table, ascii_only):
    records = [{"label": label, "more": 1, "text": text} for text, label in table]
    content = "\n\n".join(json.dumps(record, ensure_ascii=ascii_only) for record in records).encode()
    found = read_bytes(tmp_path, content, format="jsonl")
    assert rows(found) == table
    assert found.lines == list(range(1, 2 * len(table), 2))


@QUICK
@given(rows_of(TEXT), st.lists(st.lists(WORD, max_size=3), min_size=6, max_size=6))
def test_parquet_round_trips(tmp_path, table, words):
    import pandas

    frame = pandas.DataFrame(table, columns=["theirs", "label"])
    frame["words"] = words[: len(table)]
    frame.to_parquet(tmp_path / "made.parquet")
    content = (tmp_path / "made.parquet").read_bytes()
    found = read_bytes(
        tmp_path, content, ("text", "label", "words"), format="parquet", columns={"text": "theirs", "label": 1}
    )
    assert rows(found) == [(*row, word) for row, word in zip(table, words, strict=False)]
    assert found.lines == list(range(1, len(table) + 1))


@QUICK
@given(st.lists(st.tuples(WORD, LINE), min_size=1, max_size=6), st.sampled_from([" ", "\t"]))
def test_lines_of_label_and_text_round_trip(tmp_path, table, blank):
    content = "\r\n".join(label + blank + text for label, text in table).encode()
    found = read_bytes(tmp_path, content, ("kind", "text"), format="label_text", columns={"kind": "label"})
    assert rows(found) == table
    assert found.lines == list(range(1, len(table) + 1))


@QUICK
@given(SENTENCES, st.sampled_from([" ", "\t", "  "]), st.integers(1, 2), st.sets(st.integers(0, 4)))
def test_conll_round_trips_with_lines_and_documents(tmp_path, sentences, blank, gap, starts):
    lines, first, document = [], [], 0
    documents = []
    for i, sentence in enumerate(sentences):
        if i in starts or i == 0:
            lines += ["-DOCSTART- X", ""]
            document += 1
        first.append(len(lines) + 1)
        documents.append(str(document))
        lines += [blank.join(pair) for pair in sentence] + [""] * gap
    content = "\n".join(lines).encode()
    columns = {"words": 0, "tags": 1}
    found = read_bytes(tmp_path, content, ("words", "tags", "document"), format="conll", columns=columns)
    assert found.columns["words"] == [[word for word, _ in sentence] for sentence in sentences]
    assert found.columns["tags"] == [[tag for _, tag in sentence] for sentence in sentences]
    assert found.columns["document"] == documents
    assert found.lines == first
    assert found.word_lines[0] == [first[0] + i for i in range(len(sentences[0]))]


@QUICK
@given(SENTENCES)
def test_conllu_skips_ranges_and_empty_nodes(tmp_path, sentences):
    lines = []
    for i, sentence in enumerate(sentences):
        lines += [f"# newdoc id = d{i}", "# text = any", "1-2\tdu" + "\t_" * 8]
        for j, (form, upos) in enumerate(sentence, 1):
            lines += [f"{j}\t{form}\t_\t{upos}\t_\t_\t0\troot\t_\t_", f"{j}.1\tghost" + "\t_" * 8]
        lines.append("")
    found = read_bytes(
        tmp_path, "\n".join(lines).encode(), ("form", "upos", "document"), format="conllu", columns={"upos": 3}
    )
    assert found.columns["form"] == [[form for form, _ in sentence] for sentence in sentences]
    assert found.columns["upos"] == [[upos for _, upos in sentence] for sentence in sentences]
    assert found.columns["document"] == [f"d{i}" for i in range(len(sentences))]
    assert found.word_lines[0] == [4 + 2 * j for j in range(len(sentences[0]))]


def test_fields_after_the_named_ones_are_allowed_without_a_header(tmp_path):
    found = read_bytes(
        tmp_path, b"a\t1\nb\t0\tmore\n", format="tsv", quoting="none", header=False, columns={"text": 0, "label": 1}
    )
    assert rows(found) == [("a", "1"), ("b", "0")]


def test_a_header_in_the_files_of_some_splits(tmp_path):
    for split, first in (("train", "text\tlabel\n"), ("test", "")):
        (tmp_path / split).write_text(first + "a\t1\n")
    columns = {"text": 0, "label": 1}
    entry = {**PLAIN, "splits": {"train": "train", "test": "test"}, "columns": columns, "header": ["train"]}
    source = FilesConfig.model_validate(entry)
    for split in ("train", "test"):
        assert rows(read(tmp_path / split, of_split(source, split), ["text", "label"])) == [("a", "1")]


def test_other_encodings(tmp_path):
    found = read_bytes(tmp_path, "text\tlabel\ncaf\xe9\t1\n".encode("latin-1"), **PLAIN, encoding="latin-1")
    assert rows(found) == [("caf\xe9", "1")]


PLAIN = {"format": "tsv", "quoting": "none"}
QUOTED = {"format": "csv", "quoting": "double"}
CONLL = {"format": "conll", "columns": {"text": 0, "label": 3}}
MISTAKES = {
    "missing column": (b"text\tlable\n", PLAIN, ":1: column 'label': is missing; did you mean 'lable'"),
    "column twice": (b"text\tlabel\tlabel\n", PLAIN, ":1: column 'label': is there 2 times; give its position"),
    "no such position": (b"text\tx\n", {**PLAIN, "columns": {"label": 7}}, "there is no column 7; the file has 2"),
    "no names": (b"a\t1\n", {**PLAIN, "header": False}, ":1: column 'text': the file names no columns; state"),
    "nothing": (b"", PLAIN, ":1: is empty; expected a header line"),
    "no rows": (b"text\tlabel\n", PLAIN, "holds no rows"),
    "too few": (b"text\tlabel\na\t1\nb\n", PLAIN, ":3: column 'label': 1 field, expected 2, as in the header"),
    "too many": (b"text,label\nYes, it is,1\n", QUOTED, ":2: 3 fields, expected 2, as in the header; check"),
    "blank": (b"text\tlabel\na\t1\n\nb\t0\n", PLAIN, ":3: the line is blank; delete it"),
    "bytes": (b"text\tlabel\na\t1\n\xf0\t1\n", PLAIN, ":3: byte 0xf0 at position 1 is not utf-8; state"),
    "encoding": (b"", {**PLAIN, "encoding": "utf-9"}, "no encoding is called 'utf-9'"),
    "utf-16": ("a".encode("utf-16"), {**PLAIN, "encoding": "utf-16"}, "convert the file to UTF-8"),
    "open quote": (b'text,label\na,1\n"b,0\nc,1\n', QUOTED, ":3: field 1: a quote opens and never closes"),
    "text after quote": (b'text,label\n1,"a" b\n', QUOTED, ":2: field 2: text follows a closing quote; write"),
    "quote elsewhere": (b'text,label\n1,"a\nb" c\n', QUOTED, ":2: field 2: text follows .* in line 3"),
    "carriage return": (b"text,label\na\rb,1\n", QUOTED, ":2: a carriage return is inside a field"),
    "no blank": (b"1 a\nlonely\n", {"format": "label_text"}, ":2: expected a label, a blank and a text; .*'lonely'"),
    "label_text name": (b"1 a\n", {"format": "label_text", "columns": {"text": "txt"}}, "column 'txt': is missing"),
    "json": (b'{"text": "a"\n', {"format": "jsonl"}, ":1:\\d+: not valid JSON"),
    "json value": (b"7\n", {"format": "jsonl"}, ":1: expected a JSON object"),
    "json list": (b"\n[7]\n", {"format": "jsonl"}, "is one JSON list; state format: json"),
    "json key": (b'{"text": "", "lable": 1}\n', {"format": "jsonl"}, ":1: column 'label': is missing; did you mean"),
    "parquet": (b"PAR", {"format": "parquet"}, "not a Parquet file"),
    "ragged words": (b"a b c O\nb c O\n", CONLL, ":2: 3 fields, expected 4, as in the first word"),
    "short words": (b"a b\n", CONLL, ":1: column 'label': 2 fields, expected at least 4"),
    "no sentences": (b"\n\n", CONLL, "holds no sentences"),
    "conll name": (b"a b\n", {"format": "conll"}, "column 'text': the file names no columns"),
    "conllu fields": (b"1\ta\n", {"format": "conllu", "columns": {"text": "form", "label": "upos"}}, ":1: 2 tab-sep"),
    "conllu name": (
        b"",
        {"format": "conllu", "columns": {"text": "word"}},
        "column 'word': is missing; there are deprel",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_with_their_place(tmp_path, mistake):
    content, entry, message = MISTAKES[mistake]
    with pytest.raises(UserError, match=message) as caught:
        read_bytes(tmp_path, content, **entry)
    assert str(caught.value).startswith(str(tmp_path / "data.txt"))
    assert "\n" not in str(caught.value)


def test_documents_are_asked_for_and_not_marked(tmp_path):
    with pytest.raises(UserError, match="column 'document': no -DOCSTART- line is in the file"):
        read_bytes(tmp_path, b"a b c O\n", ("text", "label", "document"), **CONLL)


def test_a_broken_gz_file(tmp_path):
    (tmp_path / "data.tsv.gz").write_bytes(gzip.compress(b"text\tlabel\na\t1\n" * 99)[:-20])
    entry = FilesConfig.model_validate({"splits": {"train": "data.tsv.gz"}, **PLAIN})
    with pytest.raises(UserError, match=re.escape("data.tsv.gz:") + ".*not a whole gzip file"):
        read(tmp_path / "data.tsv.gz", entry, ["text", "label"])
