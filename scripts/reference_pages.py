#!/usr/bin/env python3
"""Write what follows from the code, for the site and for editors: pages of docs/reference, and workflow/schemas.

docs/reference/configuration.md has every key of catalogue entries and experiments, docs/reference/command-line.md every
command. workflow/schemas has the JSON schemas that the first line of each catalogue names. None of them is committed:
`make reference` makes them, as do the installation and `make site`.
"""

import re
from pathlib import Path

from pydantic import BaseModel

from command_line_page import command_line_page
from thaw.core import phrases
from thaw.core.files import write_json, write_text
from thaw.declarations.heads import HEAD_KINDS
from thaw.schema.by_kind import ByKind
from thaw.schema.catalogue import BLOCKS
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.keys import documented, key_of, models_within
from thaw.schema.reference import Reference

HOME = Path(__file__).resolve().parents[1]
INTRODUCTION = """# Reference of the configuration

<!-- Made by `make reference` from the fields in scripts/thaw/schema. -->

Catalogues (`config/*.yaml`, or files of the same names in a folder of your own) say what exists; an experiment
(`config/experiments/*.yaml`) says which of it is wanted. An entry with `base:`, the id of an entry of the same
block, takes over its keys. An entry with `override: true` replaces the entry of the same id from Thaw or an earlier
folder. Keys without a default are required. An id has only a-z, 0-9 and _.

Other names of a key, such as `lr`, may be written in its place, one of them at a time.
"""


def reference_page() -> str:
    """Return the page as Markdown."""
    parts, shown = [INTRODUCTION, "## The experiment\n", *_model(ExperimentConfig, "An experiment", [])], []
    files = dict.fromkeys(file for file, _ in BLOCKS.values())
    for file in sorted(files, key="strategies.yaml".__ne__):  # first the page's main part, which others link to
        parts.append(f"## {file}\n")
        for block, (name, model) in BLOCKS.items():
            if name == file:
                parts += (
                    _by_kind(block, model, shown) if isinstance(model, ByKind) else _model(model, f"`{block}`", shown)
                )
    parts += ["## Options of heads\n", "Options of each kind of head, written under `options:` of a head.\n"]
    for kind, entry in HEAD_KINDS.items():
        parts += [
            f"### Head `{kind}`\n",
            f"Types of task: {', '.join(entry.task_types)}.{'' if entry.options.model_fields else ' No options.'}\n",
        ]
        parts += [_table(entry.options, list(entry.options.model_fields))] if entry.options.model_fields else []
    return "\n".join(parts).rstrip() + "\n"


def models(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return a model and all models within its fields, each once, in the order of the fields."""
    models = [model]
    for info in (info for one in models for info in one.model_fields.values()):  # models grows while it is read
        models += [inner for inner in models_within(info.annotation) if inner not in models]
    return models


def _model(model: type[BaseModel], title: str, shown: list) -> list[str]:
    """Return the sections of a model and of the models within it, but for those that were shown before."""
    parts = [f"### {title}\n", f"{_about(model)}\n", _table(model, list(model.model_fields))]
    return parts + _inner_models(model, shown)


def _inner_models(model: type[BaseModel], shown: list) -> list[str]:
    """Return the sections of the models within one, but for those that were shown before."""
    parts = []
    for one in models(model)[1:]:
        if one not in shown:
            shown.append(one)
            parts += [f"### {_name(one)}\n", f"{_about(one)}\n", _table(one, list(one.model_fields))]
    return parts


def _by_kind(block: str, entries: ByKind, shown: list) -> list[str]:
    """Return the sections of entries whose keys follow from their kind: the keys of all, then those of each kind."""
    every = list(entries.models.values())
    common = [name for name in every[0].model_fields if all(name in model.model_fields for model in every)]
    own = {"your own": entries.plugin} if entries.plugin else {}
    kinds = ", ".join(f"`{kind}`" for kind in entries.models) + (" or import path" if own else "")
    shared = _table(every[0], common, {"kind": kinds})
    parts = [f"### `{block}`\n", "Keys of all kinds; those of each kind follow.\n", shared]
    for kind, model in (entries.models | own).items():
        further = [name for name in model.model_fields if name not in common]
        table = _table(model, further) if further else "No further keys.\n"
        parts += [f"### `{block}`, kind {kind}\n", f"{_sentence(model.model_fields['kind'].description)}.\n", table]
        parts += _inner_models(model, shown)
    return parts


def _table(model: type[BaseModel], names: list[str], values: dict[str, str] | None = None) -> str:
    """Return the table of some fields of a model. Args: values, what to say of the values of some fields."""
    properties, definitions = _schema(model)
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for name in names:
        info, key = model.model_fields[name], key_of(model, name)
        entry = properties[documented(model, name)]
        value = (values or {}).get(name) or _value(entry, definitions) + (f" ({key.unit})" if key.unit else "")
        default = "" if info.is_required() else f"`{phrases.written(entry.get('default'))}`"
        others = [word for word in dict.fromkeys((*key.aliases[1:], name)) if word != documented(model, name)]
        also = f"; also written {', '.join(f'`{word}`' for word in others)}" if others else ""
        meaning = _sentence(info.description or "") + also
        cells = (f"`{documented(model, name)}`", value, default, meaning)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _schema(model: type[BaseModel]) -> tuple[dict, dict]:
    """Return the properties of a model's JSON schema, and the definitions that they refer to."""
    schema = model.model_json_schema()
    return schema["properties"], schema.get("$defs", {})


def _value(entry: dict, definitions: dict) -> str:
    if "$ref" in entry:
        name = entry["$ref"].rpartition("/")[2]
        return _value(definitions[name], definitions) if "enum" in definitions[name] else _link(name)
    if choices := entry.get("anyOf") or entry.get("oneOf"):
        return " or ".join(dict.fromkeys(_value(choice, definitions) for choice in choices))
    if "const" in entry:
        return f"`{phrases.written(entry['const'])}`"
    if "enum" in entry:
        return ", ".join(f"`{phrases.written(word)}`" for word in entry["enum"])
    kind = entry.get("type")
    if kind == "array":
        return f"list of {_value(entry.get('items', {}), definitions)}"
    if kind == "object":
        return f"mapping to {_value(_inner(entry), definitions)}"
    if kind in ("integer", "number"):
        return kind + _bounds(entry)
    if kind == "string":
        pattern = entry.get("pattern", "")
        return "id" if "a-z0-9_" in pattern else "import path" if ":[A-Za-z_]" in pattern else "text"
    return {"boolean": "`true`, `false`", "null": "`null`"}.get(kind, "any value")


def _inner(entry: dict) -> dict:
    patterns = entry.get("patternProperties", {})
    return next(iter(patterns.values()), entry.get("additionalProperties", {}))


def _bounds(entry: dict) -> str:
    words = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {entry[word]:g}" for word, sign in words.items() if word in entry]
    return f" {', '.join(limits)}" if limits else ""


def _sentence(text: str) -> str:
    """Return a description as a sentence; a first word that is a key or a value stays as people write it."""
    return text if re.match(r"\w+(_\w|\d|:)", text) else text[:1].upper() + text[1:]


def _name(model: type[BaseModel]) -> str:
    """Return what a model is called: without Config."""
    return model.__name__.removesuffix("Config")


def _link(name: str) -> str:
    name = name.removesuffix("Config")
    return f"[{name}](#{name.lower()})"


def _about(model: type[BaseModel]) -> str:
    """Return the first sentence of a model's docstring."""
    return (model.__doc__ or "").partition("\n")[0]


# what every entry may have besides the keys of its model; the catalogue itself reads these
OF_ANY_ENTRY = {
    "base": {"type": "string", "description": "the entry whose keys are taken over"},
    "aliases": {"type": "array", "items": {"type": "string"}, "description": "further names of the entry"},
    "override": {"type": "boolean", "description": "true: use this entry instead of the one of the same id"},
}


def schemas() -> dict[str, dict]:
    """Return every schema by its file name in workflow/schemas."""
    files = sorted({file for file, _ in BLOCKS.values()})
    schemas = {file.replace(".yaml", ".schema.json"): _catalogue(file) for file in files}
    whole = {"experiment": ExperimentConfig, "reference": Reference}
    return schemas | {f"{name}.schema.json": model.model_json_schema() for name, model in whole.items()}


def _catalogue(file: str) -> dict:
    """Return the schema of one catalogue file: blocks of entries, which may have a `base:`."""
    properties, definitions = {}, {}
    for block, (name, model) in BLOCKS.items():
        if name == file:
            entry = model.model_json_schema()
            definitions |= entry.pop("$defs", {})
            kinds = [choice["$ref"].rpartition("/")[2] for choice in entry.get("anyOf", [])]
            for shape in [definitions[kind] for kind in kinds] or [entry]:
                shape["properties"] |= OF_ANY_ENTRY
                shape.pop("required", None)  # a key may come from the base
            properties[block] = {"type": "object", "additionalProperties": entry}
    return {"type": "object", "additionalProperties": False, "properties": properties, "$defs": definitions}


def main() -> None:
    """Write the pages and the schemas."""
    for name, schema in schemas().items():
        write_json(HOME / "workflow/schemas" / name, schema)
    write_text(HOME / "docs/reference/configuration.md", reference_page())
    write_text(HOME / "docs/reference/command-line.md", command_line_page())


if __name__ == "__main__":
    main()
