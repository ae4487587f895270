"""A batch of tokenised examples, padded to its longest.

B examples, S sequences (B; 2B where the texts of pairs are read separately: first and second of an example next to each
other; in the same way the windows over the contexts of questions), T tokens of the longest, W words of the longest.
"""

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import torch

TOGETHER = 1024  # rows of which a store is asked at a time
ALIGNED = 16  # bytes: where a tensor begins among others
NONE = torch.empty(0, dtype=torch.int64)  # what a batch lacks


def pieces(rows: np.ndarray) -> list[np.ndarray]:
    """Return rows [N] in pieces, so that memory does not grow with their number."""
    return [rows[start : start + TOGETHER] for start in range(0, len(rows), TOGETHER)]


@dataclass(frozen=True)
class Batch:
    """What an encoder and a head read of some examples; padding has mask False, and -1 in first_pieces."""

    input_ids: torch.Tensor  # [S, T] int64, or [S, T, C] where tokens are spelt in C pieces
    mask: torch.Tensor  # [S, T] bool
    type_ids: torch.Tensor | None  # [S, T] int64; None where the tokenizer gives none
    first_pieces: torch.Tensor  # [B, W] int64, position of each word's first piece; W is 0 without words
    rows: torch.Tensor  # [B] int64, rows of the split's Parquet file
    texts: torch.Tensor = NONE  # [S, T] int8: 1 first text, 2 second, 0 padding and special
    windows: torch.Tensor = NONE  # [B] int64, windows of each question
    characters: torch.Tensor = NONE  # [S, T, 2] int64: characters of the context before each token and up to its end
    origin: "Batch | None" = None  # of a batch on a GPU, the same batch on the CPU

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def host(self) -> "Batch":
        """The same batch on the CPU: what is counted there waits for no GPU."""
        return self if self.origin is None else self.origin

    def some(self, sequences: slice) -> Self:
        """Return what an encoder reads of some sequences; a head cannot read it."""
        types = None if self.type_ids is None else self.type_ids[sequences]
        origin = self.origin and self.origin.some(sequences)
        ids, mask = self.input_ids[sequences], self.mask[sequences]
        return replace(self, input_ids=ids, mask=mask, type_ids=types, origin=origin)

    def to(self, device) -> Self:
        device = torch.device(device)
        if device == self.mask.device:
            return self
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        held = {name: value for name, value in held.items() if torch.is_tensor(value) and value is not NONE}
        moved = dict(zip(held, tensors_to_device(list(held.values()), device), strict=True))
        return replace(self, **moved, origin=None if device.type == "cpu" else self.host)


def tensors_to_device(tensors: list[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Return tensors of the CPU on a device; on a GPU by one copy of them all, which nobody waits for."""
    if device.type != "cuda":
        return [tensor.to(device) for tensor in tensors]
    return unpacked(packed(tensors, pin=True).to(device, non_blocking=True), tensors)


def tensors_to_host(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return tensors of one type on the CPU; from a GPU by one copy of them all into pinned memory."""
    if not tensors or tensors[0].device.type != "cuda":
        return tensors
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    there = torch.empty(flat.shape, dtype=flat.dtype, device="cpu", pin_memory=True).copy_(flat)
    parts = zip(there.split([tensor.numel() for tensor in tensors]), tensors, strict=True)
    return [part.view(tensor.shape) for part, tensor in parts]


def packed(tensors: list[torch.Tensor], pin: bool = False) -> torch.Tensor:
    """Return the bytes of some tensors of the CPU one after the other, uint8, in pinned memory if asked to."""
    flat = torch.empty(sum(map(_room, tensors)), dtype=torch.uint8, device="cpu", pin_memory=pin)
    for part, tensor in zip(unpacked(flat, tensors), tensors, strict=True):
        part.copy_(tensor)
    return flat


def unpacked(flat: torch.Tensor, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return views of such bytes with the types and shapes of the tensors that were packed."""
    parts = zip(flat.split([_room(tensor) for tensor in tensors]), tensors, strict=True)
    return [part.narrow(0, 0, tensor.nbytes).view(tensor.dtype).view(tensor.shape) for part, tensor in parts]


def _room(tensor: torch.Tensor) -> int:
    return -(-tensor.nbytes // ALIGNED) * ALIGNED
