"""The embedded corpora: balanced, and in families that no two splits share.

Up to 00f2c715 tests/test_grammar.py holds what a bag of words reaches on them, thaw.data.grammar what wrote them.
"""

import pytest

from test_real_data import prepare_entry
from thaw.core.digests import file_sha256
from thaw.data.sources import EMBEDDED
from thaw.schema.corpora import GRAMMARS

TEXTS = ("sentence", "words", "sentence_a", "sentence_b")
IN_A_FAMILY = {"acceptability": 2, "paraphrase": 2, "entities": 3, "similarity": 1}
KNOWN = {
    "acceptability": "1715e9a8d6a481bb",
    "entities": "ac38134e55f9d470",
    "paraphrase": "4b935947fdaebeca",
    "similarity": "082eb31a395e820f",
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_file_that_changes_raises_the_version_of_the_step(name):
    """No spec has its content: what was prepared of it stays, unless core/steps.py has another version of prepare."""
    assert file_sha256(EMBEDDED / f"{name}.jsonl").startswith(KNOWN[name])


@pytest.mark.parametrize("name", GRAMMARS)
def test_no_sentence_is_in_two_splits_no_row_twice_and_families_are_whole(name, catalogue, tmp_path):
    corpus = prepare_entry(name, catalogue.get("corpora", name, "test"), tmp_path, tmp_path / name)
    frames = [corpus.frame(split) for split in ("train", "validation", "test")]
    assert list(map(len, frames)) == [1008, 300, 504]
    rows = [_texts(frame) for frame in frames]
    assert len(set(sum(rows, []))) == sum(map(len, frames))
    train, validation, test = ({text for row in part for text in row} for part in rows)
    assert not train & validation and not train & test and not validation & test
    for frame in frames:
        families = frame["group"].to_numpy().reshape(-1, IN_A_FAMILY[name])
        assert (families == families[:, :1]).all(), "a family is written row after row"
        if "label" in frame:
            assert frame["label"].value_counts().nunique() == 1


def _texts(frame) -> list[tuple[str, ...]]:
    """Return each example's sentences in lower case, the words of a tagged one joined."""
    rows = frame[[column for column in TEXTS if column in frame]].itertuples(index=False)
    return [tuple((text if isinstance(text, str) else " ".join(text)).lower() for text in row) for row in rows]
