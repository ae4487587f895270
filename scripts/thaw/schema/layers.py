"""Which layers a head reads, and how they are combined: `layers` of an entry of config/heads.yaml, or under `reads`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from thaw.schema.keys import ConfigModel, Context, Key, clauses, written

LADDER = {"every", "width", "heads", "feed_forward", "gates", "temperature", "start"}  # keys of its own
SEARCHED_LAYERS = {
    "best": "the layer with the best validation score",
    "lowest": "the lowest layer with a validation score within {} of the best",
}


def _layer(layer, mix, context) -> str:
    if layer in SEARCHED_LAYERS:
        return SEARCHED_LAYERS[layer].format(written(mix.margin))
    return "the last layer" if layer is None else "the embeddings" if layer == 0 else f"layer {layer}"


def _last(last, mix, context) -> str:
    return f"of the last {last} layers" if last else "of all layers and the embeddings"


def _every(every, mix, context) -> str:
    return f"of one layer in {every} from the top and the embeddings" if every > 1 else _last(None, mix, context)


def _width(width, mix, context) -> str:
    return f"width {width or 'an eighth of that of the encoder'}"


def _layer_dropout(dropout, mix, context) -> str:
    return f"{'layer ' * (mix.combine == 'mix')}dropout {written(dropout)}" if dropout else ""


class LayerMixConfig(ConfigModel):
    """Which layers a head reads, and how they are combined."""

    combine: Annotated[
        Literal["one", "mix", "mean", "sum", "concat", "ladder"],
        Key(
            {
                "mix": "a learned scalar mix",
                "mean": "the mean",
                "sum": "the sum",
                "concat": "the concatenation",
                "ladder": "through a ladder side network (Sung et al. 2022) the states",
            }
        ),
    ] = Field(
        "one",
        description="one: a single layer; mix: learned scalar mix (Peters et al. 2018); ladder: ladder side network, a "
        "narrow transformer that reads all layers and trains with the head (Sung et al. 2022)",
    )
    layer: Annotated[Annotated[int, Field(ge=0)] | Literal["best", "lowest"] | None, Key(_layer, unit="layer")] = Field(
        None,
        description="one: which layer, 0 is the embeddings; null: the last. Under reads: of a strategy with lbfgs each "
        "layer has its own fit: best, the best one on validation; lowest, the lowest within margin of it",
    )
    margin: Annotated[float, Key(unit="score")] = Field(
        0.01, ge=0, lt=1, description="lowest: how much lower than the best layer's its validation score may be"
    )
    last: Annotated[int | None, Key(_last, unit="layers")] = Field(
        None, ge=1, description="number of layers from the top; null: all layers and the embeddings"
    )
    every: Annotated[int, Key(_every, unit="layers")] = Field(
        1, ge=1, description="ladder: 2 reads every second layer from the top, and the embeddings"
    )
    norm: Annotated[bool, Key({True: "each layer normalised"})] = Field(
        False, description="mix, ladder: normalise each layer to mean 0 and standard deviation 1 first"
    )
    dropout: Annotated[float, Key(_layer_dropout, unit="probability")] = Field(
        0.0,
        ge=0,
        lt=1,
        description="mix: probability that a layer is left out in training; ladder: dropout of the projected layers "
        "and in the blocks",
    )
    width: Annotated[int | None, Key(_width)] = Field(
        None, ge=1, description="ladder: width of its blocks; null: an eighth of the encoder's"
    )
    heads: Annotated[int, Key("{} attention heads")] = Field(
        4, ge=1, description="ladder: attention heads of each block; they divide its width"
    )
    feed_forward: Annotated[float, Key("feed-forward parts {} times as wide")] = Field(
        4.0, gt=0, description="ladder: width of the feed-forward part of a block, as a multiple of its width"
    )
    gates: Annotated[Literal["learned", "fixed"], Key({"learned": "learned gates", "fixed": "gates fixed at 0.5"})] = (
        Field("learned", description="ladder: share of a layer in what its block reads; fixed: 0.5")
    )
    temperature: Annotated[float, Key("gate temperature {}")] = Field(
        0.1, gt=0, description="ladder: the share is sigmoid(alpha / temperature), and alpha begins at 0"
    )
    start: Annotated[
        Literal["random", "pruned"],
        Key({"random": "random start", "pruned": "started from the encoder's layers, pruned by weight magnitude"}),
    ] = Field(
        "random",
        description="ladder: pruned starts each block from the largest weights of the encoder's own layer (encoders "
        "with the layers of BERT)",
    )

    def meaningful(self) -> set[str]:
        """Return the keys that the way of combining reads."""
        if self.combine == "one":
            return {"combine", "layer"} | ({"margin"} if self.layer == "lowest" else set())
        if self.combine == "ladder":
            return {"combine", "norm", "dropout"} | LADDER - ({"temperature"} if self.gates == "fixed" else set())
        return {"combine", "last"} | ({"norm", "dropout"} if self.combine == "mix" else set())

    def refused_with(self, name: str) -> str:
        """Return the setting under which a key has no meaning."""
        if name == "margin":
            return "with a layer that is not lowest"
        return (
            "with fixed gates"
            if name == "temperature" and self.combine == "ladder"
            else f"with combine: {self.combine}"
        )

    @model_validator(mode="after")
    def _heads_divide_the_width(self):
        if self.width and self.width % self.heads:
            raise ValueError(f"width {self.width} is not divisible by {self.heads} heads")
        return self

    @property
    def learned(self) -> bool:
        """Whether the combination has parameters that train with the head."""
        return self.combine in ("mix", "ladder")

    @property
    def searched(self) -> bool:
        """Whether validation chooses the layer, after a fit on each."""
        return self.layer in SEARCHED_LAYERS

    def ladder_width(self, wide: int) -> int:
        """Return the width of a ladder's blocks on an encoder of width d.

        An eighth of d that its attention heads do not divide is a ValueError.
        """
        width = self.width or wide // 8
        if not width or width % self.heads:
            raise ValueError(
                f"layers: a ladder of width {width} (an eighth of the encoder's) cannot have {self.heads} heads; "
                "give a width that its heads divide"
            )
        return width

    def reads(self, layers: int) -> list[int]:
        """Return the boundaries that are read of an encoder of L layers; one that it lacks is a ValueError.

        Where validation chooses the layer, they are all of them.
        """
        if self.combine == "one" and not self.searched:
            read = [layers if self.layer is None else self.layer]
        elif self.combine == "ladder":
            if not layers:
                raise ValueError("layers: combine: ladder needs an encoder with layers, and this one has none")
            read = [0, *range(layers, 0, -self.every)[::-1]]
        else:
            read = list(range(layers + 1 - (layers + 1 if self.last is None else self.last), layers + 1))
        if not 0 <= read[0] <= read[-1] <= layers:
            raise ValueError(f"layers: {self.layer or self.last} is more than the encoder's {layers} layers")
        return read


def layers_text(mix: LayerMixConfig, context: Context) -> str:
    """Return which layers are read and how, as a Methods section says it."""
    said = clauses(mix, context)
    return ", ".join([" ".join(said[:2]), *said[2:]])
