"""What one phase computes with: the encoder above its boundary, the head, and what they are fed.

B examples, S sequences (B; 2B where the texts of pairs are read apart), T tokens, W words, d width, C outputs, L
layers.
"""

from pathlib import Path

import torch
from torch import nn

from thaw.analysis.results import Answers
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.features.extract import batches
from thaw.features.store import Store
from thaw.heads.base import Head
from thaw.records import UserError


class Feed:
    """Gives rows of a split as a batch and, where a boundary is given, the stored states that enter there."""

    def __init__(self, store: Store, boundary: int | None, device: torch.device):
        """Keep the store, the boundary (None: from token ids alone) and the device to deliver to."""
        self.store, self.boundary, self.device = store, boundary, device

    def __call__(self, split: str, rows) -> tuple[Batch, torch.Tensor | None]:
        """Return a batch and the state [S, T, d] float32, or None, of some rows."""
        batch = self.store.batch(split, rows)
        if self.boundary is None:
            return batch.to(self.device), None
        state = self.store.states(self.boundary, split).gather(rows, batch)
        if self.device.type == "cuda":
            state = state.pin_memory().to(self.device, non_blocking=True)
        return batch.to(self.device), state


class Model(nn.Module):
    """A head on an encoder; the encoder is None where the head reads the stored last hidden state itself."""

    def __init__(self, encoder: Encoder | None, head: Head, precision: str):
        """Put the parts together; precision "bf16" computes under autocast, "fp32" as it stands."""
        super().__init__()
        self.encoder, self.head, self.precision = encoder, head, precision

    def forward(self, batch: Batch, state: torch.Tensor | None) -> torch.Tensor:
        """Return the head's logits, from the state [S, T, d] or, where it is None, from the token ids."""
        device = batch.mask.device.type
        with torch.autocast(device, torch.bfloat16, enabled=self.precision == "bf16"):
            states = state if self.encoder is None else self.encoder(batch, state)
            return self.head(states, batch)

    def components(self, names: list[str]) -> dict[str, list[tuple[str, nn.Parameter]]]:
        """Return the named parameters of some components: "head", "embeddings", "layer.1" to "layer.L"."""
        parts = self.encoder.components() if self.encoder else {}
        parts["head"] = list(self.head.named_parameters())
        return {name: parts[name] for name in names}

    @torch.no_grad()
    def answers(self, feed: Feed, split: str, rows, words: list[int] | None) -> Answers:
        """Return the answers to some rows of a split, in eval mode, in the extraction's batches.

        `words` are the word counts of these rows, None where the task has none.
        """
        self.eval()
        values: list = [None] * len(rows)
        likely: list = [None] * len(rows)
        for positions in batches(feed.store.sizes(split)[rows]):
            batch, state = feed(split, rows[positions])
            logits = self(batch, state)
            found = self.head.decode(logits, batch).cpu().tolist()
            classes = not (self.head.words or self.head.scores)
            shares = logits.float().softmax(-1).cpu().numpy() if classes else [None] * len(positions)
            for position, value, share in zip(positions, found, shares, strict=True):
                values[position] = value if words is None else value[: words[position]]
                likely[position] = share
        return _answers(rows, values, likely if likely and likely[0] is not None else None)


def _answers(rows, values: list, likely: list | None) -> Answers:
    """Return answers with numbers as arrays and tags as lists."""
    import numpy as np

    tags = bool(values) and isinstance(values[0], list)
    return Answers(rows, values if tags else np.array(values), None if likely is None else np.stack(likely))


def resumed(folder: Path, boundary: int | None, layers: int, tensors: dict, device) -> Encoder | None:
    """Return the encoder above a boundary with already trained tensors in place, or None at boundary L.

    Args: folder of the encoder; boundary, None for from text; number of layers L; trained tensors by parameter name.
    Raises UserError where a tensor belongs below the boundary: the stored states are those of the pretrained layers.
    """
    if boundary == layers:
        if tensors:
            raise UserError(f"a phase reads boundary {boundary}, though layers below it were trained before it")
        return None
    encoder = Encoder.load(folder)
    places = {name: part for part, named in encoder.components().items() for name, _ in named}
    parameters = dict(encoder.model.named_parameters())
    for name, tensor in tensors.items():
        if name not in parameters or parameters[name].shape != tensor.shape:
            raise UserError(f"{folder} has no tensor {name} of shape {list(tensor.shape)} to go on training")
        if boundary is not None and (places[name] == "embeddings" or _layer(places[name]) <= boundary):
            raise UserError(f"a phase resumes from boundary {boundary}, though {places[name]} was trained before it")
        with torch.no_grad():
            parameters[name].copy_(tensor)
    return encoder.resume_at(boundary).to(device)


def _layer(component: str) -> int:
    """Return n of "layer.n"."""
    return int(component.partition(".")[2])
