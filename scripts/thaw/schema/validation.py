"""Checking the values of a YAML file against a model: one sentence with file, line and key for the first mistake."""

import re

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from thaw.core import phrases
from thaw.core.errors import UserError
from thaw.schema.by_kind import ByKind
from thaw.schema.keys import documented, key_of, models_within, unknown_key
from thaw.schema.yaml_files import Document

UNION_MEMBER = re.compile(r"^constrained-|^function-|\[|^[A-Z]\w*Config$")  # what pydantic calls the types of a union


def validate(model: type[BaseModel] | ByKind, values, document: Document, keys: tuple = ()):
    """Build a settings model from plain values; the first mistake becomes a UserError with file, line and key."""
    if not isinstance(values, dict):
        raise UserError(f"{document.place(keys)}: {'.'.join(keys)}: expected a mapping of keys")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        mistakes = sorted(error.errors(), key=_rank)
        raise UserError(_sentence(mistakes[0], model, document, keys, values) + _also(mistakes)) from error


def _also(mistakes: list[ErrorDetails]) -> str:
    """Return the keys that are missing at the same place as the first one."""
    first, *rest = mistakes
    others = [one["loc"][-1] for one in rest if one["type"] == "missing" and one["loc"][:-1] == first["loc"][:-1]]
    if first["type"] != "missing" or not others:
        return ""
    return f"; so {'is' if len(others) == 1 else 'are'} {', '.join(map(repr, others))}"


def _rank(mistake: ErrorDetails) -> tuple:
    """Return by what the mistakes of one entry are ordered, the most telling one first.

    A misspelt key is also a missing one; a mapping or list that might be an id or a number too has a mistake of its
    own inside.
    """
    other = mistake["type"] in ("string_type", "int_type", "float_type", "literal_error")
    return mistake["type"] != "extra_forbidden", other and isinstance(mistake["input"], dict | list)


def _sentence(mistake: ErrorDetails, model, document: Document, keys: tuple, values: dict) -> str:
    """Put a pydantic error in one sentence: place, key, what is wrong and what would be right."""
    own = model_of_kind(model, values)
    loc = _as_written(mistake["loc"], own, document, keys)
    place, name = document.place((*keys, *loc)), ".".join((*keys, *loc)) or "the file"
    if mistake["type"] == "extra_forbidden":
        if isinstance(model, ByKind) and len(loc) == 1 and (others := model.kinds_with(loc[0])):
            return (
                f"{place}: {name}: {loc[0]} has no meaning with kind {values['kind']}; leave it out "
                f"(it is a key of {', '.join(others)})"
            )
        return f"{place}: {name}: {unknown_key(_model_at(own, mistake['loc'][:-1]), loc[-1])}"
    if mistake["type"] == "missing":
        where = ".".join((*keys, *loc[:-1])) or "the file"
        inner, key = _model_at(own, loc[:-1]), loc[-1]
        key = documented(inner, key) if key in inner.model_fields else key
        return f"{place}: {where}: the key '{key}' is missing{_described(model, loc, values)}"
    if isinstance(mistake["input"], bool) and "bool" not in mistake["type"]:
        return f"{place}: {name}: YAML reads this word as {mistake['input']}; put it in quotes"
    message = mistake["msg"].removeprefix("Value error, ")
    if mistake["type"] == "string_pattern_mismatch" and "a-z0-9_" in message:
        message = "an id has only a-z, 0-9 and _, at most 60 of them"
        if folded := re.sub(r"[^a-z0-9]+", "_", mistake["input"].lower()).strip("_"):
            message += f", as {folded:.60}"
    if mistake["type"] == "string_type" and isinstance(mistake["input"], int | float):
        message = f'expected text; put it in quotes, as "{mistake["input"]}"'
    if mistake["type"] == "too_short":
        message = f"expected at least {phrases.plural(mistake['ctx']['min_length'], 'entry', 'entries')}"
    if mistake["type"] == "list_type" and isinstance(mistake["input"], dict):
        message = "expected a list"
    elif mistake["type"] == "list_type":
        message = f"expected a list, as [{', '.join(str(mistake['input']).split()):.60}]"
    shown = "" if mistake["type"] == "value_error" else f" (it is {mistake['input']!r:.60})"
    return f"{place}: {name}: {message[0].lower()}{message[1:]}{shown}"


def model_of_kind(model: type[BaseModel] | ByKind, values: dict) -> type[BaseModel]:
    """Return the model that holds for an entry: of those by kind, the one of its kind, or any if it has none."""
    if not isinstance(model, ByKind):
        return model
    return model.models.get(str(values.get("kind"))) or model.plugin or next(iter(model.models.values()))


def _as_written(loc: tuple, model, document: Document, keys: tuple) -> tuple[str, ...]:
    """Return the path of a mistake as the file has it: no types of a union, fields by the names written there."""
    written: tuple[str, ...] = ()
    for number, part in enumerate(loc):
        if isinstance(part, str) and UNION_MEMBER.search(part):
            continue
        inner = _model_at(model, loc[:number])
        aliases = key_of(inner, part).aliases if part in inner.model_fields else ()
        paths = [(*written, str(word)) for word in (part, *aliases)]
        written = next((path for path in paths if document.has((*keys, *path))), paths[0])
    return written


def _described(model, loc: tuple, values: dict) -> str:
    """Return what a key that is missing is, where its field says so."""
    if isinstance(model, ByKind):
        if "kind" not in values:
            return f"; there are {', '.join(model.models)}"
        model = model.model_of(values)
    field = _model_at(model, loc[:-1]).model_fields.get(loc[-1])
    return f": {field.description}" if field and field.description else ""


def _model_at(model, loc: tuple):
    """Follow field names, and names of models of a union, down to the model that a path leads into."""
    union: dict[str, type[BaseModel]] = {}
    for part in loc:
        if part in union:
            model = union[part]
        elif isinstance(part, str) and part in model.model_fields:
            nested = models_within(model.model_fields[part].annotation)
            model, union = nested[0] if nested else model, {one.__name__: one for one in nested}
    return model
