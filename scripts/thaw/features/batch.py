"""A batch of tokenised examples, padded to its longest.

B examples, S sequences (B; 2B where the texts of pairs are read separately: first and second of an example next to each
other), T tokens of the longest, W words of the longest.
"""

from dataclasses import dataclass, fields

import torch


@dataclass(frozen=True)
class Batch:
    """What an encoder and a head read of some examples; padding has mask False, and -1 in first_pieces."""

    input_ids: torch.Tensor  # [S, T] int64, or [S, T, C] where tokens are spelt in C pieces
    mask: torch.Tensor  # [S, T] bool
    type_ids: torch.Tensor | None  # [S, T] int64; None where the tokenizer gives none
    first_pieces: torch.Tensor | None  # [B, W] int64, position of each word's first piece; None without words
    rows: torch.Tensor  # [B] int64, rows of the split's Parquet file
    texts: torch.Tensor | None = None  # [S, T] int8: 1 first text, 2 second, 0 padding and special; None in no store

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.rows)

    def to(self, device) -> "Batch":
        """Return the same batch on another device."""
        values = (getattr(self, field.name) for field in fields(self))
        return type(self)(*(value if value is None else value.to(device) for value in values))
