"""The keys of the kinds of probes, besides those that all have (schema/probe_entry.py).

A kind whose keys are not among these has a model of its own next to its declaration (declarations/probes.py).
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from thaw.declarations.value_types import Id

WORD_EMBEDDINGS = "word_embeddings"  # layer 0 without positions and token types
STRENGTHS = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0]


class ProbeOptions(BaseModel):
    """The keys of a kind of probe besides those that all have (schema/probe_entry.py); this one has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PoolingOptions(ProbeOptions):
    """How a vector is made."""

    pooling: Literal["mean", "first", "max"] = Field(
        "mean", description="how the tokens of a text become one vector; of a word its first piece is read"
    )


class ChoiceOptions(ProbeOptions):
    """What something is chosen on."""

    choice: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="share of the training rows on which the strength or the epoch is chosen; nothing is fitted to it",
    )


class StrengthOptions(ProbeOptions):
    """Penalties."""

    l2: list[Annotated[float, Field(ge=0)]] = Field(
        STRENGTHS, min_length=1, description="strengths of the penalty, of which one is chosen"
    )


class LogMeOptions(PoolingOptions, ChoiceOptions):
    """Vectors, without the rows on which other probes choose."""


class LinearOptions(PoolingOptions, StrengthOptions, ChoiceOptions):
    """A linear probe whose strength is chosen."""


class InformationOptions(LinearOptions):
    """Estimators of mutual information."""

    rows: int = Field(1000, ge=20, description="texts or words of a split that are taken; fewer where it has fewer")
    dimensions: int = Field(4, ge=1, le=16, description="random axes that EDGE sees")
    widths: list[Annotated[float, Field(gt=0)]] = Field(
        [1.0, 1.5, 2.0, 2.5, 3.0], min_length=2, description="of EDGE's grids, in standard deviations"
    )
    components: int = Field(32, ge=1, description="principal components that k-means sees")
    clusters: list[Annotated[int, Field(ge=2)]] = Field(
        [8, 16, 32, 64], min_length=1, description="numbers of clusters"
    )


class TokenOptions(ProbeOptions):
    """A sample of tokens."""

    tokens: int = Field(10_000, ge=4, description="tokens of validation that are compared, at most; always the same")


class ExampleOptions(ProbeOptions):
    """A sample of texts."""

    examples: int = Field(1000, ge=1, description="texts that are read, at most; always the same")


class RemovalOptions(PoolingOptions, ExampleOptions):
    """The texts on which parts of a model are removed."""


class DescentOptions(ChoiceOptions):
    """A probe that is trained."""

    rate: float = Field(1e-3, gt=0, lt=10, description="learning rate of Adam")
    epochs: int = Field(30, ge=1, le=1000, description="how many at most")
    patience: int = Field(3, ge=1, description="epochs without a better one after which training ends")


class EdgeOptions(DescentOptions):
    """The network of edge probing, and what it reads as layer 0."""

    layer_0: Literal["embeddings", WORD_EMBEDDINGS] = Field(  # type: ignore[valid-type]
        "embeddings",
        description="embeddings: the output of the embeddings, as it is stored; word_embeddings: the embeddings of "
        "word pieces alone, normed, without positions and token types",
    )
    projection: int = Field(256, ge=1, description="width that the tokens of a span are projected to")
    hidden: int = Field(256, ge=1, description="width of the hidden layer")
    dropout: float = Field(0.3, ge=0, lt=1, description="dropout of the hidden layer")


class PluginOptions(LinearOptions):
    """What a plugin reads."""

    options: dict[Id, int | float | str] = Field({}, description="what a probe of your own reads")
