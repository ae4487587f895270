"""Heads of one kind that train on the same constant vectors as one batched problem.

Each member keeps its own parameters, order of rows and dropout, and its numbers do not depend on the other members: a
single run is a batch of one. M members, N vectors, n of a batch, F width, D width of what a layer makes, C outputs.
"""

import contextlib
import copy
from collections import Counter

import numpy as np
import torch
from torch import nn

from thaw.core.runtime import derive_seed
from thaw.encoders.dropout import kept, noise
from thaw.evaluation.result_files import Predictions
from thaw.features.batch import tensors_to_device
from thaw.features.store import FeatureStore
from thaw.heads.linear import LinearHead
from thaw.training.head_vectors import VectorReader, Vectors
from thaw.training.objectives import Objective
from thaw.training.run_state import EpochCost


class Product(torch.autograd.Function):
    """Vectors [M, n, F] times weights [M, D, F], each member's by themselves.

    torch's own batched product on a CPU gives a member other last bits when it is alone than with other members
    (with one output always, with two threads often); numpy's multiplies one by one, and where D is small it takes a
    tenth of the time.
    """

    @staticmethod
    def forward(ctx, vectors: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Return vectors @ weights' [M, n, D]."""
        ctx.save_for_backward(vectors, weights)
        return _product(vectors, weights.mT)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple:
        """Return the gradients of vectors, where wanted, and of weights, dense as fused optimizers read them."""
        vectors, weights = ctx.saved_tensors
        back = _product(gradient, weights) if ctx.needs_input_grad[0] else None
        return back, _product(gradient.mT, vectors)


def _product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the products of pairs of matrices, each computed as if it were the only one.

    On a GPU too: for a batch of products, or where a matrix is not aligned, cuBLAS may choose another kernel than for
    one, and so other last bits.
    """
    if left.device.type != "cpu":
        pairs = zip(left.unbind(), right.unbind(), strict=True)
        return torch.stack([torch.mm(_aligned(one), _aligned(other)) for one, other in pairs])
    with np.errstate(all="ignore"):  # a member that diverges shows in its loss
        return torch.from_numpy(np.matmul(left.detach().numpy(), right.detach().numpy()))


def _aligned(matrix: torch.Tensor) -> torch.Tensor:
    return matrix.clone() if matrix.storage_offset() * matrix.element_size() % 16 else matrix


class BatchedLayers(nn.Module):
    """The same linear layer of all members: weights [M, D, F] and biases [M, D]."""

    def __init__(self, members: list[nn.Linear]):
        """Stack the members' parameters, which become views of the stacked ones."""
        super().__init__()
        self.weight = nn.Parameter(torch.stack([layer.weight.detach() for layer in members]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach() for layer in members]))
        for index, layer in enumerate(members):
            layer.weight.data, layer.bias.data = self.weight.data[index], self.bias.data[index]

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return [M, n, D] of each member's own vectors [M, n, F].

        On a GPU the bias is a product with ones: the sum that is its gradient would depend on the number of members.
        """
        product = Product.apply(vectors, self.weight)
        if vectors.device.type == "cpu":
            return product + self.bias.unsqueeze(1)
        return product + Product.apply(vectors.new_ones(*vectors.shape[:2], 1), self.bias.unsqueeze(2))


class BatchedDropout(nn.Module):
    """Dropout with a stream of random numbers for each member, the same ones on every device."""

    def __init__(self, share: float):
        """Keep the share that is dropped; the sources of random numbers are set for each epoch."""
        super().__init__()
        self.share = share
        self.sources: list[np.random.SFC64] = []

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return vectors [M, n, F] with dropout."""
        if not self.share:
            return vectors
        if vectors.device.type == "cpu":
            return vectors * noise(vectors.shape, self.share, self.sources)
        (drawn,) = tensors_to_device([kept(vectors.shape, self.share, self.sources)], vectors.device)
        return vectors * (drawn * (1 / (1 - self.share)))


class BatchedHeadTrainer:
    """Heads in training on the vectors of the training rows (see `thaw.training.phase_loop`)."""

    encoder = None  # none of it trains

    def __init__(
        self,
        heads: list[LinearHead],
        reader: VectorReader,
        store: FeatureStore,
        rows: np.ndarray,
        objective: Objective,
        words: list[int] | None,
    ):
        """Read the training rows. Args: heads, on their device; store; rows of train; objective; their word counts."""
        self.heads, self.reader, self.store, self.rows = heads, reader, store, rows
        self.objective, self.train = objective, reader(store, "train", rows, words)
        self.targets = objective.vector_targets(rows, self.train)
        self.front = copy.deepcopy(heads[0]).train()
        for name, module in heads[0].named_children():
            if isinstance(module, nn.Linear):
                setattr(self.front, name, BatchedLayers([getattr(head, name) for head in heads]))
            if isinstance(module, nn.Dropout):
                setattr(self.front, name, BatchedDropout(module.p))
        self.stacked = dict(self.front.named_parameters())
        self.named = [dict(head.named_parameters()) for head in heads]
        self.lengths = Counter(store.sequences("train", rows).tolist())  # that the encoder read, once for all epochs

    def thaw(self, names: list[str]) -> None:
        for parameter in (parameter for named in self.named for parameter in named.values()):
            parameter.requires_grad_(True)

    def components(self, names: list[str]) -> list[dict[str, list]]:
        return [{"head": list(named.items())} for named in self.named]

    @contextlib.contextmanager
    def drawing(self, streams: list[tuple[int, str]]):
        sources = [np.random.SFC64(derive_seed(*named)) for named in streams]
        for module in self.front.modules():
            if isinstance(module, BatchedDropout):
                module.sources = sources
        yield

    def batches(self, streams: list[tuple[int, str]], size: int) -> list[torch.Tensor]:
        """Return an epoch's batches, each the indices [M, n] of vectors; all but the last have `size` rows."""
        orders = np.stack([np.random.default_rng(derive_seed(*named)).permutation(len(self.rows)) for named in streams])
        parts = [orders[:, start : start + size] for start in range(0, len(self.rows), size)]
        if self.train.seen is not None:  # sentences differ in length: a batch of taggers has one member
            parts = [self.train.positions(part[0])[None] for part in parts]
        return tensors_to_device([torch.from_numpy(part) for part in parts], self.targets.device)

    def begin(self, batches: list[torch.Tensor]) -> None:
        """Begin a round of some batches: its cost, of part of an epoch that part of the epoch's tokens.

        Members have orders of their own: no member's cost is to depend on the others'.
        """
        vectors = sum(batch.shape[1] for batch in batches)
        tokens = int(self.store.lengths("train")[self.rows].sum()) * vectors // len(self.targets)
        self.spent = EpochCost(tokens, self.heads[0].logit_flops(vectors), self.lengths)
        self.lengths = Counter()

    def at_step(self, step: int, steps: int) -> None:
        """Do nothing: no loss of vectors depends on the update."""

    def losses(self, positions: torch.Tensor) -> torch.Tensor:
        """Return each member's loss [M] on its own batch of vectors [M, n]."""
        vectors = self.train.values.index_select(0, positions.flatten()).view(*positions.shape, -1)
        logits, targets = self.front.logits(vectors), self.targets[positions]
        if logits.device.type == "cpu":
            return self.objective.vector_loss(self.front, logits, targets).view(-1)
        # a GPU sums a row in another order when there are more of them
        pairs = zip(logits.unbind(), targets.unbind(), strict=True)
        return torch.stack([self.objective.vector_loss(self.front, *pair) for pair in pairs])

    def backward(self, losses: torch.Tensor) -> None:
        """Give each member's parameters the gradients of its loss."""
        self.gradients = torch.autograd.grad(losses.sum(), list(self.stacked.values()))
        for name, gradients in zip(self.stacked, self.gradients, strict=True):
            for named, gradient in zip(self.named, gradients.unbind(), strict=True):
                named[name].grad = gradient

    def clip(self, largest: float) -> None:
        """Clip gradients by their norm over all of a member's parameters.

        Norms are summed row by row, on a GPU member by member, which gives the same bits however many there are.
        """
        norms = torch.stack([_norms(gradient) for gradient in self.gradients])
        norms = _norms(norms.T.contiguous()).expand_as(norms)
        for gradient, norm in zip(self.gradients, norms, strict=True):
            factor = (largest / (norm + 1e-6)).clamp(max=1.0)
            # a factor of 1 changes nothing, but to see that on a GPU would wait for it
            if factor.device.type != "cpu" or (factor != 1.0).any():
                gradient.mul_(factor.view(-1, *[1] * (gradient.ndim - 1)))

    @torch.no_grad()
    def predict(
        self, index: int, store: FeatureStore, split: str, rows: np.ndarray, words: list[int] | None
    ) -> Predictions:
        vectors = self._vectors(store, split, rows, words)
        head = self.heads[index].eval()
        return vectors.to_predictions(rows, head.logits(vectors.values).float(), head.target)

    def _vectors(self, store: FeatureStore, split: str, rows: np.ndarray, words: list[int] | None) -> Vectors:
        if store is self.store and split == "train":
            return self.train.of(np.searchsorted(self.rows, rows))
        return self.reader(store, split, rows, words)


def _norms(values: torch.Tensor) -> torch.Tensor:
    """Return the norm [M] over all but the first dimension."""
    if values.device.type != "cpu":
        return torch.stack([torch.linalg.vector_norm(value) for value in values.unbind()])
    while values.ndim > 1:
        values = torch.linalg.vector_norm(values, dim=-1)
    return values
