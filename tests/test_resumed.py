"""`thaw.resume`: a training loop of one's own from stored states is the same loop from text."""

import copy
import json
import os
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer, Trainer, TrainingArguments

import thaw
from thaw.api import resumed
from thaw.core.errors import UserError
from tiny import WORDS, tiny_encoder

NOTEBOOK = Path(__file__).parents[1] / "docs/howto/notebook.md"
TEXTS = [" ".join(WORDS[(n + step) % len(WORDS)] for step in range(2 + n % 7)) for n in range(40)]
LABELS = [n % 2 for n in range(40)]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def encoder(request, tmp_path_factory):
    """A small encoder without dropout: from text its random numbers would be others."""
    folder = tiny_encoder(request.param, tmp_path_factory.mktemp(request.param))
    config = json.loads((folder / "config.json").read_text())
    off = {name: 0.0 for name in config if "dropout" in name and isinstance(config[name], float)}
    (folder / "config.json").write_text(json.dumps(config | off))
    return folder


class Classifier(nn.Module):
    """A linear head on the first token of the last hidden state."""

    def __init__(self, encoder: nn.Module, width: int):
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(width, 2)
        nn.init.constant_(self.head.weight, 0.1)

    def forward(self, states, input_ids, attention_mask, labels):
        logits = self.head(self.encoder(states, input_ids, attention_mask)[:, 0])
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


class FromText(Classifier):
    """The same on a whole model of transformers."""

    def forward(self, labels, **inputs):
        logits = self.head(self.encoder(**inputs)[0][:, 0])
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


def losses(model, data, collate, out) -> list[float]:
    """Return the loss of each of twelve updates of the Trainer, by plain descent: Adam makes steps of rounding."""
    options = {"max_steps": 12, "per_device_train_batch_size": 8, "learning_rate": 0.05, "logging_steps": 1}
    options |= {"optim": "sgd"}
    arguments = TrainingArguments(out, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, **options)
    trainer = Trainer(model, arguments, train_dataset=data, data_collator=collate)
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def test_the_trainer_has_the_same_losses_from_states_as_from_text(encoder, tmp_path):
    model, states = thaw.resume(encoder, TEXTS, layer=1, labels=LABELS, folder=tmp_path / "states")
    cached = Classifier(model, model.width)
    whole, tokenizer = AutoModel.from_pretrained(encoder), AutoTokenizer.from_pretrained(encoder)
    plain = FromText(whole, model.width)
    plain.head.load_state_dict(cached.head.state_dict())
    above = {name for named in model.encoder.components(model.trained).values() for name, _ in named}
    for name, parameter in whole.named_parameters():
        parameter.requires_grad_(name in above)
    start = copy.deepcopy(whole.state_dict())

    def from_text(items):
        batch = tokenizer([text for text, _ in items], padding=True, return_tensors="pt")
        return {**batch, "labels": torch.tensor([label for _, label in items])}

    due = losses(plain, list(zip(TEXTS, LABELS, strict=True)), from_text, tmp_path / "plain")
    assert losses(cached, states, states.collate, tmp_path / "cached") == pytest.approx(due, abs=1e-5)
    assert max(due) - min(due) > 1e-3, "nothing was learnt"
    ours, theirs = model.whole().state_dict(), whole.state_dict()
    assert [name for name in theirs if not torch.allclose(ours[name], theirs[name], atol=1e-5)] == []
    assert any(not torch.equal(start[name], ours[name]) for name in above)


def test_states_are_computed_once_and_a_layer_more_is_added(encoder, tmp_path):
    options = {"folder": tmp_path / "states", "dtype": "bf16"}
    _, first = thaw.resume(encoder, TEXTS, 1, **options)
    payload = first.store.payload_path(1)
    before = os.stat(payload).st_mtime_ns
    _, again = thaw.resume(str(encoder), TEXTS, 1, **options)
    assert again.store.folder == first.store.folder and os.stat(payload).st_mtime_ns == before
    _, more = thaw.resume(encoder, TEXTS, 2, **options)
    assert more.store.boundaries() == [1, 2] and "labels" not in more[0] and len(more) == 40
    _, other = thaw.resume(encoder, TEXTS[1:], 1, **options)
    assert other.store.folder != first.store.folder


def test_at_the_last_layer_nothing_is_computed_any_more(encoder, tmp_path):
    top, states = thaw.resume(encoder, TEXTS, 3, folder=tmp_path)
    batch = states.collate([states[0], states[5]])
    assert torch.equal(top(**batch), batch["states"]) and not [p for p in top.parameters() if p.requires_grad]
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    whole, length = AutoModel.from_pretrained(encoder)(**inputs)[0], len(states[5]["states"])
    assert torch.allclose(states[5]["states"], whole[1, :length], atol=1e-5)


def test_pairs_are_read_in_one_sequence(encoder, tmp_path):
    _, states = thaw.resume(encoder, [(text, "river") for text in TEXTS], 1, folder=tmp_path)
    _, single = thaw.resume(encoder, TEXTS, 1, folder=tmp_path)
    assert len(states[3]["input_ids"]) > len(single[3]["input_ids"])


@pytest.mark.parametrize(
    ("layer", "labels", "said"),
    [
        (4, None, "layer 4: .* has layers 1 to 3, and 0, its embeddings"),
        (1, [1], "40 texts but 1 labels; give one label"),
        ("1", None, "layer '1': "),
        (1, ["a"] * 40, "a label is 'a'; give numbers"),
        (1.0, None, "layer 1.0: "),
        (1, np.array(["a"] * 40), "a label is 'a'; give numbers"),
        (1, [float("nan")] * 40, "a label is nan; give numbers"),
    ],
)
def test_what_cannot_be_is_a_sentence(encoder, tmp_path, layer, labels, said):
    with pytest.raises(UserError, match=said):
        resumed.resume(encoder, TEXTS, layer, labels, folder=tmp_path)


@pytest.mark.parametrize(("key", "value"), [("max_length", 3), ("max_length", 9_999), ("dtype", "fp16")])
def test_a_setting_that_cannot_be_is_a_sentence(encoder, tmp_path, key, value):
    with pytest.raises(UserError, match=f"{key} {value}: "):
        thaw.resume(encoder, TEXTS, 1, folder=tmp_path, **{key: value})


@pytest.mark.parametrize("held", [np.array, pandas.Series, lambda values: pandas.Series(values, range(39, -1, -1))])
def test_arrays_and_columns_are_read_in_their_order(encoder, tmp_path, held):
    _, due = thaw.resume(encoder, TEXTS, 1, list(range(40)), folder=tmp_path)
    _, states = thaw.resume(encoder, held(TEXTS), 1, held(list(range(40))), folder=tmp_path)
    assert states.store.folder == due.store.folder and [item["labels"] for item in states] == list(range(40))


def test_the_page_of_notebooks_trains_and_gives_a_whole_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encoder = tiny_encoder("bert", tmp_path / "encoder", layers=6)
    (code,) = [part for part in NOTEBOOK.read_text().split("```") if "thaw.resume(encoder" in part]
    names = {"encoder": encoder, "texts": TEXTS, "labels": LABELS}
    exec(compile(code.removeprefix("python").replace("max_steps=200", "max_steps=3"), NOTEBOOK.name, "exec"), names)
    start, trained = AutoModel.from_pretrained(encoder).state_dict(), names["model"].state_dict()
    moved = {name.split(".")[2] for name in start if not torch.equal(start[name], trained[name])}
    assert moved == {"4", "5"}


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([], "give a list with one text or more"),
        ("abc", "give a list with one text or more"),
        (pandas.DataFrame({"text": ["a"]}), "give a list with one text or more"),
        (["a", 3], r"texts\[1\] is 3; give texts alone"),
        ([("a", "b"), "c"], r"texts\[1\] is 'c'; give texts alone, or pairs"),
    ],
)
def test_what_is_no_text_is_refused_before_anything_is_written(encoder, tmp_path, texts, said):
    with pytest.raises(UserError, match=said):
        thaw.resume(encoder, texts, 1, folder=tmp_path / "states")
    assert not (tmp_path / "states").exists()


def test_an_encoder_that_was_written_again_has_states_of_its_own(tmp_path):
    folder, states = tiny_encoder("bert", tmp_path / "encoder"), tmp_path / "states"
    _, before = thaw.resume(folder, TEXTS, 1, folder=states)
    model = AutoModel.from_pretrained(folder)
    for parameter in model.parameters():
        parameter.data *= 1.5
    model.save_pretrained(folder)
    _, after = thaw.resume(folder, TEXTS, 1, folder=states)
    assert not torch.allclose(before[0]["states"], after[0]["states"])
    with pytest.raises(UserError, match="minilm is no folder, and no owner/name of the Hub"):
        thaw.resume("minilm", TEXTS, 1, folder=states)
