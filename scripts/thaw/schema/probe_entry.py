"""An entry of config/probes.yaml: what is asked of the layers of an encoder."""

from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from thaw.declarations.probes import PROBES, PluginOptions
from thaw.schema.by_kind import ByKind
from thaw.schema.entry import CatalogueEntry


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


def _model(name: str) -> type[ProbeConfig]:
    title = "".join(word.capitalize() for word in name.split("_"))
    base: Any = (PROBES[name].options, ProbeConfig)
    doc = f"A probe of kind {name}."
    kind: Any = (Literal[name], Field(description=ProbeConfig.model_fields["kind"].description))
    return create_model(f"{title}ProbeConfig", __base__=base, __doc__=doc, __module__=__name__, kind=kind)


PROBE_CONFIGS = ByKind("probe", {name: _model(name) for name in PROBES}, PluginProbeConfig)
