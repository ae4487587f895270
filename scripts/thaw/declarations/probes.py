"""The kinds of probes: the keys of each, the tasks that it is for, what it reads, its score, and where its function is.

This module imports no torch: a function is imported when it is asked for, `PROBES["logme"].load()`.
"""

from dataclasses import dataclass
from typing import Any

from thaw.core import plugins
from thaw.declarations.lazy_import import LazyImport
from thaw.declarations.probe_options import (
    EdgeOptions,
    ExampleOptions,
    InformationOptions,
    LinearOptions,
    LogMeOptions,
    PluginOptions,
    ProbeOptions,
    TokenOptions,
)
from thaw.declarations.task_types import PAIR_TYPES, PREDICTED_TYPES, TARGET_OF_TYPE, TASK_TYPES, TEXTS_OF_TYPE

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
        """Import and return its function."""
        return plugins.load(self.source)


VECTORS, EDGES = ProbeInput("thaw.probes.reading:Reading"), ProbeInput("thaw.probes.edge_reading:EdgeReading")
COMPARISON = ProbeInput(
    "thaw.probes.encoder_comparison:EncoderComparison", runs=2
)  # two, since what two seeds alone differ by is compared too

CURVES, LAYERS = ("probe_figure",), ("probe_figure", "layer_table")
CHANGE = ("change_figure",)
LABELLED: Any = {"types": LABEL_TYPES, "serves": "labels and tags"}

PROBES = {
    "linear": ProbeKind("thaw.probes.linear_probe:linear", LinearOptions, VECTORS, LAYERS),
    "mutual_information": ProbeKind(
        "thaw.probes.mutual_information:mutual_information",
        InformationOptions,
        VECTORS,
        (*CURVES, "information_table"),
        "bound",
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
    "logme": ProbeKind("thaw.probes.logme:logme", LogMeOptions, VECTORS, (*CURVES, "gain_figure"), "logme"),
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


def drawn_by(figure: str) -> list[str]:
    """Return the kinds of probes that a kind of figure draws; none where it draws no probes."""
    return [kind for kind in PROBES if draws(figure, kind)]
