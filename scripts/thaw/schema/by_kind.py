"""Entries whose keys follow from their `kind`, as probes and outputs: a union of one model for each kind."""

from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Field, TypeAdapter, create_model

from thaw.declarations.outputs import OUTPUTS
from thaw.declarations.probes import PROBES, PluginOptions
from thaw.schema.entry import IMPORT_PATH, CatalogueEntry, Text, one_of, plugin_or
from thaw.schema.keys import fields_by_name


class ByKind:
    """A discriminated union over `kind`.

    Args: what it is a kind of, in messages; the models by kind; the model of entries whose kind is an import path,
    where there are any.
    """

    def __init__(self, word: str, models: dict[str, type[BaseModel]], plugin: type[BaseModel] | None = None):
        self.models, self.plugin = models, plugin
        known = (plugin_or if plugin else one_of)(word, tuple(models))
        self._tag = create_model("Kind", kind=(known, ...))  # ignores all other keys

    def model_of(self, values: dict):
        """Return the model of an entry. Raises pydantic's ValidationError for a kind that is missing or unknown."""
        kind: Any = self._tag.model_validate(values)
        return self.models.get(kind.kind, self.plugin)

    def model_validate(self, values: dict) -> BaseModel:
        return self.model_of(values).model_validate(values)

    def kinds_with(self, key: str) -> list[str]:
        """Return the kinds for which a key, by any of its names, has a meaning."""
        return [kind for kind, model in self.models.items() if key in fields_by_name(model)]

    def model_json_schema(self) -> dict:
        """Return the schema of an entry, which is one of its kinds' or a plugin's."""
        models = [*self.models.values(), *filter(None, [self.plugin])]
        schema = TypeAdapter[Any](Union[tuple(models)]).json_schema()  # type: ignore[arg-type]  # noqa: UP007
        if self.plugin:
            schema["$defs"][self.plugin.__name__]["properties"]["kind"]["pattern"] = IMPORT_PATH
        return schema


class ProbeConfig(CatalogueEntry):
    """A diagnostic fitted to the hidden states of each layer, which changes no encoder.

    This is what all kinds have in common; each has a model of its own, with the keys of its declaration.
    """

    kind: str = Field(description="what is fitted or compared, or the import path of a probe of your own")
    layers: list[Annotated[int, Field(ge=0)]] = Field(
        [], description="which layers; 0, the embeddings, is always among them; default: all"
    )


class PluginProbeConfig(PluginOptions, ProbeConfig):
    """A probe of your own, named by its import path."""


def _model(name: str, base: type[CatalogueEntry], options: type[BaseModel], about: str, title: str) -> type[Any]:
    word = "".join(part.capitalize() for part in name.split("_"))
    bases: Any = (options, base)
    kind: Any = (Literal[name], Field(description=about))
    doc = f"An entry of kind {name}."
    return create_model(f"{word}{title}", __base__=bases, __doc__=doc, __module__=__name__, kind=kind)


ABOUT = str(ProbeConfig.model_fields["kind"].description)
PROBES_BY_KIND = {name: _model(name, ProbeConfig, kind.options, ABOUT, "ProbeConfig") for name, kind in PROBES.items()}
PROBE_CONFIGS = ByKind("probe", PROBES_BY_KIND, PluginProbeConfig)


class OutputConfig(CatalogueEntry):
    """A table or a figure.

    This is what all kinds have in common; each has a model of its own, with the keys of its declaration.
    """

    kind: str = Field(description="what is drawn")
    caption: Text = Field(
        description="the sentence above the table or below the figure. That data are synthetic is added where it is so"
    )


OUTPUTS_BY_KIND = {
    name: _model(name, OutputConfig, kind.options, kind.about, "Config") for name, kind in OUTPUTS.items()
}
OUTPUT_CONFIGS = ByKind("kind of output", OUTPUTS_BY_KIND)
