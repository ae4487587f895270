"""What a phase takes from a teacher: the terms of its loss, each with a weight.

Conventions of thaw.training.distillation_losses: means over examples (over words that have a target), sums over
classes; hidden states: means over texts or tokens, and over their width.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from thaw.core.boundaries import that_train
from thaw.schema.entry import Count
from thaw.schema.keys import ConfigModel

Weight = Annotated[float, Field(ge=0)]
SHARED = "shared"  # one learned projection for all layers that are compared


class LogitsConfig(ConfigModel):
    """The teacher's logits as targets (Hinton et al. 2015)."""

    weight: Weight = Field(1.0, description="weight of the term")
    temperature: float = Field(
        1.0, gt=0, description="what both logits are divided by; the term is multiplied by its square"
    )
    loss: Literal["kl", "mse"] = Field(
        "kl", description="kl: KL divergence of the probabilities; mse: mean squared error; of scores always mse"
    )

    @model_validator(mode="after")
    def _temperature_of_probabilities(self):
        if self.loss == "mse" and self.temperature != 1:
            raise ValueError("loss: mse compares logits as they are; leave out temperature")
        return self


def _at_depth(layer: int, layers: int, others: int | None) -> int:
    """Return the layer of a teacher of other layers at the depth of one of the student's; a ValueError without one."""
    others = layers if others is None else others
    if layer * others % layers:
        raise ValueError(f"map: same: layer {layer} of {layers} has none of {others} at its depth; say map: {{2: 4}}")
    return layer * others // layers


class HiddenConfig(ConfigModel):
    """The teacher's hidden states as targets, layer by layer."""

    weight: Weight = Field(1.0, description="weight of the term")
    of: Literal["first", "tokens"] = Field(
        "first", description="first: the state of the first token (PKD); tokens: those of all tokens (DistilBERT)"
    )
    loss: Literal["mse", "cosine"] = Field("mse", description="mse: mean squared error; cosine: one minus the cosine")
    normalise: bool = Field(False, description="scale both states to length 1 first (Sun et al. 2019)")
    map: Literal["same", "last", "top"] | dict[int, int] = Field(
        "same",
        description="which boundary of the student is matched to which of the teacher. same: each layer that is kept "
        "to the same depth; last: the student's layers to the teacher's last ones; top: the output of the last layer "
        "to that of the last (DistilBERT); or {2: 4, 4: 8}",
    )
    last: bool = Field(False, description="whether the student's last layer is matched too, whose state the head reads")
    project: Literal[False, True, "shared"] = Field(
        False,
        description="project the student's states first, by a matrix that trains with it and is thrown away. true: one "
        "for each layer that is compared; shared: one for all of them (TinyBERT)",
    )

    def meaningless(self) -> dict[str, str]:
        """Only a map of all layers leaves the last one out or not."""
        said = "with map: top" if self.map == "top" else "with a custom map"
        return {} if self.map in ("same", "last") else {"last": said}

    def pairs(
        self, kept: list[int], layers: int, below: int | None, others: int | None = None
    ) -> list[tuple[int, int]]:
        """Return boundaries of the student with those of the teacher that they are matched to, ascending.

        The last layer's is boundary L, the model's output, also where the student keeps no layer as high: a model that
        normalises its output does so after its last layer.

        Args: the layers that the student keeps; layers L; the boundary under which nothing of the student trains, None
        where its embeddings train; layers of the teacher's encoder, None for L too. What does not train is matched to
        nothing. Raises ValueError where the teacher has no layer at a depth.
        """
        top = others or layers
        if isinstance(self.map, dict):
            pairs = sorted(self.map.items())
        else:
            inner = [] if self.map == "top" else kept[:-1]
            last = range(top - len(inner), top)
            theirs = last if self.map == "last" else [_at_depth(n, layers, others) for n in inner]
            pairs = list(zip(inner, theirs, strict=True))
            pairs += [(layers, top)] if self.last or self.map == "top" else []
        return that_train(pairs, below)


class AttentionConfig(ConfigModel):
    """What attends to what as targets: shares of attention, scores, or relations between queries, keys and values."""

    weight: Weight = Field(1.0, description="weight of the term")
    of: list[Literal["qk", "qq", "kk", "vv"]] = Field(
        ["qk"],
        min_length=1,
        description="what is multiplied: qk, queries with keys, is attention itself; qq, kk and vv are relations of "
        "queries, keys or values among themselves (MiniLM); their distances are averaged",
    )
    form: Literal["shares", "scores"] = Field(
        "shares",
        description="shares: KL divergence after the softmax; scores: mean squared error before it (TinyBERT)",
    )
    heads: int | None = Field(
        None, ge=1, description="into how many heads queries, keys and values are divided; null: those of the encoder"
    )
    map: Literal["same", "top"] | dict[Count, Count] = Field(
        "same",
        description="which layer of the student is matched to which of the teacher. same: each layer that is kept to "
        "the teacher's at its place; top: the last to the last; or {2: 4, 4: 8}",
    )

    def pairs(
        self, kept: list[int], layers: int, below: int | None, others: int | None = None
    ) -> list[tuple[int, int]]:
        """Return layers of the student with those of the teacher; args as of `HiddenConfig.pairs`."""
        if isinstance(self.map, dict):
            pairs = sorted(self.map.items())
        elif self.map == "same":
            pairs = [(n, _at_depth(n, layers, others)) for n in kept]
        else:
            pairs = [(kept[-1], others or layers)]
        return that_train(pairs, below)


class DistilConfig(ConfigModel):
    """The loss of a phase that is trained towards a teacher: a weighted sum."""

    hard: Weight = Field(1.0, description="weight of the task's own loss; with 0 no label is read")
    anneal: bool = Field(
        False,
        description="teacher annealing (Clark et al. 2019): over the updates the weight of the task's own loss rises "
        "from 0, and those of the teacher's terms fall to 0",
    )
    logits: LogitsConfig | None = Field(None, description="the teacher's logits as targets; null: not")
    hidden: HiddenConfig | None = Field(None, description="the teacher's hidden states as targets; null: not")
    attention: AttentionConfig | None = Field(
        None, description="what attends to what in the teacher's layers as targets; null: not"
    )

    order: Literal["together", "progressive", "stacked"] = Field(
        "together",
        description="when layers are matched, hidden states and attention: together, all from the start; progressive, "
        "one after the other from below, each for an equal share of the phase's updates; stacked, each in addition "
        "to those before it (Aguilar et al. 2020)",
    )

    def meaningless(self) -> dict[str, str]:
        """An order is one of layers."""
        return {} if self.hidden or self.attention else {"order": "without hidden: or attention:"}

    @property
    def terms(self) -> list[str]:
        return [name for name in ("logits", "hidden", "attention") if getattr(self, name)]

    @model_validator(mode="after")
    def _something_to_learn_from(self):
        if not self.hard and not any(getattr(self, name).weight for name in self.terms):
            raise ValueError("all weights are 0, and nothing would train; give hard or a term a weight")
        if self.anneal and not (self.hard and self.logits and self.logits.weight):
            raise ValueError("anneal: goes from the teacher's logits to the labels; give hard: and logits: a weight")
        return self
