"""The metadata of a model card, as huggingface_hub reads them."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import ModelCard

from thaw.exporting.model_card import Stated, metadata

FORM = "sequence_classification"


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "README.md").write_text(
        metadata(run(), FORM, "org/encoder", Stated("mit", ("en",))) + "\n\n# A model\n"
    )
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    return tmp_path


def run(**card):
    """Return what a card reads of a run on a data set of the Hub."""
    source = {"kind": "hub", "id": "org/data", "config": "small", "revision": "abc"} | card
    task = {"id": "topics", "metrics": ["f1_micro", "f1_macro"], "test": ["test"], "target": "labels"}
    scores = {"validation": {"f1_micro": 0.9, "f1_macro": 0.8}, "test": {"f1_micro": 0.75, "f1_macro": None}}
    corpus = SimpleNamespace(card={"corpus": "topics", "source": source})
    return SimpleNamespace(
        task=task, corpus=corpus, target="label_set", encoder=Path("minilm"), metrics={"scores": scores}
    )


def test_the_hub_reads_the_card(folder):
    data = ModelCard.load(folder / "README.md").data
    assert (data.license, data.language, data.base_model, data.datasets) == ("mit", ["en"], "org/encoder", ["org/data"])
    (result,) = data.eval_results  # a score that is not defined is left out
    assert (result.metric_type, result.metric_value, result.dataset_split) == ("f1", 0.75, "test")
    assert (result.dataset_type, result.dataset_config, result.task_type) == (
        "org/data",
        "small",
        "text-classification",
    )


def test_what_nobody_states_is_left_out():
    text = metadata(run(kind="files"), FORM, None, Stated())
    assert not any(word in text for word in ("license", "language:", "base_model", "datasets"))
