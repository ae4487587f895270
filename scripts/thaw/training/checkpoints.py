"""What a run starts from, and what it leaves to the run that starts after it."""

from dataclasses import dataclass
from pathlib import Path

import torch

from thaw.adaptation.peft_modules import Inserts
from thaw.core import layout
from thaw.core.files import save_tensors, write_parquet
from thaw.evaluation.result_files import Predictions, predictions_frame, write_result
from thaw.evaluation.transfer_sets import TransferSet, all_predictions
from thaw.heads.base import Head
from thaw.training.context import TaskContext


@dataclass
class Start:
    """What an earlier run left: the head's tensors and the encoder's trained ones, both by name, and its inserts.

    A run on another task leaves no head.
    """

    head: dict[str, torch.Tensor]
    encoder: dict[str, torch.Tensor]
    inserts: Inserts | None = None


@dataclass
class Trained:
    """What a run leaves: its head, the encoder's trained tensors, its predictions, outcome, history and cost."""

    head: Head
    encoder: dict[str, torch.Tensor]
    inserts: Inserts | None
    predictions: dict[str, Predictions]
    transfer: list[tuple[TransferSet, dict[str, Predictions]]]
    outcome: dict  # scores, rows, flags, chosen: as in metrics.json
    history: list[dict]
    cost: dict


def write_run(out: Path, spec: dict, context: TaskContext, left, outcome: dict, cost: dict) -> None:
    """Write a run's files: tensors first, metrics.json last.

    Args: folder; the run's spec; its task and corpus; what it left, for head, history and predictions; its outcome and
    cost.
    """
    import pandas

    save_tensors(out / "head.safetensors", left.head.state_dict())
    columns = {split: f"{split}_{context.main_metric}" for split in ("train", "validation", "folds")}
    predictions = all_predictions(context.task, context.corpus, left.predictions, left.transfer)
    write_result(out, spec, outcome, cost, predictions, pandas.DataFrame(left.history).rename(columns=columns))


def write_folds(out: Path, context: TaskContext, left, predictions: dict[str, Predictions]) -> None:
    """Write the predictions for train and validation by fits that did not see the row; where there are none, no row.

    Args: folder; the run's task and corpus; what it left; these predictions by split.
    """
    frame = predictions_frame(context.task, context.corpus, predictions or left.predictions, train=True)
    write_parquet(out / layout.FOLDS, frame if predictions else frame.iloc[:0])
