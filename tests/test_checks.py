"""Checks of a corpus: every mistake is one sentence with its place, and IOB1 is turned into BIO."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora import PAIRS, TRAIN, WORDS, pair, prepared, spec_for
from thaw.core.errors import UserError
from thaw.data.preparation import prepare
from thaw.data.spans import iob1_to_bio

# --- IOB1 -------------------------------------------------------------------------------------------------------------


def test_iob1_becomes_bio(tmp_path):
    tags = ["I-PER", "I-PER", "B-PER", "O", "I-LOC", "I-PER"]
    train = [{"words": list("abcdef"), "tags": tags}]
    corpus = prepared(tmp_path, {**WORDS, "files": {"scheme": "iob1"}}, train=train)
    assert list(corpus.frame("train")["tags"][0]) == ["B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-PER"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["", "X", "Y"]), st.integers(1, 3)), max_size=8))
def test_iob1_keeps_every_span(spans):
    bio, iob1, before = [], [], ""
    for kind, length in spans:
        if not kind:
            bio, iob1 = bio + ["O"], iob1 + ["O"]
        else:
            rest = [f"I-{kind}"] * (length - 1)
            bio += [f"B-{kind}", *rest]
            iob1 += [f"B-{kind}" if before == kind else f"I-{kind}", *rest]
        before = kind
    assert iob1_to_bio(iob1) == bio


# --- mistakes ---------------------------------------------------------------------------------------------------------

LISTED = {**PAIRS, "labels": {"label": ["no", "yes"]}}
TAGGED = {"words": ["a", "b"], "tags": ["O", "B-X"]}
MISTAKES = {
    "not listed": (LISTED, [pair("x", "y", "Yes")], "label 'Yes' is not among the entry's labels; did you mean 'yes'"),
    "label only in test": (
        PAIRS,
        [pair("x", "y", "perhaps")],
        "test.jsonl:1: column 'label': label 'perhaps' is not in train",
    ),
    "no label": (PAIRS, [pair("x", "y", None)], "jsonl:1: column 'label': has no label"),
    "empty label": (PAIRS, [pair("x", "y", "")], "jsonl:1: column 'label': the label is empty;"),
    "empty labels": (PAIRS, [pair("x", "y", "")] * 3, "the label is empty, as in 2 further rows; every row needs one"),
    "label of numbers": (PAIRS, [pair("x", "y", 0.5)], "jsonl:1: column 'label': a label is text or a whole number"),
    "no score": (PAIRS, [pair("x", "y", score="much")], "jsonl:1: column 'score': 'much' is not a finite number"),
    "comma": (PAIRS, [pair("x", "y", score="3,5")], "'3,5' is not a finite number; write it as 3.5"),
    "nan": (PAIRS, [pair("x", "y", score=float("nan"))], "jsonl:1: column 'score': nan is not a finite number"),
    "empty text": (PAIRS, [TRAIN[0], pair("x", "  ")], "jsonl:2: column 'b': the text is empty; fill it in"),
    "not a text": (PAIRS, [pair("x", 3)], "jsonl:1: column 'b': expected a text, this is int 3"),
    "lengths": (WORDS, [{"words": ["a"], "tags": ["O", "O"]}], "jsonl:1: column 'tags': 2 tags for 1 words"),
    "not bio": (WORDS, [{"words": ["a"], "tags": ["I-X"]}], "'tags': word 1: I-X continues nothing .* scheme: iob1"),
    "no span tag": (WORDS, [{"words": ["a", "b"], "tags": ["X", "B-X"]}], "column 'tags': word 1: 'X' is no span tag"),
    "tag only in test": (WORDS, [{"words": ["a"], "tags": ["B-Z"]}], "'tags': word 1: label 'B-Z' is not in train"),
    "empty word": (WORDS, [{"words": ["a", " "], "tags": ["O", "O"]}], "column 'words': word 2: the word is empty"),
    "no words": (WORDS, [{"words": [], "tags": []}], "jsonl:1: column 'words': the text is empty"),
    "not a list": (WORDS, [{"words": [1], "tags": ["O"]}], "jsonl:1: column 'words': expected a list of words"),
    "not tags": (WORDS, [{"words": ["a"], "tags": None}], "jsonl:1: column 'tags': expected a list of tags"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_with_their_place_and_nothing_is_written(tmp_path, mistake):
    entry, test, message = MISTAKES[mistake]
    with pytest.raises(UserError, match=message):
        prepared(tmp_path, entry, train=[TAGGED] if "words" in entry else TRAIN, test=test)
    assert not (tmp_path / "out").exists()


def test_one_label_is_too_few(tmp_path):
    with pytest.raises(UserError, match="column 'label': train has only yes; expected at least two"):
        prepared(tmp_path, PAIRS, train=TRAIN[:1])


def test_a_wrong_tag_in_a_conll_file_is_told_with_its_line(tmp_path):
    (tmp_path / "train.txt").write_text("a O\nb B-X\n\nc O\nd I-X\n")
    columns = {"words": 0, "tags": 1}
    entry = {**WORDS, "files": {"format": "conll", "columns": columns, "splits": {"train": "train.txt"}}}
    with pytest.raises(UserError, match="train.txt:5: column 'tags': I-X continues nothing"):
        prepare(spec_for(entry, tmp_path), tmp_path, tmp_path / "out")
