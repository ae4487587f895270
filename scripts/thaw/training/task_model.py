"""The model of one phase: the encoder above its boundary, the head, and the loader of both.

B examples, S sequences (B; 2B where the texts of pairs are read separately), T tokens, W words, d width, C outputs, L
layers.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from thaw.adaptation.optimizers import PROJECTION
from thaw.core.boundaries import ACTIVATION, computes_layers
from thaw.core.errors import UserError
from thaw.encoders.transformers import Encoder
from thaw.evaluation.result_files import Predictions
from thaw.evaluation.target_kinds import TARGET_KINDS
from thaw.features.batch import Batch, tensors_to_device
from thaw.features.row_sets import batches
from thaw.features.store import FeatureStore
from thaw.heads.base import Head


class BatchLoader:
    """Gives rows of a split as a batch, with their stored states at some boundaries."""

    def __init__(self, store: FeatureStore, boundaries: list[int], device: torch.device):
        """Keep the store, the boundaries (none: token ids alone) and the device to deliver to."""
        self.store, self.boundaries, self.device = store, boundaries, device

    def __call__(self, split: str, rows) -> tuple[Batch, dict[int, torch.Tensor]]:
        """Return a batch and, by boundary, the states [S, T, d] float32 of some rows."""
        batch = self.store.batch(split, rows)
        states = {n: self.store.states(n, split).gather(rows, batch) for n in self.boundaries}
        if self.device.type != "cpu":
            states = dict(zip(states, tensors_to_device(list(states.values()), self.device), strict=True))
        return batch.to(self.device), states


class TaskModel(nn.Module):
    """A head on an encoder; the encoder is None where all that the head reads is stored."""

    def __init__(self, encoder: Encoder | None, head: Head, precision: str):
        """Join the parts; precision "bf16" computes under autocast, "fp32" in float32."""
        super().__init__()
        self.encoder, self.head, self.precision = encoder, head, precision
        self.projections: nn.Module | None = None  # what trains with the model towards a teacher, and is not kept

    def forward(self, batch: Batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        """Return the head's logits, from stored states [S, T, d] by boundary and, above them, the encoder's."""
        return self.with_states(batch, stored, [])[0]

    def with_states(
        self, batch: Batch, stored: dict[int, torch.Tensor], more: list[int], attended: Sequence[int] = ()
    ) -> tuple[torch.Tensor, dict[int, torch.Tensor], dict[int, tuple]]:
        """Return the head's logits with hidden states and what attention computes with, for distances to a teacher's.

        States [S, T, d] are by boundary: those that the head reads, and `more`. Queries, keys and values [S, h, T, e]
        are by layer: those of `attended`.
        """
        device = batch.mask.device.type
        recorded: Any = contextlib.nullcontext({})
        if self.encoder and attended:
            recorded = self.encoder.recording(list(attended))
        with torch.autocast(device, torch.bfloat16, enabled=self.precision == "bf16"), recorded as taken:
            states = all_states(self.encoder, self.head, batch, stored, more, in_parts=not attended)
            return self.head(self.head.combination(states, batch.mask), batch), states, taken

    def head_flops(self, batch: Batch) -> float:
        """Return the forward operations of the head on a batch, with those of combining the layers that it reads."""
        return self.head.flops(batch) + self.head.combination.flops(batch)

    def components(self, names: list[str]) -> dict[str, list[tuple[str, nn.Parameter]]]:
        """Return the named parameters of some components: "head", "embeddings", "layer.1" to "layer.L", and parts."""
        parts = {"head": list(self.head.named_parameters())}
        if self.projections is not None:
            names = [*names, PROJECTION]
            parts[PROJECTION] = list(self.projections.named_parameters())
        if self.encoder:
            parts |= self.encoder.components([name for name in names if name not in parts])
        return {name: parts[name] for name in names}

    @torch.no_grad()
    def predict(self, loader: BatchLoader, split: str, rows, words: list[int] | None) -> Predictions:
        """Return the predictions for some rows of a split, in eval mode, in the extraction's batches.

        `words` are the word counts of these rows, None where the task has none.
        """
        self.eval()
        values: list = [None] * len(rows)
        likely: list = [None] * len(rows)
        for positions in batches(loader.store.sizes(split)[rows]):
            batch, stored = loader(split, rows[positions])
            logits = self(batch, stored)
            decoded = self.head.decode(logits, batch).cpu().tolist()
            kept = self.head.probabilities(logits)
            shares: Any = [None] * len(positions) if kept is None else kept.cpu().numpy()
            for position, value, share in zip(positions, decoded, shares, strict=True):
                values[position] = value if words is None else value[: words[position]]
                likely[position] = share
        known = np.stack(likely) if likely and likely[0] is not None else None
        return Predictions(rows, TARGET_KINDS[self.head.target].array(values), known)


def read_states(encoder: Encoder | None, head: Head, batch: Batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
    """Return the one state [S, T, D] that a head reads: of stored boundaries, and of those that the encoder computes.

    The encoder starts from the stored state of the boundary that it was resumed at, or from the token ids.
    """
    return head.combination(all_states(encoder, head, batch, stored, []), batch.mask)


def all_states(
    encoder: Encoder | None,
    head: Head,
    batch: Batch,
    stored: dict[int, torch.Tensor],
    more: list[int],
    in_parts: bool = True,
) -> dict[int, torch.Tensor]:
    """Return by boundary the states [S, T, d] that a head reads, and some more; see `read_states`.

    Where a batch in training would leave more bytes than the encoder's most it is computed in parts, each once more on
    the way back: the update is the same, but for the draws of dropout.
    """
    if encoder is None:
        return stored
    wanted = sorted({n for n in (*head.combination.read, *more) if n not in stored})
    state = None if encoder.start is None else stored.get(encoder.start)
    count, length = batch.mask.shape
    most = encoder.most_bytes if in_parts and torch.is_grad_enabled() else None
    size = max(1, int(most / bytes_left(encoder, wanted[-1], length))) if most and wanted else count
    if size >= count:
        return stored | encoder.compute_boundaries(batch, wanted, state)
    parts = []
    for rows in (slice(start, start + size) for start in range(0, count, size)):
        given = batch.some(rows), wanted, None if state is None else state[rows]
        parts.append(checkpoint(encoder.compute_boundaries, *given, use_reentrant=False))
    return stored | {n: torch.cat([part[n] for part in parts]) for n in wanted}


def bytes_left(encoder: Encoder, highest: int, tokens: int) -> int:
    """Return about how many bytes a sequence leaves for the way back. Args: the highest boundary that is computed."""
    return tokens * (highest - (encoder.start or 0)) * encoder.width * ACTIVATION


def resumed(
    folder: Path, boundary: int | None, highest: int, tensors: dict, device, inserts=None, kept=None
) -> Encoder | None:
    """Return the encoder above a boundary with the tensors that were already trained, or None where no layer is above.

    Args: folder of the encoder; boundary, None for from text; the highest boundary that the head reads; trained
    tensors by parameter name; Inserts, if there are any, which are put in before these tensors; the layers that
    are kept, None for all.
    Raises UserError where a tensor belongs below the boundary: the stored states are those of the pretrained layers.
    """
    if not computes_layers(boundary, highest):
        if tensors:
            raise UserError(f"a phase reads boundary {boundary}, though layers below it were trained before it")
        return None
    encoder = Encoder.load(folder)
    if kept is not None:
        encoder.shorten(kept)
    if inserts is not None:
        inserts.into(encoder)
    components = {name: part for part, named in encoder.components().items() for name, _ in named}
    encoder.put(tensors)
    for component in (components[name] for name in tensors):
        if boundary is not None and (component == "embeddings" or int(component.partition(".")[2]) <= boundary):
            raise UserError(f"a phase resumes from boundary {boundary}, though {component} was trained before it")
    return encoder.resume_at(boundary).to(device)
