"""An entry of config/heads.yaml: a head, or one head for each type of task, and the layers that it reads."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from thaw.declarations.heads import HEAD_KINDS, HeadOptions, options_of
from thaw.declarations.task_types import TASK_TYPES
from thaw.schema.entry import CatalogueEntry, Id, plugin_or


class LayerMixConfig(BaseModel):
    """Which layers a head reads, and how they are combined."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    combine: Literal["one", "mix", "mean", "sum", "concat"] = Field(
        "one", description="one: a single layer, the last unless `layer` says which; mix: learned scalar mix"
    )
    layer: int | None = Field(None, ge=0, description="one: which, 0 the embeddings; unless stated the last")
    last: int | None = Field(None, ge=1, description="how many layers from the top; mix reads all and embeddings else")
    norm: bool = Field(False, description="mix: each layer at mean 0 and deviation 1 first")
    dropout: float = Field(0.0, ge=0, lt=1, description="mix: share of the layers left out while training")

    @model_validator(mode="after")
    def _keys_of_the_way(self):
        known = {"one": {"layer"}, "mix": {"last", "norm", "dropout"}}.get(self.combine, {"last"}) | {"combine"}
        for key in sorted(self.model_fields_set - known):
            raise ValueError(f"{key} has no meaning with combine: {self.combine}; leave it out")
        if self.combine in ("mean", "sum", "concat") and self.last is None:
            raise ValueError(f"combine: {self.combine} needs last: how many layers from the top")
        return self

    def reads(self, layers: int) -> list[int]:
        """Return the boundaries that are read of an encoder of L layers; one that it lacks is a ValueError."""
        if self.combine == "one":
            read = [layers if self.layer is None else self.layer]
        else:
            read = list(range(layers + 1 - (layers + 1 if self.last is None else self.last), layers + 1))
        if not 0 <= read[0] <= read[-1] <= layers:
            raise ValueError(f"layers: {self.layer or self.last} is more than the encoder's {layers} layers")
        return read


class HeadConfig(CatalogueEntry):
    """The task-specific module on top of the encoder."""

    kind: plugin_or("head", HEAD_KINDS)
    pooling: Literal["first", "last", "mean", "max", "attention", "pooler"] = Field(
        "first", description="how tokens become one vector; tagging reads each word's first piece instead"
    )
    separate_pooling: Literal["first", "last", "mean", "max", "attention", "pooler"] = Field(
        "mean", description="the same for each text of a pair where the two are read apart"
    )
    dropout: float = Field(0.1, ge=0, lt=1)
    layers: LayerMixConfig = Field(LayerMixConfig(), description="which layers it reads")
    initialisation: Literal["bert", "kaiming"] = Field(
        "bert", description="bert: the last matrix normal with deviation 0.02, biases 0; kaiming: every matrix"
    )
    options: dict[Id, int | float | str] = Field({}, description="of its kind, or what a head of your own reads")

    @field_validator("options")
    @classmethod
    def _options_of_the_kind(cls, given: dict, info: ValidationInfo) -> dict:
        """Values equal to the default are left out, so that a spec is the same with and without them."""
        kind = info.data.get("kind")
        return options_of(kind, given).model_dump(exclude_defaults=True) if kind in HEAD_KINDS else given

    @model_validator(mode="after")
    def _pooling_has_a_reader(self):
        if self.kind in HEAD_KINDS and not HEAD_KINDS[self.kind].pools:
            for key in sorted(self.model_fields_set & {"pooling", "separate_pooling"}):
                raise ValueError(f"{key} has no meaning for kind {self.kind}; leave it out")
        return self

    @model_validator(mode="after")
    def _pooler_is_for_the_last_layer(self):
        plain = self.kind == "linear" and self.layers == LayerMixConfig()
        if "pooler" in (self.pooling, self.separate_pooling) and not plain:
            raise ValueError("pooling: pooler is for kind linear on the last layer alone, which it was pretrained on")
        return self

    @property
    def fixed(self) -> bool:
        """Whether the vectors that it reads of a frozen encoder are the same in every pass, however it is trained."""
        learned = {"attention", "pooler"} & {self.pooling, self.separate_pooling} or self.layers.combine == "mix"
        return self.kind in HEAD_KINDS and HEAD_KINDS[self.kind].fixed and not learned

    @property
    def chosen(self) -> HeadOptions:
        """The options of one of Thaw's kinds, defaults filled in."""
        return options_of(self.kind, self.options)


class HeadSetConfig(CatalogueEntry):
    """A name for several heads, of which the type of the task takes one."""

    by_task: dict[Literal[TASK_TYPES], Id] = Field(min_length=1, description="type of task: head; others are left out")
