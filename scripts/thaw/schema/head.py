"""An entry of config/heads.yaml: a head, or one head for each type of task, and the layers that it reads."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from thaw.core.phrases import listing
from thaw.declarations.heads import HEAD_KINDS, POOLING_KINDS, HeadOptions, options_of
from thaw.declarations.task_types import SCORE_TYPES, TASK_TYPES
from thaw.schema.entry import CatalogueEntry, Id, plugin_or, spec_of
from thaw.schema.keys import Key
from thaw.schema.layers import LAST_LAYER, Layers, OneLayerConfig

Pooling = Literal["first", "last", "mean", "max", "attention", "pooler", "frozen_pooler"]
Poolings = Pooling | Annotated[list[Pooling], Field(min_length=2)]
POOLERS = {"pooler", "frozen_pooler"}
LEARNED_POOLINGS = {"attention", "pooler"}


def as_list(pooling: str | Sequence[str]) -> list[str]:
    return [pooling] if isinstance(pooling, str) else list(pooling)


class HeadConfig(CatalogueEntry):
    """The task-specific module on top of the encoder."""

    kind: plugin_or("head", HEAD_KINDS) = Field(description="kind of head, or the import path of your own")  # type: ignore[valid-type]
    pooling: Poolings = Field(
        "first",
        description="how the tokens of a text become one vector; of a list, [mean, max, first], the vectors are "
        "concatenated (linear, cosine and mlp). Tagging reads the first piece of each word",
    )
    separate_pooling: Poolings = Field("mean", description="the same for each text of a pair in a bi-encoder")
    dropout: Annotated[float, Key(unit="probability")] = Field(
        0.1, ge=0, lt=1, description="dropout probability in training by gradient descent"
    )
    layers: Layers = Field(LAST_LAYER, description="which layers it reads, and how they are combined")
    initialisation: Literal["bert", "kaiming"] = Field(
        "bert",
        description="bert: the last matrix normal with standard deviation 0.02, biases 0, the rest as in PyTorch; "
        "kaiming: every matrix normal with standard deviation sqrt(2 / inputs)",
    )
    score_start: Literal["mean", "zero"] = Field(
        "mean", description="bias of a score's output before training: the mean of the training scores, or 0"
    )
    options: dict[Id, int | float | str] = Field(
        {}, description="options of its kind, or what a head of your own reads"
    )

    def meaningless(self) -> dict[str, str]:
        """Not every kind pools, or gives scores."""
        known, absent = HEAD_KINDS.get(self.kind), set()
        if known and not known.pools:
            absent |= {"pooling", "separate_pooling"}
        if known and not set(known.task_types) & set(SCORE_TYPES):
            absent.add("score_start")
        return dict.fromkeys(absent, f"for kind {self.kind}")

    @field_validator("options")
    @classmethod
    def _options_of_the_kind(cls, given: dict, info: ValidationInfo) -> dict:
        """Values equal to the default are left out, so that a spec is the same with and without them."""
        kind = info.data.get("kind")
        return options_of(kind, given).model_dump(exclude_defaults=True) if kind in HEAD_KINDS else given

    @model_validator(mode="after")
    def _pooler_is_for_the_last_layer(self):
        plain = self.kind == "linear" and self.layers == LAST_LAYER
        if POOLERS & self.poolings and not plain:
            raise ValueError("pooling: pooler is for kind linear on the last layer alone, which it was pretrained on")
        return self

    @model_validator(mode="after")
    def _several_poolings_are_plain(self):
        for several in (each for each in (self.pooling, self.separate_pooling) if isinstance(each, list)):
            if self.kind not in POOLING_KINDS:
                kinds = listing(POOLING_KINDS)
                raise ValueError(f"pooling: a list of several is for kinds {kinds}, and not for {self.kind}")
            if POOLERS & set(several) or len(set(several)) < len(several):
                raise ValueError("pooling: a list takes each way once, and not the pooler")
        return self

    @property
    def poolings(self) -> set[str]:
        return {*as_list(self.pooling), *as_list(self.separate_pooling)}

    @property
    def constant_vectors(self) -> bool:
        """Whether the vectors that it reads of a frozen encoder are the same in every pass, however it is trained."""
        learned = LEARNED_POOLINGS & self.poolings or self.layers.learned
        return self.kind in HEAD_KINDS and HEAD_KINDS[self.kind].constant_vectors and not learned

    def stored_vectors(self, words: bool) -> str | None:
        """Return the part of a store that holds what the head reads of a frozen encoder, if vectors of layers suffice.

        Args: whether it reads words.
        """
        if not self.constant_vectors:
            return None
        if words:
            return "words"
        pooled = self.layers.reads_pooled or "max" not in self.poolings
        return "pooled" if pooled and self.poolings <= {"first", "mean", "max"} else None

    def spec_for(self, task_type: str) -> dict:
        """Return the head as the spec of a run on a task of this type has it."""
        return spec_of(self, frozenset() if task_type in SCORE_TYPES else frozenset({"score_start"}))

    def at_layer(self, layer: int) -> "HeadConfig":
        """Return the same head on one layer; 0 is the embeddings."""
        return self.model_copy(update={"layers": OneLayerConfig(layer=layer)})

    @classmethod
    def of_run(cls, spec: dict, chosen: dict) -> "HeadConfig":
        """Return the head that a finished run has. Args: its spec; what metrics.json says that validation chose."""
        head = cls.model_validate(spec["head"])
        return head.at_layer(chosen["layer"]) if head.layers.searched else head

    @property
    def kind_options(self) -> HeadOptions:
        """The options of one of Thaw's kinds, defaults filled in."""
        return options_of(self.kind, self.options)


class HeadSetConfig(CatalogueEntry):
    """A name for several heads, of which the type of the task takes one."""

    by_task: dict[Literal[TASK_TYPES], Id] = Field(  # type: ignore[valid-type]
        min_length=1, description="type of task: head; other types are left out"
    )


def boundaries_read(spec: dict) -> list[int]:
    """Return the boundaries that the head of a run's spec reads."""
    return HeadConfig.model_validate(spec["head"]).layers.reads(spec["layers"])
