"""The principal directions of standardised vectors, from their covariance or, where it is smaller, their Gram matrix.

K layers, N vectors, d features, r directions (the smaller of N and d), C outputs. Vectors X [..., N, d] = U S V' with
singular values S, directions V [..., d, r] and U [..., N, r].

Covariance X'X / N [d, d] and Gram matrix X X' / N [N, N] have the same variances S^2 / N. No weight of a linear head
with an L2 penalty leaves the space of the vectors, so that r directions have the whole solution.
"""

from dataclasses import dataclass

import torch

BLOCK = 16_384  # vectors whose products are added up in float32
WIDE = 2048  # features above which the Gram matrix is taken where it is smaller; results of fewer keep their bits
FLAT = 1e-12  # share of the largest variance below which a direction of the Gram matrix is rounding


def is_wide(vectors: torch.Tensor) -> bool:
    """Tell whether vectors [..., N, d] are solved by way of their Gram matrix."""
    count, width = vectors.shape[-2:]
    return count < width and width > WIDE


@dataclass(frozen=True)
class Covariance:
    """Directions [K, d, r] and their variances [K, r], rising; `read` are the vectors [K, N, d] as they are."""

    read: torch.Tensor
    directions: torch.Tensor
    variances: torch.Tensor

    @classmethod
    def of(cls, scaled: torch.Tensor) -> "Covariance":
        """Decompose vectors; products are added up in float32 within a block, in float64 over blocks."""
        covariance = sum((block.mT @ block).double() for block in scaled.split(BLOCK, -2)) / scaled.shape[-2]
        variances, directions = torch.linalg.eigh(covariance)
        rank = min(scaled.shape[-2:])
        return cls(scaled, directions[..., -rank:], variances[:, -rank:])

    def weight(self, weight: torch.Tensor) -> torch.Tensor:
        """Return a weight [K, C, r] of the directions as one of the features, [K, C, d]."""
        return weight @ self.directions.mT


@dataclass(frozen=True)
class Gram:
    """Vectors X [..., N, d] with the eigenvectors U [..., N, N] of their Gram matrix, and variances [..., N], rising.

    `read` are the vectors in their principal directions, U S [..., N, N] float32; V = X' U / S is never made.
    """

    scaled: torch.Tensor
    vectors: torch.Tensor
    variances: torch.Tensor
    directions = None

    @classmethod
    def of(cls, scaled: torch.Tensor) -> "Gram":
        """Decompose vectors; products are added up in float64, some features at a time."""
        blocks = (block.double() for block in scaled.split(WIDE, -1))
        variances, vectors = torch.linalg.eigh(sum(block @ block.mT for block in blocks) / scaled.shape[-2])
        return cls(scaled, vectors, variances.where(variances > FLAT * variances[..., -1:], 0.0))

    @property
    def lengths(self) -> torch.Tensor:
        """The singular values S [..., N]."""
        return (self.variances * self.scaled.shape[-2]).sqrt()

    @property
    def read(self) -> torch.Tensor:
        """The vectors in their principal directions."""
        return (self.vectors * self.lengths.unsqueeze(-2)).float()

    def moments(self, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean product of each direction with some targets [N], [..., N]."""
        return targets @ self.vectors * self.lengths / len(targets)

    def weight(self, weight: torch.Tensor) -> torch.Tensor:
        """Return a weight [..., C, N] of the directions as one of the features, [..., C, d] float64."""
        lengths = self.lengths.unsqueeze(-2)
        by_vector = (weight / lengths).where(lengths > 0, 0.0) @ self.vectors.mT
        return torch.cat([by_vector @ block.double() for block in self.scaled.split(WIDE, -1)], -1)
