"""Every key of a strategy, a head and further pretraining has a sentence of its own, aliases are the same key, and the
names of other libraries get a hint at the right one."""

from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError

from thaw.core.errors import UserError
from thaw.outputs.report import methods
from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan
from thaw.schema.catalogue import BLOCKS, PROBE_CONFIGS, Catalogue, shipped
from thaw.schema.distillation import AttentionConfig, DistilConfig, HiddenConfig, LogitsConfig, ReplaceConfig
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.schema.head import HeadConfig, head_text
from thaw.schema.insert import InsertConfig
from thaw.schema.keys import ConfigModel, Context, clauses, documented, fields_by_name, key_of, prose, unknown_key
from thaw.schema.layers import (
    LadderConfig,
    LayerAttentionConfig,
    OneLayerConfig,
    PlainCombinationConfig,
    ScalarMixConfig,
)
from thaw.schema.phase_parts import EarlyStoppingConfig, SelectConfig, UnfreezeConfig
from thaw.schema.phases import PhaseConfig
from thaw.schema.strategy import StrategyConfig, methods_text
from thaw.schema.strategy_parts import SEARCHED, SearchConfig, StartConfig, TeacherConfig
from thaw.schema.strategy_reads import ReadsConfig
from thaw.schema.student import StudentConfig
from thaw.schema.trainer_keys import EXPERIMENT_HINTS, PEFT_HINTS, PHASE_HINTS
from thaw.schema.validation import validate
from thaw.schema.yaml_files import Document, read_yaml

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
    ReplaceConfig: [{}],
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
    LadderConfig: [{"combine": "ladder"}],
    HeadConfig: [{"kind": "mlp"}],
}
# other values of keys whose types alone do not say which there are
OTHERS = {
    (PhaseConfig, "train"): ["embeddings"],
    (PhaseConfig, "betas"): (0.7, 0.99),
    (PhaseConfig, "coral"): {"to": "mnli", "weight": 0.5},
    (PhaseConfig, "auxiliary"): {"tasks": ["mnli"], "weight": 0.5},
    (LadderConfig, "width"): 64,
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
    (ReplaceConfig, "full"): 0.25,
    (StrategyConfig, "teacher"): "other",
    (StrategyConfig, "search"): {"grid": {"epochs": [1, 2]}},
}
SILENT = {"label", "about", "cite"}  # only printed: no sentence follows from them
KEYS = [
    (model, name)
    for model in AROUND
    for name, field in model.model_fields.items()
    if name not in SILENT and len(get_args(field.annotation)) != 1  # with one word alone it names the model
]


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


def said(model: ConfigModel) -> str:
    return prose(clauses(model, Context()))


@pytest.mark.parametrize(("kind", "name"), KEYS, ids=[f"{model.__name__}.{name}" for model, name in KEYS])
def test_every_key_changes_what_the_methods_say(kind, name):
    tried = 0
    for around in AROUND[kind]:
        before = kind.model_validate(around)
        other = OTHERS.get((kind, name))
        annotation = kind.model_fields[name].annotation
        for value in [other] if other is not None else others(annotation, getattr(before, name)):
            try:
                after = kind.model_validate(around | {name: value})
            except ValidationError:
                continue
            if after == before:
                continue
            tried += 1
            assert said(after) != said(before), f"{name}: {value} is not in: {said(after)}"
    assert tried, "give a value of it in OTHERS, or settings in AROUND that it goes with"


def test_a_key_without_a_sentence_is_noticed():
    """The test above fails by itself for a new field that carries no Key."""

    class Wider(PhaseConfig):
        cooldown: int = 0

    assert said(Wider(train=["all"], cooldown=5)) == said(Wider(train=["all"]))


@pytest.mark.parametrize("block", BLOCKS)
def test_every_shipped_entry_is_right(catalogue, block):
    """A plan builds those alone that it asks for; of folders of your own all, so that a mistake is found at once."""
    names = catalogue.ids(block)
    if block == "encoders":
        names += [f"{name}_random" for name in names if not name.endswith("_random")]
    if block == "probes":
        names += PROBE_CONFIGS.without_keys()
    assert all([catalogue.get(block, name, "test") for name in names])


def test_an_entry_of_ones_own_that_nobody_asks_for_is_checked_too(home, tmp_path):
    (tmp_path / "heads.yaml").write_text("heads: {mine: {kind: linear, poling: mean}}")
    with pytest.raises(UserError, match="heads.yaml:1: heads.mine.poling: unknown key; did you mean 'pooling'"):
        Catalogue([*shipped(home), tmp_path])


def test_no_two_shipped_strategies_or_heads_read_alike(home):
    catalogue = Catalogue(shipped(home))
    entries = {name: catalogue.get("strategies", name, "test") for name in catalogue.ids("strategies")}
    further = {
        name: catalogue.get("further_pretraining", name, "test") for name in catalogue.ids("further_pretraining")
    }
    context = Context(entries={"further_pretraining": further})
    texts = [methods_text(entry, context) for entry in entries.values()]
    same = [name for name, text in zip(entries, texts, strict=True) if texts.count(text) > 1]
    assert same == []
    assert not [text for text in texts if "None" in text or ".." in text or ", ," in text]


@pytest.mark.parametrize(
    ("strategy", "sentences"),
    [
        (
            {"phases": [{"train": ["head"], "insert": {"kind": "adapters", "size": 8, "top": "k"}, "epochs": 20}]},
            [
                "Inserts and trains bottleneck adapters (with the layer norms) in the last k layers, bottleneck size 8"
                ", weights of standard deviation 1e-3 at the start."
            ],
        ),
        (
            {"phases": [{"train": ["head", {"top": 3, "only": "attention"}]}]},
            ["Trains the head and the attention matrices of the last 3 layers."],
        ),
        (
            {"phases": [{"train": ["all"], "lr": 1e-3}], "search": {"grid": {"lr": [1e-4, 5e-5]}, "seeds": [1, 2]}},
            [
                "learning rate chosen by search",
                "Search: learning rate in {1e-4, 5e-5}, chosen by the best mean validation score over 1 seed (1)",
            ],
        ),
        (
            {"phases": [PHASE, {"train": ["all"]}], "search": {"grid": {"2.learning_rate": [1e-4, 5e-5]}}},
            [
                "Phase 1: Trains the head on the frozen encoder. AdamW, learning rate 2e-5,",
                "learning rate of phase 2 in",
            ],
        ),
        (
            {"phases": [{"train": ["all"]}], "rates_from": "full"},
            ["learning rate from the search of “Whole”", "Search of “Whole”, on the same task with the same head: "],
        ),
        (
            {"phases": [{"train": ["all"]}], "after": "full"},
            ["Starts from the run of “Whole”, last epoch. (That run: Full fine-tuning: trains the head, all layers"],
        ),
        (
            {"phases": [{"train": ["all"]}], "sweep": {"data_seed": [1, 2]}},
            ["One run for each data seed in {1, 2}.", "data seed varied"],
        ),
    ],
)
def test_what_the_methods_say(strategy, sentences):
    full = StrategyConfig(phases=[{"train": ["all"]}], search={"grid": {"rate": [1e-4, 5e-5]}})
    entries = {"searches": {"full": full}, "starts": {"full": full}}
    text = methods_text(
        StrategyConfig.model_validate(strategy), Context({"strategies": {"full": "Whole"}}, entries, search_seeds=1)
    )
    for sentence in sentences:
        assert sentence in text, text


def test_the_report_of_a_plan_has_all_that_its_sentences_need(home):
    """Strategies that others start from, or whose search they take, are described though the experiment lacks them."""
    wish = {"strategies": ["lee_top_k", "stack_then_finetune"], "search_seeds": 2, "heads": ["linear", "linear_mean"]}
    plan = load_plan(read_config([str(home / "tests/base.yaml")], wish | {"outputs": ["layers"]}), home)
    spec = plan.job("report", plan.experiments[0].experiment).spec
    text = methods.strategy("lee_top_k", spec)
    assert (
        "learning rate from the search of “Full fine-tuning (Lee et al.)”" in text and "over 2 seeds (101, 102)" in text
    )
    assert text.endswith("Points shown: k = 0, k = 1, k = 2, k = 3, k = 4, k = 5, k = 6.")
    assert "(That run: Trains the head on the frozen encoder. AdamW" in methods.strategy("stack_then_finetune", spec)
    assert [text.split(",")[1] for _, text in methods.heads(spec)] == [
        " pooling by the first token (of words: the first piece of each)",
        " pooling by the mean of the tokens (of words: the first piece of each)",
    ]


@pytest.mark.parametrize(
    ("kinds", "pooled"),
    [
        ({"texts": True}, "the mean of the tokens"),
        ({"texts": False, "words": True}, "the first piece of each word"),
        ({"texts": True, "words": True}, "the mean of the tokens (of words: the first piece of each)"),
    ],
)
def test_the_methods_say_what_is_pooled_on_the_tasks_of_the_experiment(kinds, pooled):
    strategy = StrategyConfig(phases=[PHASE], reads={"pooling": "mean"})
    assert f"The head pools by {pooled}." in methods_text(strategy, Context(**kinds))
    assert f"pooling by {pooled}, " in head_text(HeadConfig(kind="linear", pooling="mean"), Context(**kinds))
    assert "pooling by the mean of the tokens," in head_text(
        HeadConfig(kind="cosine", pooling="mean"), Context(**kinds)
    )


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
    assert {key_of(PhaseConfig, name).name for name in SEARCHED} & {""} == set()
    with pytest.raises(ValidationError, match="did you mean 'learning_rate'"):
        SearchConfig(grid={"learning_rat": [1e-4]})
    with pytest.raises(ValidationError, match="lr is here twice"):
        SearchConfig(grid={"rate": [1e-4], "lr": [1e-5]})


def test_no_accepted_name_has_a_hint():
    for model in (PhaseConfig, StrategyConfig, ExperimentConfig, InsertConfig, FurtherPretrainingConfig):
        accepted = fields_by_name(model) if issubclass(model, ConfigModel) else model.model_fields
        assert set(accepted) & set(model.hints) == set(), model
    assert set(PHASE_HINTS) & set(fields_by_name(PhaseConfig)) == set()


WRITTEN = {
    "learning_rate": "strategies.mine.learning_rate: it is a key of a phase; write it in phases:",
    "warmup_steps": "strategies.mine.warmup_steps: no key here, and in a phase: .* write warmup_ratio: 0.1",
    "phazes": "strategies.mine.phazes: unknown key; did you mean 'phases'",
}


@pytest.mark.parametrize("word", WRITTEN)
def test_a_strategy_gives_hints_for_what_others_write(tmp_path, word):
    path = tmp_path / "strategies.yaml"
    path.write_text(f"strategies:\n  mine:\n    phases: [{{train: [all]}}]\n    {word}: 1\n")
    with pytest.raises(UserError, match=f"{path}:4: {WRITTEN[word]}"):
        Catalogue([tmp_path])


PHASE_WRITTEN = {
    "freeze: 6": r"phases.0.freeze: frozen is what train: does not name; write train: \[head\]",
    "gradient_accumulation_steps: 4": "not needed: batch_size is the number of examples of one update",
    "fp16: true": "fp16 is not available; write precision: bf16",
    "bf16: true": "write precision: bf16",
    "lr_scheduler_type: cosine": "write schedule: linear, constant, cosine, slanted_triangular, plateau",
    "label_smoothing: 0.1": "label smoothing is not available",
    "learning_rat: 1": "unknown key; did you mean 'learning_rate'",
    "learning_rate: -1": "phases.0.learning_rate: input should be greater than 0",
    "lr: -1": "phases.0.lr: input should be greater than 0",
    "insert: {kind: lora, r: 0}": "phases.0.insert.r: input should be greater than or equal to 1",
    "insert: {kind: lora, lora_dropout: 0.1}": "there is no dropout in LoRA here",
}


@pytest.mark.parametrize("line", PHASE_WRITTEN)
def test_a_phase_gives_hints_in_the_words_that_were_written(tmp_path, line):
    path = tmp_path / "strategies.yaml"
    path.write_text(f"strategies:\n  mine:\n    phases:\n      - train: [all]\n        {line}\n")
    with pytest.raises(UserError, match=f"{path}:5: strategies.mine.*{PHASE_WRITTEN[line]}"):
        Catalogue([tmp_path])


def test_a_mistake_within_a_choice_of_types_has_a_plain_path(tmp_path):
    path = tmp_path / "strategies.yaml"
    path.write_text(
        "strategies:\n  mine:\n    phases: [{train: [all]}]\n    after:\n      strategy: a\n      taks: b\n"
    )
    with pytest.raises(UserError, match=rf"{path}:6: strategies.mine.after.taks: unknown key; did you mean 'task'\?"):
        Catalogue([tmp_path])


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
    (tmp_path / "outputs.yaml").write_text("outputs: {mine: {kind: comparison_table, caption: Mine.}}")
    with pytest.raises(UserError, match="outputs.mine: the key 'reference' is missing: the strategy that trains"):
        Catalogue(folders)


@pytest.mark.parametrize("word", sorted(EXPERIMENT_HINTS))
def test_an_experiment_gives_hints_too(word):
    assert unknown_key(ExperimentConfig, word) == EXPERIMENT_HINTS[word]


def test_hints_name_keys_that_exist(home, tmp_path):
    """What a hint says to write can be written: each `key: value` at its end is a key of the model."""
    for hints, model in ((PHASE_HINTS, PhaseConfig), (PEFT_HINTS, InsertConfig), (EXPERIMENT_HINTS, None)):
        accepted = fields_by_name(model) if model else ExperimentConfig.model_fields
        for word, hint in hints.items():
            for key in [part.split(":")[0].split()[-1] for part in hint.split("write ")[1:] if ":" in part]:
                assert key in accepted, f"{word}: {hint}"


def test_schemas_take_documented_names_and_aliases():
    schema = PhaseConfig.model_json_schema()["properties"]
    assert {"learning_rate", "rate", "lr", "max_grad_norm", "clip", "checkpoint"} <= set(schema)
    assert schema["lr"]["description"] == "the same as learning_rate"
    assert [documented(PhaseConfig, name) for name in ("rate", "epochs", "stop")] == [
        "learning_rate",
        "epochs",
        "early_stopping",
    ]


def test_validate_keeps_the_place_of_an_alias(tmp_path):
    path = tmp_path / "phase.yaml"
    path.write_text("train: [all]\nnum_train_epochs: 0\n")
    document: Document = read_yaml(path)
    with pytest.raises(UserError, match=f"{path}:2: num_train_epochs: "):
        validate(PhaseConfig, document.content, document)
