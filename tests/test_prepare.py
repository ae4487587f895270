"""Prepare: the source that is used, the card, and a corpus read back with its targets and subsets."""

import numpy as np
import pandas
import pytest

from conftest import run_step
from corpora import PAIRS, TRAIN, WORDS, pair, prepared, spec_for
from plans import plan_of
from thaw.core.digests import canonical, digest
from thaw.core.errors import UserError
from thaw.data.corpus import Corpus, subset_rows
from thaw.data.preparation import prepare
from thaw.data.sources import convert, find_source
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import CorpusConfig as Entry
from thaw.schema.corpora import HubConfig
from thaw.schema.entry import spec_of

# --- the columns, the card, the numbers -------------------------------------------------------------------------------


def test_parquet_and_card_say_what_was_read(tmp_path):
    test = [pair("six", "THREE  ", "no"), pair("seven", "eight"), pair("seven", "eight")]
    corpus = prepared(tmp_path, PAIRS, train=TRAIN, test=test)
    assert list(corpus.frame("train").columns) == ["row", "a", "b", "label", "score", "group"]
    assert list(corpus.frame("test").columns) == ["row", "a", "b", "label", "score", "group", "seen"]
    assert corpus.frame("train")["group"].tolist() == [0, 1, 0]
    assert corpus.frame("test")["seen"].tolist() == [True, False, False]
    assert corpus.frame("test")["b"][0] == "THREE  "
    card = corpus.card
    assert card["labels"] == {"label": ["no", "yes"]} and card["targets"] == PAIRS["targets"]
    assert card["texts"] == ["a", "b"] and not card["synthetic"] and corpus.splits == ["train", "test"]
    assert card["splits"]["test"] == {
        "rows": 3,
        "labels": {"label": {"no": 1, "yes": 2}},
        "words": {"mean": 2.0, "p95": 2.0, "max": 2},
        "empty": 0,
        "dropped": 0,
        "duplicates": 1,
        "duplicate_rows": [2],
        "overlap_train": {"rows": 1, "share": 1 / 3, "first": [0]},
        "carved_from": None,
    }
    assert corpus.targets({"target": "label"}, "test").tolist() == [0, 1, 1]
    assert corpus.targets({"target": "score"}, "train").tolist() == [1.0, 2.0, 2.5]
    assert corpus.labels("score") == []


def test_words_and_tags(tmp_path):
    rows = [{"words": ["Ann", "ran"], "tags": ["B-PER", "O"]}, {"words": "in Oslo", "tags": "O B-LOC"}]
    corpus = prepared(tmp_path, WORDS, train=rows)
    assert corpus.words == "words" and [list(words) for words in corpus.frame("train")["words"]][1] == ["in", "Oslo"]
    assert corpus.labels("tags") == ["B-LOC", "B-PER", "O"]
    assert corpus.targets({"target": "tags"}, "train") == [[1, 2], [2, 0]]


def test_the_card_comes_last_and_the_digest_is_that_of_the_spec(tmp_path):
    corpus = prepared(tmp_path, PAIRS, train=TRAIN)
    spec = spec_for({**PAIRS, "files": {"format": "jsonl", "splits": {"train": "train.jsonl"}}}, tmp_path)
    assert corpus.card["digest"] == digest(spec)
    (tmp_path / "train.jsonl").write_text("changed")
    with pytest.raises(UserError, match="train.jsonl is not the file that was planned with; run again"):
        prepare(spec, tmp_path, tmp_path / "out")
    assert (tmp_path / "out/card.json").exists()


def test_whole_numbers_are_sorted_as_numbers(tmp_path):
    rows = [{"text": f"text {n}", "label": n} for n in (10, 2, -1, 0)]
    corpus = prepared(tmp_path, {"texts": ["text"], "targets": {"label": "label"}}, train=rows)
    assert corpus.labels("label") == ["-1", "0", "2", "10"]


def test_labels_are_text_and_can_be_renamed(tmp_path):
    train = [pair("a", "b", 0), pair("c", "d", 1), pair("e", "f", True)]
    entry = {
        **PAIRS,
        "labels": {"label": ["no", "yes", "true"]},
        "files": {"rename": {"label": {"0": "no", "1": "yes"}}},
    }
    assert prepared(tmp_path, entry, train=train).frame("train")["label"].tolist() == ["no", "yes", "true"]


@pytest.mark.parametrize(("policy", "rows", "empty", "dropped"), [("drop", [0, 2], 0, 1), ("keep", [0, 1, 2], 1, 0)])
def test_empty_texts_are_dropped_or_kept_and_counted(tmp_path, policy, rows, empty, dropped):
    train = [TRAIN[0], pair(" \t", "x"), TRAIN[1]]
    corpus = prepared(tmp_path, {**PAIRS, "empty": policy}, train=train)
    assert corpus.frame("train")["row"].tolist() == rows
    assert (corpus.card["splits"]["train"]["empty"], corpus.card["splits"]["train"]["dropped"]) == (empty, dropped)


def test_carved_rows_keep_their_numbers_and_share_nothing_with_train(tmp_path):
    train = [pair(f"s{i // 3}", f"t{i}", "yes" if i % 2 else "no") for i in range(120)]
    corpus = prepared(tmp_path, {**PAIRS, "carve": {"validation": 0.1}}, train=train)
    rows = [corpus.frame(split)["row"].tolist() for split in ("train", "validation")]
    assert sorted(rows[0] + rows[1]) == list(range(120)) and 9 <= len(rows[1]) <= 12
    assert not corpus.frame("validation")["seen"].any()
    assert corpus.card["splits"]["validation"]["carved_from"] == "train"


def test_rows_of_other_labels_are_left_out_and_counted(tmp_path):
    train = [*TRAIN, pair("six", "seven", "maybe"), pair(" ", "eight", "maybe")]
    entry = {**PAIRS, "only": {"label": ["yes", "no"]}, "empty": "drop"}
    card = prepared(tmp_path, entry, train=train).card
    assert card["labels"] == {"label": ["no", "yes"]}
    assert {key: card["splits"]["train"][key] for key in ("rows", "dropped", "left_out")} == {
        "rows": 3,
        "dropped": 1,
        "left_out": 1,
    }
    with pytest.raises(UserError, match="column 'label': no row has 'yess', which `only` names"):
        prepared(tmp_path, {**entry, "only": {"label": ["yess", "no"]}}, train=train)


def test_a_coarse_label_from_the_fine_one_and_lists_that_are_kept(tmp_path):
    train = [{"text": f"t{i}", "kind": kind, "more": ["x", i]} for i, kind in enumerate(["A:a", "B:b", "B:c"])]
    entry = {"texts": ["text"], "targets": {"fine": "label", "coarse": "label"}, "keep": ["more"]}
    columns = {"fine": "kind", "coarse": "kind"}
    files = {"columns": columns, "until": {"coarse": ":"}, "rename": {"coarse": {"A": "first"}}}
    corpus = prepared(tmp_path, {**entry, "files": files}, train=train)
    assert corpus.labels("coarse") == ["B", "first"] and corpus.labels("fine") == ["A:a", "B:b", "B:c"]
    assert [list(more) for more in corpus.frame("train")["more"]][1] == ["x", "1"]


def test_a_split_that_the_source_brings_is_not_carved(tmp_path):
    entry = {**PAIRS, "carve": {"validation": 0.3}}
    corpus = prepared(tmp_path, entry, train=TRAIN, validation=[pair("six", "seven")])
    assert corpus.card["splits"]["validation"]["rows"] == 1 and len(corpus.frame("train")) == 3


# --- sources ----------------------------------------------------------------------------------------------------------

MANY = {
    **PAIRS,
    "synthetic": "similarity",
    "files": {"format": "jsonl", "splits": {"train": "train.jsonl", "test": "test.jsonl"}},
    "hub": {"id": "someone/something", "splits": {"train": "train"}},
}


def test_sources_are_tried_in_the_order_given(tmp_path):
    corpus = Entry.model_validate(MANY)
    assert find_source("mine", corpus, ["files", "hub", "synthetic"], tmp_path) == ("hub", {})
    assert find_source("mine", corpus, ["synthetic", "files"], tmp_path) == ("synthetic", {})
    (tmp_path / "train.jsonl").write_text("")
    (tmp_path / "test.jsonl.gz").write_text("")
    source, files = find_source("mine", corpus, ["files", "hub"], tmp_path)
    assert source == "files" and sorted(files) == ["test.jsonl.gz", "train.jsonl"]


def test_no_source_and_half_a_source_are_errors(tmp_path):
    corpus = Entry.model_validate(MANY | {"synthetic": None})
    with pytest.raises(UserError, match="no data here, there is no file .*train.jsonl; say --config data_dir="):
        find_source("mine", corpus, ["synthetic", "files"], tmp_path)
    (tmp_path / "train.jsonl").write_text("")
    with pytest.raises(UserError, match="test.jsonl is missing in .* though train.jsonl is there"):
        find_source("mine", corpus, ["files", "hub"], tmp_path)


def test_the_hub_path_on_a_local_folder(tmp_path, monkeypatch):
    """`datasets` reads a folder as it reads the Hub; class numbers become names, and -1 is a withheld label."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    features = datasets.Features(
        {
            "tokens": datasets.List(datasets.Value("string")),
            "ner": datasets.List(datasets.ClassLabel(names=["O", "B-X"])),
            "kind": datasets.ClassLabel(names=["no", "yes"]),
        }
    )
    rows = {"tokens": [["a", "b"], ["c"]], "ner": [[0, 1], [0]], "kind": [1, 0]}
    (tmp_path / "made/data").mkdir(parents=True)
    for split, kind in (("train", [1, 0]), ("test", [1, -1])):
        data = datasets.Dataset.from_dict({**rows, "kind": kind}, features=features)
        data.to_parquet(tmp_path / f"made/data/{split}-00000-of-00001.parquet")
    hub = {"id": str(tmp_path / "made"), "splits": {"train": "train"}, "columns": {"words": "tokens", "tags": "ner"}}
    entry = {"words": "words", "targets": {"tags": "tags", "kind": "label"}, "hub": hub, "group_by": "document"}
    card = prepare(spec_for(entry, tmp_path, ["hub"]), tmp_path, tmp_path / "out")
    assert card["source"] == {"kind": "hub", "id": hub["id"], "config": None, "asked": None, "revision": None}
    corpus = Corpus(tmp_path / "out")
    assert corpus.targets({"target": "tags"}, "train") == [[1, 0], [1]]
    assert corpus.frame("train")["kind"].tolist() == ["yes", "no"]
    hub["splits"] = {"train": "train[:1]", "test": "train[1:]"}
    with pytest.raises(UserError, match="made train.1:.: row 1: column 'kind': label 'no' is not in train"):
        prepare(spec_for(entry, tmp_path, ["hub"]), tmp_path, tmp_path / "out")
    hub["splits"] = {"train": "train", "test": "test"}
    with pytest.raises(UserError, match="hub: .*made test: row 2: column 'kind': has no label"):
        prepare(spec_for(entry, tmp_path, ["hub"]), tmp_path, tmp_path / "out")
    hub["splits"]["test"] = "testing"
    with pytest.raises(UserError, match="made testing could not be loaded"):
        prepare(spec_for(entry, tmp_path, ["hub"]), tmp_path, tmp_path / "out")


def test_a_treebank_of_the_hub_has_ranges_and_empty_nodes_that_are_no_words():
    import datasets

    rows = {"tokens": [["don't", "do", "n't", "go", "it"]], "upos": [["_", "AUX", "PART", "VERB", "PRON"]]}
    rows |= {
        "head": [["None", "3", "3", "0", "_"]],
        "deprel": [["_", "aux", "advmod", "root", "_"]],
        "text": ["don't go"],
    }
    hub = HubConfig(id="any", splits={"train": "train"}, columns={"words": "tokens"})
    table = convert(datasets.Dataset.from_dict(rows), "train", hub, ["words", "upos", "arcs", "text"])
    assert table.columns["words"] == [["do", "n't", "go"]] and table.columns["upos"] == [["AUX", "PART", "VERB"]]
    assert [edge["span2"] for edge in table.columns["arcs"][0]] == [[2, 3], [2, 3], [2, 3]]
    assert table.columns["text"] == ["don't go"]
    for wrong in ("above", "4"):
        rows["head"][0][1] = wrong
        with pytest.raises(UserError, match=f"row 1: column 'head': '{wrong}' is no word; the sentence has 1 to 3"):
            convert(datasets.Dataset.from_dict(rows), "train", hub, ["words", "arcs"])


def test_a_text_of_several_columns_is_one_from_files_and_from_the_hub(tmp_path):
    import datasets

    rows = {"title": ["One", "Two", None], "body": ["", "three", "four"], "y": [0, 1, 1]}
    frame = pandas.DataFrame(rows)
    frame.to_parquet(tmp_path / "train.parquet")
    columns = {"text": ["title", "body"], "label": "y"}
    entry = {"texts": ["text"], "targets": {"label": "label"}}
    entry["files"] = {"format": "parquet", "splits": {"train": "train.parquet"}, "columns": columns}
    prepare(spec_for(entry, tmp_path), tmp_path, tmp_path / "out")
    assert Corpus(tmp_path / "out").frame("train")["text"].tolist() == ["One", "Two three", "four"]
    hub = HubConfig(id="any", splits={"train": "train"}, columns=columns)
    table = convert(datasets.Dataset.from_dict(rows), "train", hub, ["text", "label"])
    assert table.columns == {"text": ["One", "Two three", "four"], "label": [0, 1, 1]}


# What the Hub's copies lack: the genre of EWT's texts, the files of jiant, and datasets that are published elsewhere.
FILES_ALONE = ("edges_", "ewt_", "subj", "cr", "mpqa", "ag_news", "wnut17", "rte_files", "qnli_part")


def test_every_real_task_plans_by_its_hub_id_and_finds_its_splits_in_every_source(catalogue):
    corpora = {name: catalogue.get("corpora", name, "test") for name in catalogue.ids("corpora")}
    tasks = {name: catalogue.get("tasks", name, "test") for name in catalogue.ids("tasks")}
    real = [name for name, task in tasks.items() if not corpora[task.corpus].synthetic]
    for name in real:
        corpus = corpora[tasks[name].corpus]
        for source in filter(None, [corpus.files, corpus.hub]):
            joined = {split for splits in corpus.join.values() for split in splits}
            assert joined <= {*source.splits}, name
            splits = {*source.splits, *corpus.join, *corpus.carve} - joined
            read = {"train", tasks[name].validation, *tasks[name].test}
            # a task that chooses and reports on one split leaves the test split of its corpus alone
            assert read <= splits and (read == splits or tasks[name].protocol == "paper"), name
    local = {name for name in real if not corpora[tasks[name].corpus].hub}
    assert [name for name in sorted(local) if not name.startswith(FILES_ALONE)] == []
    edges = [name for name in real if tasks[name].type == "edges" and name not in local]
    extracted = [name for name in real if tasks[name].type == "span_extraction"]
    changes = {"tasks": [name for name in real if name not in {*local, *edges, *extracted}], "sources": ["hub"]}
    changes |= {"probe_tasks": edges, "probes": ["edge"], "strategies": ["frozen", "full"]}
    changes_of_extraction = {"tasks": extracted, "sources": ["hub"], "heads": ["start_end"], "strategies": ["full"]}
    changes_of_extraction |= {"probes": [], "outputs": ["main_table"]}
    plans = [plan_of(**each) for each in (changes, changes_of_extraction)]
    jobs = {name: job for plan in plans for name, job in plan.jobs["prepare"].items()}
    assert {job.spec["source"] for job in jobs.values()} == {"hub"}
    assert set(jobs) == {name for name, corpus in corpora.items() if corpus.hub}


# --- subsets ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uneven(tmp_path_factory) -> Corpus:
    """A corpus of 400 rows, a quarter of them `yes`."""
    rows = [pair(f"a{i}", f"b{i}", "no" if i % 4 else "yes") for i in range(400)]
    return prepared(tmp_path_factory.mktemp("uneven"), PAIRS, train=rows)


def test_subsets_are_nested_stratified_and_seeded(uneven):
    task = {"target": "label"}
    small, large = (subset_rows(uneven, task, {"rows": n}) for n in (40, 100))
    assert set(small) < set(large) and len(small) == 40
    assert (uneven.targets(task, "train")[small] == 1).sum() == 10
    assert (small == np.sort(small)).all() and np.array_equal(small, subset_rows(uneven, task, {"rows": 40}))
    assert set(small) != set(subset_rows(uneven, task, {"rows": 40, "draw": 2}))
    assert subset_rows(uneven, {"target": "score"}, {}).tolist() == list(range(400))
    with pytest.raises(UserError, match="subset of 500 rows: train of mine has 400; ask for fewer"):
        subset_rows(uneven, task, {"rows": 500})


def test_a_corpus_says_what_it_has_not(uneven, tmp_path):
    with pytest.raises(UserError, match="no split 'test'; there are train"):
        uneven.frame("test")
    with pytest.raises(UserError, match="card.json is missing"):
        Corpus(tmp_path)
    assert isinstance(uneven.frame("train"), pandas.DataFrame)


def test_the_example_at_the_top_of_the_catalogue_works_as_it_stands(home, tmp_path):
    head = (home / "config/tasks.yaml").read_text().split("# --- views")[0]
    example = [line[4:] for line in head.splitlines() if line.startswith("#   ")]
    assert len(example) == 5
    (tmp_path / "tasks.yaml").write_text("\n".join(example))
    catalogue = Catalogue([home / "config", tmp_path])
    assert catalogue.get("tasks", "reviews", "test").corpus == "reviews"
    (tmp_path / "reviews").mkdir()
    for split in ("train", "test"):
        rows = "".join(f'"well, {split} ""{i}""",{"yes" if i % 3 else "no"}\n' for i in range(60))
        (tmp_path / f"reviews/{split}.csv").write_text("text,label\n" + rows)
    entry = spec_of(catalogue.get("corpora", "reviews", "test"))
    arguments = ["--spec", canonical(spec_for(entry, tmp_path)), "--data-dir", tmp_path, "--out", tmp_path / "out"]
    run_step("prepare", *arguments)
    corpus = Corpus(tmp_path / "out")
    assert [len(corpus.frame(split)) for split in ("train", "validation", "test")] == [54, 6, 60]
    assert corpus.frame("test")["text"][1] == 'well, test "1"'
