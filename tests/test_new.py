"""The first draft of an entry: a file of any kind gives a stub that loads and that `prepare` takes as it stands."""

import json
import subprocess
import sys

import pytest

import forked
from corpora import spec_for
from thaw.core.errors import UserError
from thaw.data.catalogue_stub import write_stub
from thaw.data.corpus import Corpus
from thaw.data.preparation import prepare
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import spec_of

SENTENCES = [f"a {word} day in town number {i}" for i, word in enumerate(["fine", "grey", "long", "café"] * 10)]
KINDS = ["good" if i % 3 else "bad" for i in range(40)]
WORDS = [["Ann", "met", "Bob", f"Lee{i}"] for i in range(40)]
SPANS = [["B-PER", "O", "B-PER", "I-PER"] for _ in range(40)]


def csv(mark=",", header="id,comment,mood\n", text='say: "{}", she said'):
    quoted = [text.format(sentence).replace('"', '""') for sentence in SENTENCES]
    rows = [mark.join([str(i), f'"{q}"', kind]) for i, (q, kind) in enumerate(zip(quoted, KINDS, strict=True))]
    return (header + "\n".join(rows) + "\n").encode()


def jsonl(**columns):
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def conll(tags):
    return "\n\n".join("\n".join(f"{w} X {t}" for w, t in zip(ws, tags, strict=True)) for ws in WORDS).encode()


def conllu():
    lines = [
        [f"{n}\t{w}\t_\t{u}\t_\t_\t0\troot\t_\t_" for n, (w, u) in enumerate(zip(ws, "NVNN", strict=True), 1)]
        for ws in WORDS
    ]
    return "\n\n".join("\n".join(sentence) for sentence in lines).encode() + b"\n"


def plain(form, encoding="utf-8", header=""):
    rows = [form.format(text=text, kind=kind) for text, kind in zip(SENTENCES, KINDS, strict=True)]
    return (header + "\n".join(rows) + "\n").encode(encoding)


SIMILAR = {"sentence1": SENTENCES, "sentence2": SENTENCES[::-1], "similarity": [i / 10 for i in range(40)]}
# name of the file: its content, type of task, keys of `files:` (without splits), labels or None
FILES = {
    "moods.csv": (
        csv(),
        "classification",
        {"format": "csv", "quoting": "double", "columns": {"text": "comment", "label": "mood"}},
        ["bad", "good"],
    ),
    "old.tsv": (
        plain('"{text}\t{kind}', "latin-1", header="text\tlabel\n"),
        "classification",
        {"format": "tsv", "quoting": "none", "encoding": "latin-1"},
        ["bad", "good"],
    ),
    "bare.txt": (
        plain("{kind}\t{text}"),
        "classification",
        {"format": "tsv", "quoting": "none", "header": False, "columns": {"text": 1, "label": 0}},
        ["bad", "good"],
    ),
    "Lines (1).train": (plain("{kind} {text}"), "classification", {"format": "label_text"}, ["bad", "good"]),
    "similar.jsonl": (
        jsonl(**SIMILAR),
        "pair_regression",
        {"format": "jsonl", "columns": {"text_a": "sentence1", "text_b": "sentence2", "score": "similarity"}},
        None,
    ),
    "yes.jsonl": (
        jsonl(text=SENTENCES, label=["yes" if kind == "good" else "no" for kind in KINDS]),
        "classification",
        {"format": "jsonl"},
        ["no", "yes"],
    ),
    "tagged.jsonl": (
        jsonl(tokens=WORDS, ner=SPANS),
        "spans",
        {"format": "jsonl", "columns": {"words": "tokens", "tags": "ner"}},
        ["B-PER", "I-PER", "O"],
    ),
    "names.conll": (
        conll(["I-PER", "O", "I-PER", "B-PER"]),
        "spans",
        {"format": "conll", "columns": {"words": 0, "tags": 2}, "scheme": "iob1"},
        ["B-PER", "I-PER", "O"],
    ),
    "trees.conllu": (
        conllu(),
        "tagging",
        {"format": "conllu", "columns": {"words": "form", "tags": "upos"}},
        ["N", "V"],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_the_stub_of_a_file_loads_and_prepares(tmp_path, home, name):
    content, kind, keys, labels = FILES[name]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "tasks.yaml").write_text(write_stub(tmp_path / name, set(), "my"), encoding="utf-8")
    catalogue = Catalogue([home / "config", tmp_path])
    task = next(catalogue.get("tasks", i, "test") for i in catalogue.ids("tasks") if i in catalogue.ids("corpora")[-1:])
    entry = spec_of(catalogue.get("corpora", task.corpus, "test"))
    assert {key: value for key, value in entry["files"].items() if key != "splits"} == keys
    assert task.type == kind
    prepare(spec_for(entry, tmp_path), tmp_path, tmp_path / "out")
    corpus = Corpus(tmp_path / "out")
    assert sum(len(corpus.frame(split)) for split in ("train", "validation", "test")) == 40
    assert corpus.labels(task.target) == (labels or [])
    texts = {text for split in corpus.splits for name in corpus.texts for text in corpus.frame(split)[name]}
    assert corpus.words or any("café" in text for text in texts)


def test_parquet_and_what_is_guessed(tmp_path):
    import pandas

    frame = pandas.DataFrame({"title": SENTENCES, "body": [f"{s} and more" for s in SENTENCES], "mood": KINDS})
    frame.assign(z=[str(i % 2) for i in range(40)]).to_parquet(tmp_path / "sst2.parquet")
    stub = write_stub(tmp_path / "sst2.parquet", {"sst2"}, "my")
    assert "  my_sst2:\n" in stub and "columns: {text: body, label: mood}" in stub
    assert "# guess: further texts: title; columns: {text: [one, other]} joins two in one\n    texts: [text]" in stub
    assert "# guess: could also be z (label)\n    targets: {label: label}" in stub


MISTAKES = {
    "no file": (None, "no such file"),
    "nothing": (b"\n", "is empty"),
    "prose": (b"".join(b"word%d stands here.\n" % i for i in range(30)), "of no format that Thaw reads"),
    "semicolons": (b"text;label\n" + b"a b c;1\n" * 30, ":1: fields are separated by semicolons"),
    "utf-16": ("text\tlabel\n".encode("utf-16"), "is UTF-16"),
    "few rows": (b"text,label\na b c,1\nd e f,0\n", "has 2 rows; expected at least 20"),
    "no text": (b"a,b\n" + b"1,2\n3,1\n" * 20, "no column holds texts"),
    "no target": (b"text,id\n" + b"".join(b"a b c %d,%d\n" % (i, i) for i in range(30)), "looks like labels or scores"),
    "ragged": (b"text,label\n" + b"Yes, it is so,1\n" * 30, ":2: 3 fields, expected 2, as in the header"),
    "no label": (b"text,label\n" + b"a b c,1\nd e f,0\n" * 20 + b"g h i,\n", ":42: column 'label': the label is empty"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_file_that_cannot_be_used_is_one_sentence(tmp_path, mistake):
    content, message = MISTAKES[mistake]
    path = tmp_path / ("my.txt" if mistake == "prose" else "my.csv")
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        write_stub(path, set(), "my")
    assert str(caught.value).startswith(str(path))


def test_the_command_writes_once_and_names_the_next_one_which_works(tmp_path, home):
    (tmp_path / "moods.csv").write_bytes(FILES["moods.csv"][0])
    command = [home / "scripts/new.py", "task", "moods.csv", "--out", "my/tasks.yaml"]
    done = forked.run(command, tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("my/tasks.yaml is written"), done.stderr
    stub = (tmp_path / "my/tasks.yaml").read_text()
    again = forked.run(command, tmp_path)
    assert again.returncode == 1 and again.stderr == (
        "error: my/tasks.yaml exists already; leave --out away and copy what is printed into it\n"
    )
    assert (tmp_path / "my/tasks.yaml").read_text() == stub
    head = [line.removeprefix("#").strip() for line in stub.partition("python scripts/")[2].splitlines()[:2]]
    line = f"{sys.executable} {home}/scripts/{' '.join(head)}".replace("\\", "").replace("[my]", f"[{tmp_path}/my]")
    planned = subprocess.run(["bash", "-c", line], cwd=home, capture_output=True, text=True)
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.startswith("experiment moods: moods\n")
