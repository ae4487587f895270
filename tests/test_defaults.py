"""No default of a setting changes unseen: specs leave defaults out, so that their digests say nothing of them.

tests/defaults.json holds every default of every model of settings, under the model's name. A default that changes
changes results under an unchanged spec: give the key another name, or raise the VERSION of the steps that read it.
`python tests/test_defaults.py` records the defaults as they are now; keys and models that are gone leave the record.
"""

import importlib
import pkgutil
from pathlib import Path

from pydantic import BaseModel
from pydantic_core import PydanticUndefined, to_jsonable_python

import thaw.declarations
import thaw.schema
from thaw.core.files import read_json, write_json

PACKAGES = ("thaw.schema.", "thaw.declarations.", "thaw.papers.")
RECORD = Path(__file__).with_name("defaults.json")


def models() -> dict[str, type[BaseModel]]:
    """Return every model of settings of the package by its name; two of one name are an error."""
    for package in (thaw.schema, thaw.declarations):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    found, waiting = {}, [BaseModel]
    while waiting:
        subclasses = waiting.pop().__subclasses__()
        waiting += subclasses
        for model in subclasses:
            if model.__module__.startswith(PACKAGES) and model.__name__ != "Kind":
                known = found.setdefault(model.__name__, model)
                # the plan runs the head of a plug-in's file by itself, so that its models are made twice
                twice = known.__module__ == model.__module__ and known.__module__.startswith("thaw.papers.")
                assert known is model or twice, f"two models are called {model.__name__}"
    return found


def defaults() -> dict[str, dict]:
    """Return {model: {key: default}} as JSON has them; a key without a default is required."""
    return {
        name: {
            key: to_jsonable_python(value)
            for key, field in sorted(model.model_fields.items())
            if (value := field.get_default(call_default_factory=True)) is not PydanticUndefined
        }
        for name, model in sorted(models().items())
    }


def test_defaults_are_those_on_record():
    """Each default is as recorded; a new one is added to the record."""
    recorded, found = read_json(RECORD), defaults()
    changed = [
        f"{name}.{key}: {recorded.get(name, {}).get(key, 'not on record')} is now {value}"
        for name, keys in found.items()
        for key, value in keys.items()
        if key not in recorded.get(name, {}) or recorded[name][key] != value
    ]
    assert not changed, f"{changed}; if it is new, run: python tests/test_defaults.py"
    assert found["PhaseConfig"]["optimizer"] == "adamw" and len(found) > 80


def test_a_default_that_became_required_is_seen():
    """A key that is still there and has lost its default changes what an entry without it means."""
    now, known = defaults(), models()
    lost = [
        f"{name}.{key}"
        for name, keys in read_json(RECORD).items()
        for key in keys
        if name in known and key in known[name].model_fields and key not in now[name]
    ]
    assert not lost, lost


if __name__ == "__main__":
    write_json(RECORD, defaults())
    print(f"wrote {RECORD.name}")
