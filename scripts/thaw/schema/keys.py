"""What a field of a configuration carries besides its type: other names for it and its unit.

    rate: Annotated[float, Key(aliases=("learning_rate", "lr"))] = Field(2e-5, description="...")

A model stores a value under the field's own name, which specs have. People may also write an alias; the first one
is the documented name.
"""

import difflib
import functools
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ConfigDict, model_validator


@dataclass(frozen=True)
class Key:
    """How else a field may be written, the documented name first, and its unit."""

    aliases: tuple[str, ...] = ()
    unit: str = ""


class Inner(NamedTuple):
    """A model whose keys people write one level too high, and where they belong."""

    model: type[BaseModel]
    where: str


class ConfigModel(BaseModel):
    """Settings that people write: unknown keys are errors, aliases are stored under the field's own name."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    # names that others would write here, with the key that says it; without one where none does, or with a sentence
    hints: ClassVar[dict[str, str]] = {}
    inner: ClassVar[Inner | None] = None

    @model_validator(mode="before")
    @classmethod
    def _stored_names(cls, values):
        return stored(cls, values) if isinstance(values, dict) else values

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema, handler):
        """Name each property as it is documented, followed by each alias."""
        schema = handler(core_schema)
        target = handler.resolve_ref_schema(schema)
        known, properties = fields_by_name(cls), {}
        for name, entry in target.get("properties", {}).items():
            properties[documented(cls, name)] = entry
        for alias, name in known.items():
            if alias not in properties and name in target.get("properties", {}):
                same = {"description": f"the same as {documented(cls, name)}"}
                properties[alias] = target["properties"][name] | same
        if properties:
            target["properties"] = properties
        if "required" in target:
            target["required"] = [documented(cls, name) for name in target["required"]]
        return schema

    def meaningless(self) -> dict[str, str]:
        """Return the fields without a meaning here, each with the setting that takes it: `with insert: ia3`."""
        return {}

    @model_validator(mode="after")
    def _no_key_without_meaning(self):
        refused = self.meaningless()
        for name in sorted(self.model_fields_set & refused.keys()):
            raise ValueError(f"{both_names(type(self), name)} has no meaning {refused[name]}; leave it out")
        return self


def key_of(model: type[BaseModel], name: str) -> Key:
    """Return what a field carries; a Key that says nothing where it carries none."""
    return next((item for item in model.model_fields[name].metadata if isinstance(item, Key)), Key())


@functools.cache
def fields_by_name(model: type[BaseModel]) -> dict[str, str]:
    """Return every name that people may write for a field of a model, with the field's own name."""
    return {word: name for name in model.model_fields for word in (name, *key_of(model, name).aliases)}


def models_within(annotation) -> list[type[BaseModel]]:
    """Return the models within an annotation, as in `list[Phase]` or `Id | Start | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in models_within(inner)]


def documented(model: type[BaseModel], name: str) -> str:
    """Return the name that the documentation has for a field."""
    return next(iter(key_of(model, name).aliases), name)


def both_names(model: type[BaseModel], name: str) -> str:
    """Return a field's documented name, and its own where that is another: `checkpoint (pick)`."""
    shown = documented(model, name)
    return shown if shown == name else f"{shown} ({name})"


def stored(model: type[BaseModel], values: dict) -> dict:
    """Return values under the fields' own names; two names of one field are a ValueError."""
    known, by_field = fields_by_name(model), {}
    for written, value in values.items():
        name = known.get(written, written)
        if name in by_field:
            other = next(word for word in values if known.get(word, word) == name)
            raise ValueError(f"{other} and {written} are two names of one key; leave one out")
        by_field[name] = value
    return by_field


def same_key(model: type[BaseModel], word: str, others) -> bool:
    """Return whether a key is among others, under this or another of its names."""
    known = fields_by_name(model)
    return known.get(word, word) in {known.get(other, other) for other in others}


def unknown_key(model: type[BaseModel], word: str) -> str:
    """Return what to say of a key that a model lacks: what to write instead, or the nearest name."""
    hints, inner, known = getattr(model, "hints", {}), getattr(model, "inner", None), fields_by_name(model)
    if said := hints.get(word):
        if " " in said:
            return said
        field = model.model_fields[known[said]]
        listed = get_origin(field.annotation) is Literal
        return f"write {said}: {', '.join(map(str, get_args(field.annotation))) if listed else field.description}"
    if word in hints:
        return "no key here sets it; leave it out"
    if inner and word in fields_by_name(inner.model):
        return f"it is a key of a phase; write it {inner.where}"
    if inner and word in inner.model.hints:
        return f"no key here, and in a phase: {unknown_key(inner.model, word)}"
    close = difflib.get_close_matches(str(word), list(known), n=1)
    if close:
        return f"unknown key; did you mean '{documented(model, known[close[0]])}'?"
    return f"unknown key; there are {', '.join(sorted({documented(model, name) for name in known.values()}))}"


def stated(model: BaseModel, every: bool = False) -> dict:
    """Return the settings of a model under their documented names, without those that equal the default.

    Args: the model; every: with the defaults, but for what is empty, off, or has no meaning here.
    """
    refused, values = model.meaningless() if isinstance(model, ConfigModel) else {}, {}
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        default = value == field.get_default(call_default_factory=True) and not field.is_required()
        if name not in refused and (not default or every and value):
            values[documented(type(model), name)] = _plain(value)
    return values


def _plain(value):
    """Return a value of a field without models in it; a single model has its defaults, those of a list have not."""
    if isinstance(value, list | tuple):
        return [stated(one) if isinstance(one, BaseModel) else one for one in value]
    return stated(value, every=True) if isinstance(value, BaseModel) else value


# What users of Hugging Face and PyTorch write that is no key here: for each name its key, none, or a sentence.
# Names with exactly the same meaning as a key of Thaw are aliases of its field.
NOT_HERE = ""  # nothing sets it: it is fixed, decided by the workflow, or changes no result

OF_A_PHASE = {
    **dict.fromkeys(("freeze", "freeze_encoder", "freeze_layers", "num_frozen_layers", "freeze_embeddings"), "train"),
    **dict.fromkeys(("requires_grad", "trainable", "layers", "top_k"), "train"),
    **dict.fromkeys(("lora", "peft", "adapters"), "insert"),
    **dict.fromkeys(("warmup_steps", "num_warmup_steps"), "warmup_ratio"),
    **dict.fromkeys(("lr_scheduler", "lr_scheduler_type", "lr_scheduler_kwargs"), "schedule"),
    **dict.fromkeys(("adam_beta1", "adam_beta2"), "adam_betas"),
    **dict.fromkeys(("fp16", "half", "bf16", "tf32", "amp", "torch_dtype"), "precision"),
    **dict.fromkeys(("gradient_accumulation_steps", "gradient_checkpointing", "auto_find_batch_size"), "batch_gib"),
    **dict.fromkeys(("eval_strategy", "evaluation_strategy", "eval_steps"), "evaluations"),
    "optim": "optimizer",
    "num_steps": "updates",
    "early_stopping_threshold": "patience",
    "load_best_model_at_end": "checkpoint",
    "seed": "data_seed",
    **dict.fromkeys(("adam_epsilon", "label_smoothing", "label_smoothing_factor", "dropout"), NOT_HERE),
    **dict.fromkeys(("per_device_eval_batch_size", "eval_batch_size", "max_length", "max_seq_length"), NOT_HERE),
    **dict.fromkeys(("metric_for_best_model", "greater_is_better", "logging_steps"), NOT_HERE),
    **dict.fromkeys(("save_strategy", "save_steps"), NOT_HERE),
}
OF_AN_EXPERIMENT = {
    "seed": "seeds",
    **dict.fromkeys(("model", "model_name_or_path"), "encoders"),
    **dict.fromkeys(("dataset", "dataset_name", "task_name"), "tasks"),
    **dict.fromkeys(("output_dir", "run_name"), "experiment"),
    "max_train_samples": "subsets",
    **dict.fromkeys(("num_workers", "dataloader_num_workers"), "compute"),
    "cores": "is an option and no key; write --cores N after thaw run",
    "jobs": "is an option and no key; write --jobs N after thaw run",
    "device": "is no key: jobs use a free GPU where there is one; CUDA_VISIBLE_DEVICES= before the command hides them",
}
OF_AN_INSERT = {
    "peft_type": "kind",
    "target_modules": "targets",
    "lora_dropout": NOT_HERE,
    "bias": NOT_HERE,
    **dict.fromkeys(("reduction_factor", "bottleneck_size"), "size"),
    "layers_to_transform": "top",
}

# what a strategy or an encoder is called elsewhere -> its id here
OTHER_NAMES = {
    **dict.fromkeys(("linear_probing", "probe", "feature_extraction", "head_only", "freeze"), "linear_probe"),
    **dict.fromkeys(("full_finetuning", "full_fine_tuning", "full_ft", "fine_tuning", "finetuning"), "full"),
    **dict.fromkeys(("fine_tune", "finetune", "all_layers", "sft"), "full"),
    **dict.fromkeys(("top_layers", "last_layers", "last_k", "partial", "top_k_layers"), "top_k"),
    **dict.fromkeys(("lp_ft", "probe_then_finetune", "linear_probe_then_finetune"), "stack_then_finetune"),
    **dict.fromkeys(("adapter", "houlsby"), "adapters"),
    **dict.fromkeys(("llrd", "layer_wise_decay"), "layerwise_decay"),
    **dict.fromkeys(("bert", "bert_base"), "bert_base_uncased"),
    **dict.fromkeys(("all_minilm_l6_v2", "sentence_transformers"), "minilm"),
    "roberta": "roberta_base",
    "distilbert": "distilbert_base_uncased",
    "deberta": "deberta_v3_base",
}
