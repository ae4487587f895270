"""The embedded corpora: same bytes everywhere, balanced, hard for bags of words, and right by an independent check."""

import re

import numpy as np
import pytest
from scipy.sparse import hstack
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from test_real_data import prepare_entry
from thaw.core.errors import UserError
from thaw.data.corpus import joint_groups
from thaw.data.grammar import CORPORA, acceptability, similarity_pairs, write
from thaw.data.grammar import assemble_corpus as lists
from thaw.data.grammar.assemble_corpus import ing, part, participle, past, plural, with_s

FRAMES = {name: write(name) for name in CORPORA}
LABELS = {
    "acceptability": {"acceptable", "unacceptable"},
    "paraphrase": {"different", "paraphrase"},
}
# What a bag of words may reach at most on test; full fine-tuning of the embedded encoder is clearly above each bound.
BOUNDS = {"acceptability": 0.62, "paraphrase": 0.62, "similarity": 0.75}

every_corpus = pytest.mark.parametrize("name", CORPORA)


def texts(frame) -> list[tuple[str, ...]]:
    """Return each example's sentences in lower case, the words of a tagged one joined."""
    columns = [column for column in ("sentence", "words", "sentence_a", "sentence_b") if column in frame]
    rows = frame[columns].itertuples(index=False)
    return [tuple((text if isinstance(text, str) else " ".join(text)).lower() for text in row) for row in rows]


@every_corpus
def test_the_same_bytes_at_each_call(name):
    assert [frame.to_json() for frame in write(name).values()] == [one.to_json() for one in FRAMES[name].values()]


def test_an_unknown_corpus_is_a_clear_error():
    with pytest.raises(UserError, match="no embedded corpus 'moods': choose one of acceptability"):
        write("moods")


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_balanced(name):
    for frame in FRAMES[name].values():
        counts = frame["label"].value_counts()
        assert set(counts.index) == LABELS[name] and counts.max() == counts.min()


@every_corpus
def test_nothing_occurs_twice(name):
    examples = [row for frame in FRAMES[name].values() for row in texts(frame)]
    assert len(set(examples)) == len(examples)
    train, validation, test = ({text for row in texts(frame) for text in row} for frame in FRAMES[name].values())
    assert not train & validation and not train & test and not validation & test


@pytest.mark.parametrize("name", [*LABELS, "entities"])
def test_twins_are_one_group_and_groups_share_no_sentence(name, catalogue, tmp_path):
    corpus = prepare_entry(name, catalogue.get("corpora", name, "test"), tmp_path, tmp_path / name)
    labels = 3 if name == "entities" else 2
    groups = joint_groups(corpus, {split: np.arange(corpus.size(split)) for split in ("train", "validation")})
    assert (groups.reshape(-1, labels) == groups[::labels, None]).all(), "a family is written row after row"
    assert 0 <= len(groups) // labels - len(set(groups)) <= 1, "two families of paraphrase share a sentence"
    rows = [row for split in ("train", "validation") for row in texts(corpus.frame(split))]
    owners = {(text, group) for row, group in zip(rows, groups, strict=True) for text in row}
    assert len({text for text, _ in owners}) == len(owners)


@every_corpus
def test_test_has_words_of_its_own(name):
    train, validation, test = (
        {word for row in texts(frame) for text in row for word in re.findall(r"\w+", text)}
        for frame in FRAMES[name].values()
    )
    assert len(test - train) > 0.2 * len(test) and len(train - test) > 0.2 * len(train)
    assert len(validation - train) < 0.05 * len(validation)


def test_parts_of_a_word_list():
    for entries in (lists.PEOPLE, lists.ACTS, lists.PLACES, lists.TRAITS, acceptability.RESTS):
        train, test = set(part(entries, "train")), set(part(entries, "test"))
        assert len(set(entries)) == len(entries)
        assert train | test == set(entries) and train - test and test - train and train & test
        assert part(entries, "validation") == part(entries, "train")


def test_tags_are_valid_and_names_ambiguous():
    for frame in FRAMES["entities"].values():
        kinds_of: dict[str, set] = {}
        for sentence, tags in zip(frame["words"], frame["tags"], strict=True):
            assert len(sentence) == len(tags) and any(tag != "O" for tag in tags)
            for before, tag, word in zip(["O", *tags], tags, sentence, strict=False):
                assert re.fullmatch("O|[BI]-(PER|ORG|LOC)", tag)
                assert tag[0] != "I" or before[2:] == tag[2:]
                kinds_of.setdefault(word.lower(), set()).add(tag[2:])
        named = [kinds for kinds in kinds_of.values() if kinds - {""}]
        assert all({"PER", "ORG", "LOC"} <= kinds for kinds in named)
        assert sum("" in kinds for kinds in named) >= 3


def test_scores_are_graded():
    for frame in FRAMES["similarity"].values():
        shares = frame["score"].value_counts(normalize=True)
        assert set(shares.index) == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0} and shares.min() > 0.08


FIRST = {word: names[0] for names in similarity_pairs.DOERS for word in names}
FIRST |= {form(word): names[0] for names in similarity_pairs.DEEDS for word in names for form in (past, participle)}


def facts(sentence: str) -> dict:
    """Read the five facts of a sentence of the similarity corpus back, each as the first of its synonyms."""
    text = sentence.lower()
    day = re.search(r"\bon (\w+)", text).group(1)
    passive = re.search(r"the (\w+) was (\w+) by the (\w+) (\w+)", text)
    active = re.search(r"the (\w+) (\w+) (\w+) the (\w+)", text)
    order = ("other", "act", "trait", "doer") if passive else ("trait", "doer", "act", "other")
    told = {"day": day, **dict(zip(order, (passive or active).groups(), strict=True))}
    return {fact: FIRST.get(word, word) for fact, word in told.items()}


def test_a_score_is_the_number_of_shared_facts():
    for frame in FRAMES["similarity"].values():
        for example in frame.itertuples():
            first, second = facts(example.sentence_a), facts(example.sentence_b)
            assert sum(first[fact] == second[fact] for fact in first) == example.score, example


PHRASES = {
    **dict.fromkeys(map(str.lower, acceptability.WHEN), "when"), "in front of": "near", "next to": "near",
    **dict.fromkeys(("has been", "seems", "looks"), "is"),
    **dict.fromkeys(("have been", "seem", "look", "were"), "are"),
}  # fmt: skip
CLASSES = {
    "t": ["the"], "N": lists.PEOPLE, "M": map(plural, lists.PEOPLE), "a": lists.TRAITS, "L": lists.PLACES,
    "S": map(with_s, lists.ACTS), "P": lists.ACTS, "E": map(past, lists.ACTS), "G": map(ing, lists.ACTS),
    "s": map(with_s, acceptability.RESTS), "p": acceptability.RESTS, "e": map(past, acceptability.RESTS),
    "b": ["near", "behind", "beside"], "r": ["who"], "h": ["that"], "i": ["in", "of"], "o": acceptability.ADVERBS,
    "c": ["is"], "k": ["are"], "x": ["has"], "y": ["was"], "z": ["will", "can", "must"], "w": ["when"],
}  # fmt: skip
LETTER = {word: letter for letter, entries in CLASSES.items() for word in entries}
ONE = "(ta?N|tNbt[NM]|tNrSt[NM]|tNh(tNS|tMP))"
MANY = "(ta?M|tMbt[NM]|tMrPt[NM]|tMh(tNS|tMP))"
ACCEPTED = [
    f"{ONE}(sw|[cy]a)", f"{MANY}(pw|ka)", "taN(xoE|yoG|zoP)tN", "taNEtNitL", "taNeitL", "tNEtaNitL", "tNitLEtaN",
]  # fmt: skip


def accepted(text: str) -> bool:
    """Judge a sentence by patterns over word classes that know nothing of how it was written."""
    text = text.lower().rstrip(".")
    tokens = text.split()
    if tokens[-1] in ("himself", "herself", "themselves"):
        many = {plural(noun) for noun in acceptability.MEN + acceptability.WOMEN}
        fitting = {"himself": acceptability.MEN, "herself": acceptability.WOMEN, "themselves": many}
        return tokens[1] in fitting[tokens[-1]]
    for phrase, short in PHRASES.items():
        text = re.sub(rf"\b{phrase}\b", short, text)
    letters = "".join(LETTER[word] for word in text.split())
    return any(re.fullmatch(pattern, letters) for pattern in ACCEPTED)


def test_minimal_pairs_agree_with_an_independent_checker():
    for frame in FRAMES["acceptability"].values():
        for example in frame.itertuples():
            assert accepted(example.sentence) == (example.label == "acceptable"), example.sentence


def counts(name: str, train, test):
    """Return word counts of train and test; for pairs those of both, their product and their difference."""
    columns = [column for column in ("sentence", "sentence_a", "sentence_b") if column in train]
    vectorizer = CountVectorizer().fit([text for column in columns for text in train[column]])

    def matrix(frame):
        parts = [vectorizer.transform(frame[column]) for column in columns]
        if len(parts) == 2:
            parts += [parts[0].multiply(parts[1]), abs(parts[0] - parts[1])]
        return hstack(parts).tocsr()

    return matrix(train), matrix(test)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bag_of_words_is_not_enough(name):
    train, test = FRAMES[name]["train"], FRAMES[name]["test"]
    seen, unseen = counts(name, train, test)
    if name == "similarity":
        predicted = Ridge(10.0).fit(seen, train["score"]).predict(unseen)
        reached = spearmanr(predicted, test["score"]).statistic
    else:
        predicted = LogisticRegression(C=0.1, max_iter=300).fit(seen, train["label"]).predict(unseen)
        reached = np.mean(predicted == test["label"].to_numpy())
    assert reached <= BOUNDS[name]


def test_a_window_of_words_does_not_tell_the_kind_of_a_name():
    def windows(frame):
        for sentence, tags in zip(frame["words"], frame["tags"], strict=True):
            padded = ["^", *(word.lower() for word in sentence), "$"]
            yield from (
                (" ".join(f"{side}={padded[place + side]}" for side in (0, 1, 2)), tag)
                for place, tag in enumerate(tags)
                if tag[0] == "B"
            )

    (train, kinds), (test, truth) = (
        zip(*windows(FRAMES["entities"][split]), strict=True) for split in ("train", "test")
    )
    vectorizer = CountVectorizer(token_pattern=r"\S+").fit(train)
    model = LogisticRegression(max_iter=300).fit(vectorizer.transform(train), kinds)
    assert model.score(vectorizer.transform(test), truth) < 0.6
