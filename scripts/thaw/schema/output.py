"""An entry of config/outputs.yaml: a table or a figure."""

from typing import Any, Literal

from pydantic import Field, create_model

from thaw.declarations.outputs import OUTPUTS
from thaw.schema.by_kind import ByKind
from thaw.schema.entry import CatalogueEntry, Text


class OutputConfig(CatalogueEntry):
    """A table or a figure.

    This is what all kinds have in common; each has a model of its own, with the keys of its declaration.
    """

    kind: str = Field(description="what is drawn")
    caption: Text = Field(
        description="the sentence above the table or below the figure. That data are synthetic is added where it is so"
    )


def _model(name: str) -> type[OutputConfig]:
    title, declared = "".join(word.capitalize() for word in name.split("_")), OUTPUTS[name]
    kind: Any = (Literal[name], Field(description=declared.about))
    base: Any = (declared.options, OutputConfig)
    doc = f"An output of kind {name}."
    return create_model(f"{title}Config", __base__=base, __doc__=doc, __module__=__name__, kind=kind)


OUTPUT_CONFIGS = ByKind("kind of output", {name: _model(name) for name in OUTPUTS})
