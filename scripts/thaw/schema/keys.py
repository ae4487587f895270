"""What a field of a configuration carries besides its type: other names for it, its unit, its words in a Methods text.

    learning_rate: Annotated[float, Key("learning rate {}", aliases=("lr",))] = Field(2e-5, description="...")

A model stores a value under the field's own name, which specs have. People may also write an alias; the first one
is the documented name. The Methods text of a model is made of what its fields say, in their order.
"""

import difflib
import functools
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, model_validator

from thaw.core import phrases
from thaw.declarations.value_types import Key as Key


@dataclass(frozen=True)
class Context:
    """What a Methods text needs besides the model: names in print, entries that it leads to, keys that vary.

    Args: labels and entries by block and id; `varied`, what is said of keys that a search or a sweep varies; whether
    some tasks are on `texts`, some on `words`, and some on `pairs` of texts.
    """

    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    varied: dict[str, str] = field(default_factory=dict)
    search_seeds: int | None = None
    texts: bool = True
    words: bool = False
    pairs: bool = True

    def name(self, block: str, id: str) -> str:
        """Return what an entry is called in print."""
        return self.labels.get(block, {}).get(id, id)


class ConfigModel(BaseModel):
    """Settings that people write: unknown keys are errors, aliases are stored under the field's own name."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    # keys that others would write here, with the sentence that says what to write instead
    hints: ClassVar[dict[str, str]] = {}

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

    def meaningful(self) -> set[str]:
        """Return the fields that have a meaning given the values of the others."""
        return set(type(self).model_fields)

    def refused_with(self, name: str) -> str:
        """Return the setting under which a field has no meaning, as an error says it: `with insert: ia3`."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _no_key_without_meaning(self):
        for name in sorted(self.model_fields_set - self.meaningful()):
            key = both_names(type(self), name)
            raise ValueError(f"{key} has no meaning {self.refused_with(name)}; leave it out")
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
    if hint := getattr(model, "hints", {}).get(word):
        return hint
    known = fields_by_name(model)
    close = difflib.get_close_matches(str(word), list(known), n=1)
    if close:
        return f"unknown key; did you mean '{documented(model, known[close[0]])}'?"
    return f"unknown key; there are {', '.join(sorted({documented(model, name) for name in known.values()}))}"


def clauses(model: ConfigModel, context: Context = Context()) -> list[str]:
    """Return what the fields of a model say, in their order; those that say nothing here are left out."""
    kind, meaningful = type(model), model.meaningful()
    texts = []
    for name in kind.model_fields:
        key, value = key_of(kind, name), getattr(model, name)
        if name in context.varied:
            texts.append(f"{key.name or name} {context.varied[name]}")
        elif name in meaningful:
            texts.append(_said(key.says, value, model, context))
    return [text for text in texts if text]


def prose(parts: list[str]) -> str:
    """Return clauses as sentences: those that have a full stop by themselves, others joined by commas."""
    sentences, current = [], []
    for part in [*parts, "."]:
        if not part.endswith((".", ".)")):
            current.append(part)
            continue
        if current:
            joined = ", ".join(current)
            sentences.append(f"{joined[0].upper()}{joined[1:]}.")
        sentences, current = sentences + [part] * (part != "."), []
    return " ".join(sentences)


def _said(says, value, model: ConfigModel, context: Context) -> str:
    """Return what one field says of its value."""
    if callable(says):
        return says(value, model, context)
    if isinstance(says, dict):
        return says.get(value, "")
    return says.format(format_value(value)) if value is not None else ""


def format_value(value) -> str:
    """Return a value as a sentence has it."""
    if isinstance(value, float):
        return phrases.rate(value)
    return phrases.listing(map(format_value, value)) if isinstance(value, list) else str(value)
