"""What a run starts from, and what it leaves to the run that starts after it."""

from dataclasses import dataclass

import torch

from thaw.adaptation.peft_modules import Inserts
from thaw.evaluation.result_files import Predictions
from thaw.evaluation.transfer_sets import TransferSet
from thaw.heads.base import Head


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
