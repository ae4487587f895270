"""Names in print of the strategies and tasks of a record, which has ids, and its means."""

import re
from functools import cache
from pathlib import Path

import numpy as np

from thaw.declarations.splits import RESERVED
from thaw.schema.catalogue import Catalogue, shipped
from thaw.words import wording

HOME = Path(__file__).resolve().parents[1]
RECORDS = HOME / "docs/results"
LABELS = {
    "bag_of_words": "*Bag of words*",
    "majority": "*Majority class*",
    "budget_ulmfit": "Gradual unfreezing",
    "frozen_lowest_layer": "Linear probe, lowest sufficient layer",
    "ladder": "Ladder side network",
    "frozen_sgd": "Frozen encoder (AdamW, 3 epochs)",
    "full_one_rate": "Full fine-tuning, one learning rate",
    "full_5_epochs": "Full fine-tuning, 5 epochs",
    "stack_1_epoch": "Stack for 1 epoch, then fine-tune",
    "stack_then_finetune": "Stack, then fine-tune",
    "stack_by_gap": "Stack until a gap, then fine-tune",
    "stack_converged": "Stack to convergence, then fine-tune",
}


@cache
def catalogue() -> Catalogue:
    """Return the shipped catalogue."""
    return Catalogue(shipped(HOME))


def label(point: str) -> str:
    """Return the name of a strategy at a point of its sweep, as tables print it."""
    name, _, variant = point.partition(" ")
    shown = LABELS.get(name) or catalogue().get("strategies", name, "record").label
    swept = re.fullmatch(r"([a-z]+?)0*(\d+)", variant)
    return f"{shown} ({swept[1]} = {swept[2]})" if swept else shown


def task_label(task: str) -> str:
    """Return a task's name in print."""
    return catalogue().get("tasks", task, "record").label


def mean(values) -> str:
    """Return a mean, of three values and more ± their standard deviation where they differ; a dash without values."""
    values = np.asarray(values, float)
    if not len(values) or np.isnan(values).any():
        return "–"
    spread = values.std(ddof=1) if len(values) > 2 else 0.0
    return wording.number(values.mean()) + f" ± {spread:.1f}" * bool(spread > 0)


def title(task: str, split: str = "test") -> str:
    """Return a task's name and metric, and its split where that has a name of its own."""
    entry = catalogue().get("tasks", task, "record")
    place = "" if split in ("test", RESERVED) else f", {split.replace('_', ' ')}"
    return f"{entry.label}{place}<br>{wording.metric_name({}, entry.metrics[0])}"
