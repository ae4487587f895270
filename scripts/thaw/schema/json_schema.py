"""JSON schemas of catalogues, experiments and papers' numbers, generated from the settings, for editors and docs."""

from thaw.schema.catalogue import BLOCKS
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.reference import Reference

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
