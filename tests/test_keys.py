"""Aliases are the same key, settings have all that an entry states, and names of other libraries get a hint."""

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from plans import plan_of
from thaw.outputs.report import methods
from thaw.schema.catalogue import BLOCKS, Catalogue, shipped
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.schema.head import HeadConfig
from thaw.schema.keys import ConfigModel, documented, fields_by_name, key_of, unknown_key
from thaw.schema.phases import PhaseConfig
from thaw.schema.strategy import SearchConfig, StrategyConfig
from thaw.words import settings


@pytest.mark.parametrize("block", BLOCKS)
def test_every_shipped_entry_is_right(catalogue, block):
    """A plan builds those alone that it asks for; of folders of your own all, so that a mistake is found at once."""
    names = catalogue.ids(block)
    if block == "encoders":
        names += [f"{name}_random" for name in names if not name.endswith("_random")]
    entries = [catalogue.get(block, name, "test") for name in names]
    assert entries and all(entry.label for entry in entries if block in ("tasks", "encoders", "heads", "strategies"))


def test_no_two_shipped_strategies_have_the_same_settings(catalogue):
    entries = [catalogue.get("strategies", name, "test") for name in catalogue.ids("strategies")]
    rows = [settings.of(entry) for entry in entries]
    assert [row for row in rows if rows.count(row) > 1] == []
    assert "None" not in str(rows)


def test_settings_can_be_written_again(catalogue):
    """What is shown of a strategy, a head or a further pretraining is the entry itself, as lines of its file."""
    for block, model in (
        ("strategies", StrategyConfig),
        ("heads", HeadConfig),
        ("further_pretraining", FurtherPretrainingConfig),
    ):
        for name in catalogue.ids(block):
            entry = catalogue.get(block, name, "test")
            bare = entry.model_copy(update={key: None for key in ("label", "about") if hasattr(entry, key)})
            bare = bare.model_copy(update={"cite": []} if hasattr(entry, "cite") else {})
            assert model.model_validate(yaml.safe_load("\n".join(settings.of(entry)))) == bare
    assert settings.defaults()["A phase with optimizer: lbfgs"] == ["l2: [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1]"]
    assert {"learning_rate: 2e-5", "batch_size: 32", "epochs: 3"} < set(settings.defaults()["A phase"])


def test_the_report_of_a_plan_has_the_settings_of_all_that_its_runs_need():
    """Strategies that others start from, or whose search they take, are listed though the experiment lacks them."""
    wish = {"strategies": ["lee_top_k", "stack_then_finetune"], "search_seeds": 2, "heads": ["linear", "linear_mean"]}
    plan = plan_of(**wish | {"outputs": ["layers"]})
    spec = plan.job("report", plan.name).spec
    found = {one["id"]: one for one in methods.strategies(spec)}
    assert [id for id, one in found.items() if one["shown"]] == ["lee_top_k", "stack_then_finetune"]
    lines = found["lee_top_k"]["settings"]
    assert lines[-1] == "# points shown: k = 0, k = 1, k = 2, k = 3, k = 4, k = 5, k = 6"
    source = yaml.safe_load("\n".join(lines))["rates_from"]
    assert "search" in yaml.safe_load("\n".join(found[source]["settings"])) and not found[source]["shown"]
    assert found[source]["settings"][-1] == "# search_seeds of the experiment: 2"
    assert yaml.safe_load("\n".join(found["stack_then_finetune"]["settings"]))["after"] in found
    heads = methods.entries(spec["heads"], HeadConfig)
    assert [one["settings"] for one in heads] == [["kind: linear"], ["kind: linear", "pooling: mean"]]


def test_a_grid_takes_the_same_names_as_a_phase():
    assert SearchConfig(grid={"2.lr": [1e-4], "num_train_epochs": [2]}).grid == {"2.rate": [1e-4], "epochs": [2]}
    with pytest.raises(ValidationError, match="did you mean 'learning_rate'"):
        SearchConfig(grid={"learning_rat": [1e-4]})
    with pytest.raises(ValidationError, match="lr is here twice"):
        SearchConfig(grid={"rate": [1e-4], "lr": [1e-5]})


def _subclasses(model):
    return {model}.union(*map(_subclasses, model.__subclasses__()))


MODELS = sorted(_subclasses(ConfigModel), key=str)


def test_an_alias_is_the_same_key():
    written = PhaseConfig(train=["all"], lr=1e-4, num_train_epochs=2)
    assert written == PhaseConfig(train=["all"], rate=1e-4, epochs=2)
    assert written.model_dump(exclude_unset=True).keys() == {"train", "rate", "epochs"}
    with pytest.raises(ValidationError, match="rate and lr are two names of one key"):
        PhaseConfig(rate=1e-4, lr=1e-4)
    for model in MODELS:
        words = [word for name in model.model_fields for word in {name, *key_of(model, name).aliases}]
        assert len(words) == len(set(words)), f"{model.__name__}: one name of two keys"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_hint_names_a_key_and_no_key_has_a_hint(model):
    known = fields_by_name(model)
    assert set(known) & set(model.hints) == set()
    for word, name in ((word, name) for word, name in model.hints.items() if " " not in name):
        assert not name or documented(model, known[name]) == name, f"{word}: {name}"
        said = unknown_key(model, word)
        assert said == "no key here sets it; leave it out" if not name else said.startswith(f"write {name}: ")


def test_own_keys_replace_those_of_a_base_under_any_name(tmp_path):
    text = "further_pretraining: {a: {phase: {lr: 1}, mask: 0.2}, b: {base: a, phase: {rate: 2}}}"
    (tmp_path / "encoders.yaml").write_text(text)
    entry = Catalogue([tmp_path]).get("further_pretraining", "b", "test")
    assert entry.phase.rate == 2 and entry.mask == 0.2
    text = "strategies: {a: {from: x, phases: [{train: [all]}]}, b: {base: a, origin: y}}"
    (tmp_path / "strategies.yaml").write_text(text)
    assert Catalogue([tmp_path]).get("strategies", "b", "test").origin == "y"


def test_keys_of_tasks_and_outputs_have_a_name_for_people_and_a_stored_one(tmp_path):
    folders = [*shipped(Path(__file__).parents[1]), tmp_path]
    task, output = "tasks: {{mine: {{base: mnli_to_others, {}: [{{task: rte}}]}}}}", "outputs: {{mine: {{base: {}}}}}"
    for also in ("transfer_sets", "also"):
        (tmp_path / "tasks.yaml").write_text(task.format(also))
        (tmp_path / "outputs.yaml").write_text(output.format("comparisons, reference: other"))
        catalogue = Catalogue(folders)
        assert [other.task for other in catalogue.get("tasks", "mine", "test").also] == ["rte"]
        assert catalogue.get("outputs", "mine", "test").reference == "other"
        assert catalogue.place("tasks", "mine", "transfer_sets").endswith(f"tasks.yaml:1: tasks.mine.{also}")
