"""Which layers a head reads, and how they are combined: `layers` of an entry of config/heads.yaml, or under `reads`.

Each way of combining them is a model of its own, chosen by the key `combine`. The modules that combine states are in
thaw.heads.combination. A plug-in declares its own under COMBINATIONS.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Union, get_args

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from thaw.core import plugins
from thaw.core.boundaries import uppermost
from thaw.core.errors import suggestion
from thaw.declarations.lazy_import import LazyImport
from thaw.schema.keys import ConfigModel, Key, fields_by_name

NORM = Field(False, description="normalise each layer to mean 0 and standard deviation 1 first")


class LayersConfig(ConfigModel):
    """Which layers a head reads, and how they are combined. What all ways of combining them share."""

    combine: str
    learned: ClassVar[bool] = False  # whether the combination has parameters that train with the head

    @model_validator(mode="before")
    @classmethod
    def _keys_of_this_way(cls, values):
        """Refuse keys of other ways by name; a key of none is left to the error on unknown keys."""
        others = {key for model in WAYS.values() for key in fields_by_name(model)} - set(fields_by_name(cls))
        for key in sorted(others & set(values) if isinstance(values, dict) else ()):
            raise ValueError(f"{key} has no meaning with combine: {values.get('combine', 'one')}; leave it out")
        return values

    @field_validator("combine", mode="before")
    @classmethod
    def _known_way(cls, word):
        if str(word) not in WAYS:
            raise ValueError(f"'{word}' is no way of combining layers{suggestion(str(word), list(WAYS))}")
        return word

    @property
    def searched(self) -> bool:
        """Whether validation chooses the layer, after a fit on each."""
        return False

    @property
    def reads_pooled(self) -> bool:
        """Whether states that are pooled first, by the maximum too, and then combined give the same vector."""
        return False

    def width_of(self, width: int, count: int) -> int:
        """Return the width of the state of so many boundaries of width d."""
        return width

    def check_width(self, width: int) -> None:
        """Raise ValueError for an encoder of a width d that does not go with the entry; by default none."""

    def reads(self, layers: int) -> list[int]:
        """Return the boundaries that are read of an encoder of L layers; one that it lacks is a ValueError."""
        raise NotImplementedError


@dataclass(frozen=True)
class CombinationKind(LazyImport):
    """A way of combining layers that a plug-in has. source: a `thaw.heads.combination.Combination`."""

    settings: type[LayersConfig]


class OneLayerConfig(LayersConfig):
    """A single layer, by default the last."""

    combine: Literal["one"] = Field("one", description="one: a single layer")
    layer: Annotated[Annotated[int, Field(ge=0)] | Literal["best", "lowest"] | None, Key(unit="layer")] = Field(
        None,
        description="which layer, 0 is the embeddings; null: the last. Under reads: of a strategy with lbfgs each "
        "layer has its own fit: best, the best one on validation; lowest, the lowest within margin of it",
    )
    margin: Annotated[float, Key(unit="score")] = Field(
        0.01, ge=0, lt=1, description="lowest: how much lower than the best layer's its validation score may be"
    )

    def meaningless(self) -> dict[str, str]:
        """A margin is that of the lowest layer."""
        return {} if self.layer == "lowest" else {"margin": "with a layer that is not lowest"}

    @property
    def searched(self) -> bool:
        """Whether validation chooses the layer, after a fit on each."""
        return isinstance(self.layer, str)

    @property
    def reads_pooled(self) -> bool:
        """Whether states that are pooled first give the same vector: nothing is combined."""
        return True

    def reads(self, layers: int) -> list[int]:
        """Return the boundary that is read; where validation chooses the layer, all of them."""
        if self.searched:
            return list(range(layers + 1))
        layer = self.layer if isinstance(self.layer, int) else None
        return _within([layers if layer is None else layer], layer, layers)


class LastLayersConfig(LayersConfig):
    """The last layers, or all of them with the embeddings."""

    last: Annotated[int | None, Key(unit="layers")] = Field(
        None, ge=1, description="number of layers from the top; null: all layers and the embeddings"
    )

    def reads(self, layers: int) -> list[int]:
        """Return the boundaries that are read, the uppermost ones."""
        return _within(uppermost(self.last, layers), self.last, layers)


class PlainCombinationConfig(LastLayersConfig):
    """The mean, the sum or the concatenation of layers, without anything learned."""

    combine: Literal["mean", "sum", "concat"] = Field(
        description="mean, sum, or concat, the concatenation of the layers' states"
    )

    @property
    def reads_pooled(self) -> bool:
        """Whether states that are pooled first give the same vector; a maximum is taken after layers are added up."""
        return self.combine == "concat"

    def width_of(self, width: int, count: int) -> int:
        """Return the width of the state of so many boundaries of width d."""
        return width * count if self.combine == "concat" else width


class ScalarMixConfig(LastLayersConfig):
    """The learned scalar mix (Peters et al. 2018)."""

    learned: ClassVar[bool] = True
    combine: Literal["mix"] = Field(description="mix: learned scalar mix (Peters et al. 2018)")
    norm: bool = NORM
    dropout: Annotated[float, Key(unit="probability")] = Field(
        0.0, ge=0, lt=1, description="probability that a layer is left out in training"
    )
    penalty: float = Field(
        0.0, ge=0, description="times the sum of the squared weights, before their softmax, is added to the loss"
    )


class LayerAttentionConfig(ScalarMixConfig):
    """Attention over layers: a mix whose weights depend on the token (after Song et al. 2020)."""

    combine: Literal["attention"] = Field(  # type: ignore[assignment]
        description="attention: a mix whose weights a learned query gives at each token (after Song et al. 2020)"
    )


COMBINATIONS: dict[str, CombinationKind] = plugins.shipped("COMBINATIONS")
MODELS: tuple[type[LayersConfig], ...] = (OneLayerConfig, PlainCombinationConfig, ScalarMixConfig, LayerAttentionConfig)
MODELS += tuple(kind.settings for kind in COMBINATIONS.values())
WAYS = {word: model for model in MODELS for word in get_args(model.model_fields["combine"].annotation)}
LAST_LAYER = OneLayerConfig()


def _model_name(entry) -> str:
    """Return the model that an entry is one of, by its `combine`; one with an unknown word is refused by any."""
    way = entry.get("combine", "one") if isinstance(entry, dict) else getattr(entry, "combine", "one")
    return WAYS.get(str(way), OneLayerConfig).__name__


if TYPE_CHECKING:
    Layers = LayersConfig
else:
    TAGGED = tuple(Annotated[model, Tag(model.__name__)] for model in MODELS)
    Layers = Annotated[Union[TAGGED], Discriminator(_model_name)]  # noqa: UP007


def _within(read: list[int], said: int | None, layers: int) -> list[int]:
    """Return boundaries as they are; any that an encoder of L layers lacks is a ValueError. Args: what names them."""
    if not 0 <= read[0] <= read[-1] <= layers:
        raise ValueError(f"layers: {said} is more than the encoder's {layers} layers")
    return read
