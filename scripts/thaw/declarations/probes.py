"""The kinds of probes: the keys of each, the tasks that it is for, what it reads, its score, and where its function is.

This module imports no torch: a function is imported when it is asked for, `PROBES["logme"].load()`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from thaw.core import plugins
from thaw.declarations.probe_options import (
    DomainOptions,
    EdgeOptions,
    ExampleOptions,
    HeadImportanceOptions,
    InformationOptions,
    LinearOptions,
    LogMeOptions,
    MdlOptions,
    PluginOptions,
    ProbeOptions,
    StructuralOptions,
    TokenOptions,
)
from thaw.declarations.task_types import PROBED_TYPES, TASK_TYPES

LABELS = tuple(name for name in TASK_TYPES if not name.endswith("regression"))
PAIRS = tuple(name for name in TASK_TYPES if name.startswith("pair_"))


@dataclass(frozen=True)
class ProbeInput:
    """What a probe reads: the class that reads it, and how many runs must have adapted the encoder.

    With no such number it reads one encoder at a time, pretrained or adapted; else the pretrained one and the runs.
    """

    load: Callable[[], type]
    runs: int = 0


@dataclass(frozen=True)
class ProbeKind:
    """A kind of probe.

    Attributes: load, which imports and returns its function, from what it reads (and but for comparisons a seed) to
    rows of layers.csv and the scores of each layer; the model of its options; what it reads; the types of task that it
    is for; keeps, columns that the corpus must keep; targets, options that each name a target of the corpus of kind
    label; serves, all this in words, with {options}; measure, the score that represents a layer, the task's first
    metric where it is None; the kinds of figure that draw it.
    """

    load: Callable[[], Callable]
    options: type[ProbeOptions]
    reads: ProbeInput
    figures: tuple[str, ...]
    measure: str | None = None
    types: tuple[str, ...] = TASK_TYPES
    serves: str = "texts and words"
    keeps: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    def is_for(self, entry, task, corpus) -> bool:
        """Return whether it has a meaning for a task. Args: the entries of the probe, the task and its corpus."""
        named = [corpus.targets.get(getattr(entry, option)) for option in self.targets]
        return task.type in self.types and set(self.keeps) <= set(corpus.keep) and set(named) <= {"label"}


def _vectors():
    from thaw.probes.reading import Reading

    return Reading


def _edges():
    from thaw.probes.edge_reading import EdgeReading

    return EdgeReading


def _trees():
    from thaw.probes.structural import TreeReading

    return TreeReading


def _comparison():
    from thaw.probes.encoder_comparison import EncoderComparison

    return EncoderComparison


def _linear():
    from thaw.probes.linear_probe import linear

    return linear


def _control():
    from thaw.probes.control import control

    return control


def _mdl():
    from thaw.probes.mdl import mdl

    return mdl


def _mutual_information():
    from thaw.probes.mutual_information import mutual_information

    return mutual_information


def _cka():
    from thaw.probes.similarity import cka

    return cka


def _rsa():
    from thaw.probes.similarity import rsa

    return rsa


def _svcca():
    from thaw.probes.similarity import svcca

    return svcca


def _attention_similarity():
    from thaw.probes.attention_similarity import attention_similarity

    return attention_similarity


def _weight_distance():
    from thaw.probes.weight_distance import weight_distance

    return weight_distance


def _masked_loss():
    from thaw.probes.masked_losses import masked_loss

    return masked_loss


def _next_sentence_loss():
    from thaw.probes.masked_losses import next_sentence_loss

    return next_sentence_loss


def _edge():
    from thaw.probes.edge import edge

    return edge


def _structural():
    from thaw.probes.structural import structural

    return structural


def _domain_divergence():
    from thaw.probes.domain_divergence import domain_divergence

    return domain_divergence


def _logme():
    from thaw.probes.logme import logme

    return logme


def _head_importance():
    from thaw.probes.head_importance import head_importance

    return head_importance


VECTORS, EDGES, TREES = ProbeInput(_vectors), ProbeInput(_edges), ProbeInput(_trees)
COMPARISON = ProbeInput(_comparison, runs=2)  # two, since what two seeds alone differ by is compared too

CURVES, LAYERS = ("probe_figure",), ("probe_figure", "heat_figure")
CHANGE = ("change_figure",)
LABELLED = {"types": LABELS, "serves": "labels and tags"}

PROBES = {
    "linear": ProbeKind(_linear, LinearOptions, VECTORS, (*LAYERS, "normalised_figure")),
    "control": ProbeKind(_control, LinearOptions, VECTORS, CURVES, "selectivity", **LABELLED),
    "mdl": ProbeKind(_mdl, MdlOptions, VECTORS, CURVES, "compression", **LABELLED),
    "mutual_information": ProbeKind(
        _mutual_information, InformationOptions, VECTORS, ("information_figure",), "bound", **LABELLED
    ),
    "cka": ProbeKind(_cka, TokenOptions, COMPARISON, CHANGE, "cka"),
    "rsa": ProbeKind(_rsa, TokenOptions, COMPARISON, CHANGE, "rsa"),
    "svcca": ProbeKind(_svcca, TokenOptions, COMPARISON, CHANGE, "svcca"),
    "attention_similarity": ProbeKind(
        _attention_similarity,
        ExampleOptions,
        COMPARISON,
        (*CHANGE, "attention_figure"),
        "attention_similarity",
    ),
    "weight_distance": ProbeKind(_weight_distance, ProbeOptions, COMPARISON, CHANGE, "weight_distance"),
    "masked_loss": ProbeKind(_masked_loss, ExampleOptions, COMPARISON, ("gain_figure",), "masked_loss"),
    "next_sentence_loss": ProbeKind(
        _next_sentence_loss,
        ExampleOptions,
        COMPARISON,
        ("gain_figure",),
        "next_sentence_loss",
        types=PAIRS,
        serves="pairs of texts",
    ),
    "surface": ProbeKind(
        _linear, LinearOptions, VECTORS, LAYERS, types=("classification",), serves="labels of single texts"
    ),
    "edge": ProbeKind(
        _edge,
        EdgeOptions,
        EDGES,
        (*LAYERS, "mix_figure"),
        "edge_f1",
        types=("tagging", "spans", *PROBED_TYPES),
        serves="tags, spans and edges",
    ),
    "structural": ProbeKind(
        _structural,
        StructuralOptions,
        TREES,
        LAYERS,
        "uuas",
        types=("edges",),
        keeps=("head",),
        serves="edges of a corpus that keeps the heads of its words",
    ),
    "domain_divergence": ProbeKind(
        _domain_divergence,
        DomainOptions,
        VECTORS,
        ("domain_figure",),
        "correlation",
        targets=("domain",),
        serves="corpora with a target {domain} of kind label",
    ),
    "logme": ProbeKind(_logme, LogMeOptions, VECTORS, (*CURVES, "gain_figure"), "logme"),
    "head_importance": ProbeKind(_head_importance, HeadImportanceOptions, VECTORS, ("heads_figure",), "importance"),
}


def plugin_kind(part: plugins.Plugin) -> ProbeKind:
    """Return the kind that a plugin states: its types of task and its measure; it is drawn as curves by layer."""
    types = part.stated("task_types", TASK_TYPES)
    return ProbeKind(
        lambda: plugins.load(part.word),
        PluginOptions,
        VECTORS,
        CURVES,
        part.stated("measure"),
        types=types,
        serves=", ".join(types),
    )


def draws(figure: str, kind: str) -> bool:
    """Return whether a kind of figure draws a kind of probe; plugins are drawn as curves by layer."""
    return figure in (PROBES[kind].figures if kind in PROBES else CURVES)


def drawn_by(figure: str) -> list[str]:
    """Return the kinds of probes that a kind of figure draws; none where it draws no probes."""
    return [kind for kind in PROBES if draws(figure, kind)]
