"""Entries whose keys follow from their `kind`: a union of one model for each kind, discriminated by that key."""

from typing import Any, Union

from pydantic import BaseModel, TypeAdapter, create_model

from thaw.schema.entry import IMPORT_PATH, one_of, plugin_or
from thaw.schema.keys import fields_by_name


class ByKind:
    """A discriminated union over `kind`.

    Args: what it is a kind of, in messages; the models by kind; the model of entries whose kind is an import path,
    where there are any.
    """

    def __init__(self, word: str, models: dict[str, type[BaseModel]], plugin: type[BaseModel] | None = None):
        """Keep the models."""
        self.models, self.plugin = models, plugin
        known = (plugin_or if plugin else one_of)(word, tuple(models))
        self._tag = create_model("Kind", kind=(known, ...))  # ignores all other keys

    def model_of(self, values: dict):
        """Return the model of an entry. Raises pydantic's ValidationError for a kind that is missing or unknown."""
        kind: Any = self._tag.model_validate(values)
        return self.models.get(kind.kind, self.plugin)

    def model_validate(self, values: dict) -> BaseModel:
        """Return an entry of its kind's model."""
        return self.model_of(values).model_validate(values)

    def kinds_with(self, key: str) -> list[str]:
        """Return the kinds for which a key, by any of its names, has a meaning."""
        return [kind for kind, model in self.models.items() if key in fields_by_name(model)]

    def without_keys(self) -> list[str]:
        """Return the kinds of which an entry needs no key but `kind`."""
        needed = {
            kind: [f for f in model.model_fields.values() if f.is_required()] for kind, model in self.models.items()
        }
        return [kind for kind, fields in needed.items() if len(fields) == 1]

    def model_json_schema(self) -> dict:
        """Return the schema of an entry, which is one of its kinds' or a plugin's."""
        models = [*self.models.values(), *filter(None, [self.plugin])]
        schema = TypeAdapter[Any](Union[tuple(models)]).json_schema()  # type: ignore[arg-type]  # noqa: UP007
        if self.plugin:
            schema["$defs"][self.plugin.__name__]["properties"]["kind"]["pattern"] = IMPORT_PATH
        return schema
