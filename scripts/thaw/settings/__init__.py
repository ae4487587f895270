"""The shape of every catalogue entry and of an experiment: what a key means, its default, its limits.

A spec holds an entry without its display keys and without values equal to the default (`spec_of`), so that a new
option orphans no finished result. Unknown keys are errors; `thaw.catalogue` names the near misses.
"""

from thaw.settings.advice import Advice, Guideline
from thaw.settings.base import DISPLAY_KEYS, Entry, spec_of
from thaw.settings.data import (
    EDGE_METRICS,
    GRAMMARS,
    GROUPINGS,
    METRICS,
    METRICS_OF_TYPE,
    PROBED_TYPES,
    TARGET_OF_TYPE,
    TASK_TYPES,
    Corpus,
    Files,
    Hub,
    Size,
    Source,
    Subset,
    Task,
    View,
)
from thaw.settings.experiment import (
    BASELINES,
    RUN_BASELINES,
    Compute,
    Ensemble,
    Experiment,
    External,
    Member,
    Output,
    Store,
)
from thaw.settings.findings import Finding, Term
from thaw.settings.inserts import Insert
from thaw.settings.models import HEAD_KINDS, After, Encoder, Head, HeadSet, Layers, Phase, Search, Strategy
from thaw.settings.phases import of_phase
from thaw.settings.pretraining import FurtherPretraining
from thaw.settings.probes import COMPARISONS, OF_CLASSES, PROBE_FIGURES, Probe, draws
from thaw.settings.reference import PrintedTable, Reference, Where

__all__ = [
    "Advice",
    "After",
    "BASELINES",
    "COMPARISONS",
    "Compute",
    "Corpus",
    "DISPLAY_KEYS",
    "EDGE_METRICS",
    "Encoder",
    "Ensemble",
    "Entry",
    "Experiment",
    "External",
    "Finding",
    "Files",
    "FurtherPretraining",
    "GRAMMARS",
    "GROUPINGS",
    "Guideline",
    "HEAD_KINDS",
    "Head",
    "HeadSet",
    "Layers",
    "Hub",
    "Insert",
    "METRICS",
    "Member",
    "METRICS_OF_TYPE",
    "RUN_BASELINES",
    "Output",
    "OF_CLASSES",
    "Phase",
    "PROBED_TYPES",
    "PROBE_FIGURES",
    "Probe",
    "PrintedTable",
    "Reference",
    "Where",
    "Search",
    "Size",
    "Source",
    "Store",
    "Strategy",
    "Subset",
    "Term",
    "TARGET_OF_TYPE",
    "TASK_TYPES",
    "Task",
    "View",
    "draws",
    "of_phase",
    "spec_of",
]
