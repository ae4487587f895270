"""Aliases are the same key, settings have all that an entry states, and names of other libraries get a hint."""

from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from plans import plan_of
from thaw.core.errors import UserError
from thaw.declarations.objective_kinds import OBJECTIVES
from thaw.outputs.report import methods
from thaw.schema.catalogue import BLOCKS, PROBE_CONFIGS, Catalogue, shipped
from thaw.schema.distillation import AttentionConfig, DistilConfig, HiddenConfig, LogitsConfig
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.schema.head import HeadConfig
from thaw.schema.keys import ConfigModel, documented, fields_by_name, unknown_key
from thaw.schema.layers import (
    WAYS,
    LayerAttentionConfig,
    OneLayerConfig,
    PlainCombinationConfig,
    ScalarMixConfig,
)
from thaw.schema.phases import EarlyStoppingConfig, InsertConfig, PhaseConfig, SelectConfig, UnfreezeConfig
from thaw.schema.strategy import ReadsConfig, SearchConfig, StartConfig, StrategyConfig, TeacherConfig
from thaw.schema.student import StudentConfig
from thaw.schema.validation import validate
from thaw.schema.yaml_files import Document, read_yaml
from thaw.words import settings

PHASE = {"train": ["head"]}
# a model: settings around which each of its keys is changed, where it can be
AROUND = {
    PhaseConfig: [
        {"train": ["all"]},
        {"train": ["all"], "schedule": "slanted_triangular"},
        {"train": ["all"], "updates": 9},
        PHASE | {"optimizer": "lbfgs"},
        {"train": ["all"], "frozen_dropout": True},
        {"train": ["head"], "insert": {"kind": "adapters"}},
    ],
    InsertConfig: [{"kind": "lora"}, {"kind": "adapters"}],
    UnfreezeConfig: [{}],
    EarlyStoppingConfig: [{"gap": 0.1}],
    SelectConfig: [{"by": "group_lasso"}, {"by": "clusters"}],
    StartConfig: [{"strategy": "full"}, {"strategy": "full", "task": "mnli"}],
    SearchConfig: [{"grid": {"rate": [1e-4]}}],
    StudentConfig: [{"layers": 3}],
    TeacherConfig: [{"strategy": "full"}],
    LogitsConfig: [{}, {"weight": 2}],
    HiddenConfig: [{}, {"weight": 2}],
    AttentionConfig: [{}, {"weight": 2}],
    DistilConfig: [{"logits": {}}, {"hidden": {}}],
    OBJECTIVES["replace"].settings: [{}],
    StrategyConfig: [
        {"phases": [PHASE]},
        {"phases": [PHASE | {"distil": {"logits": {}}}], "teacher": "full"},
        {"phases": [PHASE | {"optimizer": "lbfgs"}]},
    ],
    ReadsConfig: [{"pooling": "mean"}, {"layers": {"layer": 2}}],
    FurtherPretrainingConfig: [{"phase": {}}],
    OneLayerConfig: [{}, {"layer": "lowest"}],
    PlainCombinationConfig: [{"combine": "mean"}],
    ScalarMixConfig: [{"combine": "mix"}],
    LayerAttentionConfig: [{"combine": "attention"}],
    WAYS["ladder"]: [{"combine": "ladder"}],
    HeadConfig: [{"kind": "mlp"}],
}
# other values of keys whose types alone do not say which there are
OTHERS = {
    (PhaseConfig, "train"): ["embeddings"],
    (PhaseConfig, "betas"): (0.7, 0.99),
    (PhaseConfig, "contrastive"): {"balance": False},
    (PhaseConfig, "coral"): {"to": "mnli", "weight": 0.5},
    (WAYS["ladder"], "width"): 64,
    (HeadConfig, "kind"): "bilstm",
    (HeadConfig, "options"): {"size": 7},
    (FurtherPretrainingConfig, "phase"): {"epochs": 9},
    (SearchConfig, "grid"): {"rate": [1e-4, 1e-5]},
    (StrategyConfig, "sweep"): {"k": "layers"},
    (StrategyConfig, "phases"): [PHASE | {"epochs": 9}],
    (StrategyConfig, "reads"): {"layers": {"combine": "concat"}},
    (ReadsConfig, "layers"): {"combine": "concat"},
    (HiddenConfig, "map"): {2: 4},
    (AttentionConfig, "map"): {2: 4},
    (AttentionConfig, "of"): ["qk", "vv"],
    (StudentConfig, "start"): "random",
    (OBJECTIVES["replace"].settings, "full"): 0.25,
    (StrategyConfig, "teacher"): "other",
    (StrategyConfig, "search"): {"grid": {"epochs": [1, 2]}},
}


def others(annotation, value) -> list:
    """Return values of a type that differ from one."""
    inner = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return others(inner[0], value)
    if get_origin(annotation) in (Union, UnionType):
        return [other for kind in inner if kind is not NoneType for other in others(kind, value)]
    if get_origin(annotation) is Literal:
        return [word for word in inner if word != value]
    if get_origin(annotation) is list:
        return [[other] for other in others(inner[0], None)]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [around for around in AROUND.get(annotation, []) if around != value]
    numbers = {bool: [not value], int: [5, 2], float: [0.5, 2.5], str: ["other"]}
    return [other for other in numbers.get(annotation, []) if other != value]


@pytest.mark.parametrize("block", BLOCKS)
def test_every_shipped_entry_is_right(catalogue, block):
    """A plan builds those alone that it asks for; of folders of your own all, so that a mistake is found at once."""
    names = catalogue.ids(block)
    if block == "encoders":
        names += [f"{name}_random" for name in names if not name.endswith("_random")]
    if block == "probes":
        names += PROBE_CONFIGS.without_keys()
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


ALIASES = [(model, alias, name) for model in AROUND for alias, name in fields_by_name(model).items() if alias != name]


@pytest.mark.parametrize(("kind", "alias", "name"), ALIASES, ids=[f"{m.__name__}.{a}" for m, a, _ in ALIASES])
def test_an_alias_is_the_same_key(kind, alias, name):
    around = AROUND[kind][0] | ({"updates": 9} if name == "judge" else {})  # which has no meaning without updates
    usual = getattr(kind.model_validate(around), name)
    value = OTHERS.get((kind, name)) or next(iter(others(kind.model_fields[name].annotation, usual)))
    written = kind.model_validate(around | {alias: value})
    assert written == kind.model_validate(around | {name: value})
    assert name in written.model_dump(exclude_defaults=True)
    with pytest.raises(ValidationError, match=f"{name} and {alias} are two names of one key"):
        kind.model_validate(around | {name: value, alias: value})


def test_a_grid_takes_the_same_names_as_a_phase():
    assert SearchConfig(grid={"2.lr": [1e-4], "num_train_epochs": [2]}).grid == {"2.rate": [1e-4], "epochs": [2]}
    with pytest.raises(ValidationError, match="did you mean 'learning_rate'"):
        SearchConfig(grid={"learning_rat": [1e-4]})
    with pytest.raises(ValidationError, match="lr is here twice"):
        SearchConfig(grid={"rate": [1e-4], "lr": [1e-5]})


def _subclasses(model):
    return {model}.union(*map(_subclasses, model.__subclasses__()))


@pytest.mark.parametrize("model", sorted(_subclasses(ConfigModel), key=str), ids=lambda model: model.__name__)
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


def test_validate_keeps_the_place_of_an_alias(tmp_path):
    path = tmp_path / "phase.yaml"
    path.write_text("train: [all]\nnum_train_epochs: 0\n")
    document: Document = read_yaml(path)
    with pytest.raises(UserError, match=f"{path}:2: num_train_epochs: "):
        validate(PhaseConfig, document.content, document)
