"""The kinds of probes: the keys of each, the tasks that it is for, what it reads, its score, and where its function is.

This module imports no torch: a function is imported when it is asked for, `PROBES["logme"].load()`.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from thaw.core import plugins
from thaw.declarations.lazy_import import LazyImport
from thaw.declarations.task_types import PAIR_TYPES, PREDICTED_TYPES, TARGET_OF_TYPE, TASK_TYPES, TEXTS_OF_TYPE
from thaw.declarations.value_types import Id

WORD_EMBEDDINGS = "word_embeddings"  # layer 0 without positions and token types
STRENGTHS = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0]


class ProbeOptions(BaseModel):
    """The keys of a kind of probe besides those that all have (schema/by_kind.py); this one has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PoolingOptions(ProbeOptions):
    """How a vector is made."""

    pooling: Literal["mean", "first", "max"] = Field(
        "mean", description="how the tokens of a text become one vector; of a word its first piece is read"
    )


class StrengthOptions(ProbeOptions):
    """Penalties."""

    l2: list[Annotated[float, Field(ge=0)]] = Field(
        STRENGTHS, min_length=1, description="strengths of the penalty, of which one is chosen"
    )


class LinearOptions(PoolingOptions, StrengthOptions):
    """A linear probe whose strength is chosen."""


class InformationOptions(LinearOptions):
    """Estimators of mutual information."""

    rows: int = Field(1000, ge=20, description="texts or words of a split that are taken; fewer where it has fewer")


class TokenOptions(ProbeOptions):
    """A sample of tokens."""

    tokens: int = Field(10_000, ge=4, description="tokens of validation that are compared, at most; always the same")


class ExampleOptions(ProbeOptions):
    """A sample of texts."""

    examples: int = Field(1000, ge=1, description="texts that are read, at most; always the same")


class RemovalOptions(PoolingOptions, ExampleOptions):
    """The texts on which parts of a model are removed."""


class DescentOptions(ProbeOptions):
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


LABEL_TYPES = tuple(name for name in TASK_TYPES if TARGET_OF_TYPE[name] in ("label", "tags"))
TYPES_ON_WORDS = tuple(name for name, texts in TEXTS_OF_TYPE.items() if texts == 0)


@dataclass(frozen=True)
class ProbeInput(LazyImport):
    """What a probe reads: the class that reads it, and how many runs must have adapted the encoder.

    With no such number it reads one encoder at a time, pretrained or adapted; else the pretrained one and the runs.
    """

    runs: int = 0


@dataclass(frozen=True)
class ProbeKind(LazyImport):
    """A kind of probe.

    Attributes: source, its function, from what it reads (and but for comparisons a seed) to rows of layers.csv and the
    scores of each layer; the model of its options; what it reads; the types of task that it is for; targets, options
    that each name a target of the corpus of kind label; serves, all this in words, with {options}; measure, the score
    that represents a layer, the task's first metric where it is None; shown_in, the kinds of figures and tables that
    show it; of_runs, whether it reads finished runs with their heads and never the pretrained encoder; insert, the kind
    of insert that such runs must have; version, raised where the results of this kind alone change (core/steps.py has
    that of the step).
    """

    options: type[ProbeOptions]
    reads: ProbeInput
    shown_in: tuple[str, ...]
    measure: str | None = None
    types: tuple[str, ...] = PREDICTED_TYPES
    serves: str = "texts and words"
    targets: tuple[str, ...] = ()
    of_runs: bool = False
    insert: str | None = None
    version: int = 1

    def is_for(self, entry, task, corpus) -> bool:
        """Return whether it has a meaning for a task. Args: the entries of the probe, the task and its corpus."""
        named = [corpus.targets.get(getattr(entry, option)) for option in self.targets]
        return task.type in self.types and set(named) <= {"label"}


class PluginKind(ProbeKind):
    """A plugin; its source is its import path."""

    def load(self):
        return plugins.load(self.source)


VECTORS, EDGES = ProbeInput("thaw.probes.reading:Reading"), ProbeInput("thaw.probes.edge_reading:EdgeReading")
COMPARISON = ProbeInput(
    "thaw.probes.encoder_comparison:EncoderComparison", runs=2
)  # two, since what two seeds alone differ by is compared too

CURVES, LAYERS = ("probe_figure",), ("probe_figure", "layer_table")
CHANGE = ("change_figure",)
LABELLED: Any = {"types": LABEL_TYPES, "serves": "labels and tags"}

PROBES = {
    "linear": ProbeKind("thaw.probes.linear_probe:linear", LinearOptions, VECTORS, LAYERS, version=2),
    "mutual_information": ProbeKind(
        "thaw.probes.mutual_information:mutual_information",
        InformationOptions,
        VECTORS,
        (*CURVES, "information_table"),
        "bound",
        version=2,
        **LABELLED,
    ),
    "cka": ProbeKind("thaw.probes.similarity:cka", TokenOptions, COMPARISON, CHANGE, "cka"),
    "rsa": ProbeKind("thaw.probes.similarity:rsa", TokenOptions, COMPARISON, CHANGE, "rsa"),
    "svcca": ProbeKind("thaw.probes.similarity:svcca", TokenOptions, COMPARISON, CHANGE, "svcca"),
    "masked_loss": ProbeKind(
        "thaw.probes.masked_losses:masked_loss",
        ExampleOptions,
        COMPARISON,
        ("gain_figure", "forgetting_table"),
        "masked_loss",
    ),
    "next_sentence_loss": ProbeKind(
        "thaw.probes.masked_losses:next_sentence_loss",
        ExampleOptions,
        COMPARISON,
        ("gain_figure", "forgetting_table"),
        "next_sentence_loss",
        types=PAIR_TYPES,
        serves="pairs of texts",
    ),
    "edge": ProbeKind(
        "thaw.probes.edge:edge",
        EdgeOptions,
        EDGES,
        (*LAYERS, "mix_figure"),
        "edge_f1",
        types=TYPES_ON_WORDS,
        serves="tags, spans and edges",
    ),
    "logme": ProbeKind("thaw.probes.logme:logme", PoolingOptions, VECTORS, (*CURVES, "gain_figure"), "logme"),
}
PROBES |= plugins.shipped("PROBES")


def plugin_kind(part: plugins.Plugin) -> ProbeKind:
    """Return the kind that a plugin states: its types of task and its measure; it is drawn as curves by layer."""
    types = part.stated("task_types", PREDICTED_TYPES)
    return PluginKind(
        part.word,
        PluginOptions,
        VECTORS,
        CURVES,
        part.stated("measure"),
        types=types,
        serves=", ".join(types),
    )


def draws(output: str, kind: str) -> bool:
    """Return whether a kind of figure or table shows a kind of probe; plugins are drawn as curves by layer."""
    return output in (PROBES[kind].shown_in if kind in PROBES else CURVES)
