"""The first draft of an entry: a file of any kind gives one that loads and that `prepare` takes without a change."""

import json
import re

import pytest
import yaml

from thaw.cli import new_command
from thaw.cli.new_command import add_entries, strategies
from thaw.core.errors import UserError
from thaw.core.runtime import machine_size
from thaw.data.catalogue_stub import Wishes, contradictions, draft_of_file, draft_of_hub
from thaw.encoders.catalogue_draft import draft_of_encoder
from thaw.planning.configuration import load_plan, read_config
from thaw.planning.plan import Plan
from thaw.schema.catalogue import Catalogue
from tiny import tiny_encoder

SENTENCES = [f"a {word} day in town number {i}" for i, word in enumerate(["fine", "grey", "long", "café"] * 10)]
KINDS = ["yes" if i % 3 else "no" for i in range(40)]


def written(draft) -> str:
    """Return the file that holds a draft alone."""
    return "".join(f"{block}:\n{text}\n" for block, text in draft.blocks.items())


def csv():
    rows = [f'{i},"say: ""{SENTENCES[i]}"", she said",{KINDS[i]}\n' for i in range(len(KINDS))]
    return ("id,comment,mood\n" + "".join(rows)).encode()


def test_parquet_and_what_is_guessed(tmp_path):
    import pandas

    frame = pandas.DataFrame({"title": SENTENCES, "body": [f"{s} and more" for s in SENTENCES], "mood": KINDS})
    frame.assign(z=[str(i % 2) for i in range(40)]).to_parquet(tmp_path / "sst2.parquet")
    with pytest.raises(UserError, match="mood and z may be predicted; name one by --label.*\n.*column +type +distinct"):
        draft_of_file(tmp_path / "sst2.parquet", set())
    stub = written(draft_of_file(tmp_path / "sst2.parquet", {"sst2", "my_sst2"}, Wishes(targets=("mood",))))
    assert "  my_sst2_2:\n" in stub and "columns: {text: body, label: mood}" in stub
    two = "columns: {text: [title, body]} joins two in one, --text title body makes a pair of them"
    assert f"# guess: further texts: title; {two}\n    texts: [text]" in stub


def test_an_uneven_label_is_scored_by_macro_f1_and_rows_without_a_text_are_left_out(tmp_path):
    moods = "".join(f"{'' if i == 5 else f'text {i} of a review'},{'low' if i % 8 else 'high'}\n" for i in range(40))
    (tmp_path / "moods.csv").write_text("text,mood\n" + moods)
    stub = written(draft_of_file(tmp_path / "moods.csv", set()))
    assert "metrics: [f1_macro, accuracy]" in stub and "# guess: macro F1 first, since most rows have one label" in stub
    assert "# guess: rows without a text are left out\n    empty: drop" in stub
    assert contradictions([("",), ("",), ("a",), ("a",)], ["x", "y", "x", None]) == [], "nor have they labels"


def test_columns_that_the_user_names_are_not_guessed(tmp_path):
    path = tmp_path / "moods.csv"
    lines = [f"{i},{s},{s[::-1]},{i % 4},{kind}" for i, (s, kind) in enumerate(zip(SENTENCES, KINDS, strict=True))]
    path.write_text("id,title,body,stars,mood\n" + "\n".join(lines) + "\n", encoding="utf-8")
    named = draft_of_file(path, set(), Wishes("mine", ("title",), ("stars",)))
    assert "columns: {text: title, label: stars}" in named.corpus and named.name == "mine"
    pair = draft_of_file(path, set(), Wishes(texts=("body", "title"), targets=("mood",)))
    assert "{text_a: body, text_b: title, label: mood}" in pair.corpus and [*pair.types.values()] == [
        "pair_classification"
    ]
    with pytest.raises(UserError, match="column 'title' has another value in each row"):
        draft_of_file(path, set(), Wishes(targets=("title",)))
    with pytest.raises(UserError, match="moods.csv: 3 columns are named as texts; expected one, or two for a pair"):
        draft_of_file(path, set(), Wishes(texts=("title", "body", "mood")))
    with pytest.raises(UserError, match="column 'mood' is the text, so it can not be predicted too"):
        draft_of_file(path, set(), Wishes(texts=("mood",), targets=("mood",)))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a CSV of the user's, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/rte.csv").write_bytes(csv())
    return tmp_path


def plan_of(file: str, home) -> Plan:
    return load_plan(read_config([file]), home, files=[file])


def test_a_task_is_written_with_its_experiment_which_can_be_planned(place, home, capsys):
    """The id exists already (RTE is a task of Thaw's), so another one is free."""
    new_command.main(["task", "data/rte.csv"])
    said = capsys.readouterr().out
    assert "  text: comment\n  label: mood (2 labels: no, yes)\n" in said
    assert "rte exists already, so that this is my_rte" in said and said.endswith("    thaw plan my_rte.yaml\n")
    plan = plan_of("my_rte.yaml", home)
    assert plan.experiment.tasks == ["my_rte"] and len(plan.runs) == 18
    assert "threads" not in (place / "my_rte.yaml").read_text(), "`thaw advise` trains one strategy at a time"
    assert {run.head for run in plan.runs} == {"linear_mean"}
    new_command.main(["task", "data/rte.csv", "--name", "second"])
    assert set(Catalogue(["my"]).ids("tasks")) == {"my_rte", "second"}
    assert plan_of("second.yaml", home).jobs["prepare"].keys() == {"second"}


@pytest.mark.parametrize(
    "names, splits",
    [
        ("test.csv", {"train": "test.csv"}),
        ("a_test.csv a.csv", {"train": "a.csv", "test": "a_test.csv"}),
        ("dev.csv a.csv train.csv", None),
        ("train1.csv val.csv", {"train": "train1.csv", "validation": "val.csv"}),
        ("train1.csv train2.csv", None),
        ("test.csv dev.csv", None),
        ("a.csv b.csv", {"train": "a.csv", "test": "b.csv"}),
        ("a.csv a.csv", None),
        ("a.csv b.csv c.csv", {"train": "a.csv", "validation": "b.csv", "test": "c.csv"}),
        ("a.csv b.csv c.csv d.csv", None),
    ],
)
def test_files_are_splits_by_name_or_by_order(tmp_path, names, splits):
    files = [tmp_path / name for name in names.split()]
    for file in files:
        file.write_bytes(csv())
    if splits is None:
        with pytest.raises(UserError, match="expected one file of train and one of test"):
            draft_of_file(files[0], set(), further=files[1:])
        return
    draft = draft_of_file(files[0], set(), further=files[1:])
    assert yaml.safe_load(draft.corpus)[draft.name]["files"]["splits"] == splits
    assert draft.rows == 40 * len(files)
    assert ("splits" in draft.guesses) is (names in ("a.csv b.csv", "a.csv b.csv c.csv"))


def test_encoders_are_named_by_id_or_hub_id_and_known_ones_need_no_network(place):
    new_command.main(["task", "data/rte.csv", "--encoders", "google-bert/bert-base-uncased", "minilm"])
    text = (place / "my_rte.yaml").read_text()
    assert "encoders: [bert_base_uncased, minilm]" in text
    assert ("compute: {threads: 1}" in text) is (machine_size()["cores"] < 4), "both can train at once"
    with pytest.raises(UserError, match="--encoder: no 'minilmm' in encoders; did you mean 'minilm'"):
        new_command.main(["task", "data/rte.csv", "--name", "other", "--encoders", "minilmm"])
    new_command.main(["task", "data/rte.csv", "--name", "third", "--encoders", "roberta-base", "all-MiniLM-L6-v2"])
    assert "encoders: [roberta_base, minilm]" in (place / "third.yaml").read_text()
    tiny_encoder("bert", place / "bert")
    new_command.main(["task", "data/rte.csv", "--name", "other", "--encoders", "./bert"])
    assert "encoders: [bert]" in (place / "other.yaml").read_text()
    assert Catalogue(["my"]).get("encoders", "bert", "test").folder == "./bert"


def test_an_experiment_names_encoders_by_hub_id_and_by_folder(place, home, monkeypatch):
    tiny_encoder("bert", place / "bert")
    new_command.main(["task", "data/rte.csv"])
    text = (place / "my_rte.yaml").read_text()

    def plan(encoders: str) -> Plan:
        (place / "my_rte.yaml").write_text(re.sub("encoders: .*", f"encoders: [{encoders}]", text))
        return plan_of("my_rte.yaml", home)

    by_id, by_source = plan("minilm, roberta_base"), plan("sentence-transformers/all-MiniLM-L6-v2, roberta-base")
    assert by_id.jobs["fetch"].keys() == by_source.jobs["fetch"].keys() and by_id.runs == by_source.runs
    assert plan("./bert").job("fetch", "bert").spec["entry"]["folder"] == "./bert"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("huggingface_hub.constants.HF_HUB_OFFLINE", "datasets.config.HF_HUB_OFFLINE"):
        monkeypatch.setattr(name, True)  # as they read it when they are imported
    with pytest.raises(
        UserError, match=r"my_rte.yaml:\d+: encoders: a/b: is no folder.* \(HF_HUB_OFFLINE is set\); give"
    ):
        plan("a/b")
    with pytest.raises(
        UserError, match=r"hub:a/b: is in no cache .* \(HF_HUB_OFFLINE is set\); give its rows in a file"
    ):
        draft_of_hub("a/b", None, None, set())


def test_the_file_of_a_task_is_named_without_a_leading_dot_of_which_snakemake_would_warn(place, home):
    (place / "own.csv").write_text((place / "data/rte.csv").read_text())
    new_command.main(["task", "own.csv"])
    assert "data_dir: .\n" in (place / "own.yaml").read_text()
    assert plan_of("own.yaml", home).jobs["prepare"]["own"].inputs["files"] == ["own.csv"]


def test_nothing_is_overwritten_or_left_half_written(place):
    with pytest.raises(UserError, match="--name rte: exists already; my_rte is free. To replace it"):
        new_command.main(["task", "data/rte.csv", "--name", "rte"])
    (place / "my_rte.yaml").write_text("mine")
    with pytest.raises(UserError, match="my_rte.yaml exists already; --name gives another one"):
        new_command.main(["task", "data/rte.csv"])
    assert (place / "my_rte.yaml").read_text() == "mine" and not (place / "my").exists()
    (place / "my").mkdir()
    (place / "my/tasks.yaml").write_text("tasks: {}\n")
    with pytest.raises(UserError, match="the block tasks: is not a plain list of entries; add by hand"):
        new_command.main(["task", "data/rte.csv", "--name", "other"])
    assert (place / "my/tasks.yaml").read_text() == "tasks: {}\n" and not (place / "other.yaml").exists()


def test_an_entry_that_does_not_load_leaves_the_file_as_it_was(place):
    add_entries(place / "my/heads.yaml", {"heads": "  one: {kind: linear}"}, "# mine\n")
    before = (place / "my/heads.yaml").read_text()
    assert before == "# mine\n\nheads:\n  one: {kind: linear}\n"
    with pytest.raises(UserError, match="kind"):
        add_entries(place / "my/heads.yaml", {"heads": "  two: {kind: nothing}"}, "")
    assert (place / "my/heads.yaml").read_text() == before


def test_a_data_set_of_the_hub_has_its_splits_and_its_labels(place, home):
    """`datasets` reads a folder of files by the same call as an id; here test has no labels, as in GLUE."""
    for split, count in (("train", 60), ("validation", 20), ("test", 20)):
        rows = [{"content": f"some words {i} of it", "stars": "ab"[i % 2]} for i in range(count)]
        rows = [row | {"stars": None} for row in rows] if split == "test" else rows
        (place / "data" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "data/rte.csv").unlink()
    draft = draft_of_hub("data", None, None, set(), Wishes("own", ("content",), ("stars",)))
    assert "splits: {train: train, validation: validation}" in draft.corpus and "carve: {test: 0.2}" in draft.corpus
    assert "columns: {text: content, label: stars}" in draft.corpus
    assert "there is no test split with labels" in draft.corpus
    (place / "tasks.yaml").write_text(written(draft))
    assert Catalogue([home / "config", place]).get("tasks", "own", "test").type == "classification"
    with pytest.raises(UserError, match="hub:data: has no column 'star'; did you mean 'stars'?"):
        draft_of_hub("data", None, None, set(), Wishes(targets=("star",)))


def test_what_files_alone_have_is_not_asked_of_the_hub(place):
    """A column of splits beside the splits of a data set, and one word a row."""
    rows = [{"text": f"some words {i}", "label": "ab"[i % 2], "split": ("train", "test")[i % 2]} for i in range(40)]
    (place / "data/rte.csv").unlink()
    path = place / "data/train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "split_column" not in draft_of_hub("data", None, None, set()).corpus
    words = [{"sentence_id": i // 4, "token": f"w{i % 9}", "tag": ("O", "B-X")[i % 2]} for i in range(80)]
    path.write_text("".join(json.dumps(row) + "\n" for row in words))
    with pytest.raises(UserError, match="hub:data: has one word a row, which is read of files alone"):
        draft_of_hub("data", None, None, set())


def test_an_encoder_without_weights_is_refused(place):
    (place / "bare").mkdir()
    (place / "bare/config.json").write_text('{"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 8}')
    with pytest.raises(UserError, match="bare has no weights: neither model.safetensors nor pytorch_model.bin"):
        draft_of_encoder("bare", set())
    (place / "empty").mkdir()
    with pytest.raises(UserError, match="empty: no config can be read, as of a folder or a Hub id"):
        draft_of_encoder("empty", set())


def test_an_encoder_is_read_and_what_is_unknown_is_said_in_the_tables(place, home):
    tiny_encoder("bert", place / "bert-own")
    new_command.main(["task", "data/rte.csv", "--encoders", "./bert-own"])
    entry = Catalogue(["my"]).get("encoders", "bert_own", "test")
    assert (entry.layers, entry.width, entry.cased, entry.objective) == (3, 32, False, "unknown")
    plan = plan_of("my_rte.yaml", home)
    assert "Thaw cannot warn if it was pretrained on a task" in plan.job("report", "my_rte").spec["notes"]["bert_own"]
    stated = entry.model_copy(update={"objective": "masked words", "pretraining": ["Wikipedia"]})
    assert stated.footnote is None


@pytest.mark.parametrize(("types", "lines"), [({"regression"}, 5), ({"classification", "pair_regression"}, 8)])
def test_a_draft_has_bi_encoders_where_a_task_is_on_pairs(types, lines):
    shown = [line for line in strategies(types).splitlines() if line.startswith("  - ")]
    assert strategies({"span_extraction"}).startswith("heads: [start_end]\n")
    assert len(shown) == lines and len({line.index("#") for line in shown if "#" in line}) == 1, "in one column"


def test_an_id_keeps_the_letters_below_marks(tmp_path):
    (tmp_path / "Größe (Prüfung).tsv").write_text("text\tlabel\n" + "".join(f"{s}\t{len(s) % 2}\n" for s in SENTENCES))
    assert draft_of_file(tmp_path / "Größe (Prüfung).tsv", set()).name == "grosse_prufung"
