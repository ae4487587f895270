"""Fixed heads of one make that train side by side on the same vectors, as one batched problem.

Each member keeps its own parameters, order of rows and dropout, and its numbers do not depend on who stands beside it:
one run alone is a stack of one. M members, N vectors, n of a batch, F width, D width of what a layer makes, C outputs.
"""

import contextlib
import copy

import numpy as np
import torch
from torch import nn

from thaw.core.runtime import derive_seed
from thaw.encoders.dropout import kept, noise
from thaw.evaluation.result_files import Predictions
from thaw.features.batch import send
from thaw.features.store import FeatureStore
from thaw.heads.base import Head
from thaw.training.head_vectors import Reader, Vectors
from thaw.training.run_state import EpochCost


class Product(torch.autograd.Function):
    """Vectors [M, n, F] times weights [M, D, F], each member's by themselves.

    torch's own batched product on a processor gives a member other last bits when it stands alone than among others
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
    """Return the products of pairs of matrices, each made as if it were the only one.

    On a GPU too: for a batch of products, or where a matrix begins at an odd address, cuBLAS may choose another kernel
    than for one, and so other last bits.
    """
    if left.device.type != "cpu":
        pairs = zip(left.unbind(), right.unbind(), strict=True)
        return torch.stack([torch.mm(_aligned(one), _aligned(other)) for one, other in pairs])
    with np.errstate(all="ignore"):  # one that diverges is found by its loss
        return torch.from_numpy(np.matmul(left.detach().numpy(), right.detach().numpy()))


def _aligned(matrix: torch.Tensor) -> torch.Tensor:
    """Return a matrix that begins where memory of its own would, at 16 bytes, as that of a stack of one does."""
    return matrix.clone() if matrix.storage_offset() * matrix.element_size() % 16 else matrix


class BatchedLayers(nn.Module):
    """The same linear layer of all members: weights [M, D, F] and biases [M, D], in which theirs lie."""

    def __init__(self, members: list[nn.Linear]):
        """Put the members' parameters next to each other; from now on theirs are views of these."""
        super().__init__()
        self.weight = nn.Parameter(torch.stack([layer.weight.detach() for layer in members]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach() for layer in members]))
        for place, layer in enumerate(members):
            layer.weight.data, layer.bias.data = self.weight.data[place], self.bias.data[place]

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return [M, n, D] of each member's own vectors [M, n, F].

        On a GPU the bias is a product with ones: the sum that is its gradient would depend on the number of members.
        """
        made = Product.apply(vectors, self.weight)
        if vectors.device.type == "cpu":
            return made + self.bias.unsqueeze(1)
        return made + Product.apply(vectors.new_ones(*vectors.shape[:2], 1), self.bias.unsqueeze(2))


class BatchedDropout(nn.Module):
    """Dropout with a stream of random numbers for each member, the same ones on every device."""

    def __init__(self, share: float):
        """Keep the share that is left out; the sources of random numbers come with each epoch."""
        super().__init__()
        self.share = share
        self.sources: list[np.random.SFC64] = []

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return vectors [M, n, F], some numbers 0 and the others larger by as much."""
        if not self.share:
            return vectors
        if vectors.device.type == "cpu":
            return vectors * noise(vectors.shape, self.share, self.sources)
        (drawn,) = send([kept(vectors.shape, self.share, self.sources)], vectors.device)
        return vectors * (drawn * (1 / (1 - self.share)))


class BatchedHeadTrainer:
    """Heads in training, with the vectors and targets of the training rows and what is read to answer others.

    What a loop wants of whatever it trains: see `thaw.training.phase_loop.PhaseTraining`.
    """

    encoder = None  # none of it trains

    def __init__(self, heads: list[Head], reader: Reader, store: FeatureStore, rows: np.ndarray, targets, words):
        """Read the training rows. Args: heads, on their device; store; rows of train, their targets and word counts."""
        self.heads, self.reader, self.store, self.rows = heads, reader, store, rows
        self.train = reader(store, "train", rows, words)
        self.targets = torch.as_tensor(self.train.gold(targets), device=self.train.values.device)
        self.front = copy.deepcopy(heads[0]).train()
        for name, module in heads[0].named_children():
            if isinstance(module, nn.Linear):
                setattr(self.front, name, BatchedLayers([getattr(head, name) for head in heads]))
            if isinstance(module, nn.Dropout):
                setattr(self.front, name, BatchedDropout(module.p))
        self.stacked = dict(self.front.named_parameters())
        self.named = [dict(head.named_parameters()) for head in heads]
        self.lengths = store.sequences("train", rows).tolist()  # what the encoder read, once and for all epochs

    def thaw(self, names: list[str]) -> None:
        """Let the heads train: there is nothing else here."""
        for parameter in (parameter for named in self.named for parameter in named.values()):
            parameter.requires_grad_(True)

    def components(self, names: list[str]) -> list[dict[str, list]]:
        """Return each member's named parameters by component, of which there is one, the head."""
        return [{"head": list(named.items())} for named in self.named]

    @contextlib.contextmanager
    def drawing(self, streams: list[tuple[int, str]]):
        """Draw an epoch's random numbers from each member's own stream, within a context."""
        sources = [np.random.SFC64(derive_seed(*named)) for named in streams]
        for module in self.front.modules():
            if isinstance(module, BatchedDropout):
                module.sources = sources
        yield

    def batches(self, streams: list[tuple[int, str]], size: int) -> list[torch.Tensor]:
        """Return an epoch's batches, each the vectors [M, n] that the members read; `size` rows but for a last rest."""
        tokens = int(self.store.lengths("train")[self.rows].sum())
        self.spent = EpochCost(tokens, self.heads[0].logit_flops(len(self.targets)), self.lengths)
        self.lengths = []
        orders = np.stack([np.random.default_rng(derive_seed(*named)).permutation(len(self.rows)) for named in streams])
        parts = [orders[:, start : start + size] for start in range(0, len(self.rows), size)]
        if self.train.seen is not None:  # sentences differ in length: a stack of words has one member
            parts = [self.train.places(part[0])[None] for part in parts]
        return send([torch.from_numpy(part) for part in parts], self.targets.device)

    def losses(self, places: torch.Tensor) -> torch.Tensor:
        """Return each member's loss [M] on its own batch of vectors [M, n]."""
        chosen = self.train.values.index_select(0, places.flatten()).view(*places.shape, -1)
        logits, targets = self.front.logits(chosen), self.targets[places]
        if logits.device.type == "cpu":
            return self.front.loss(logits, targets).view(-1)
        # a GPU adds up a row in another order when there are more of them
        pairs = zip(logits.unbind(), targets.unbind(), strict=True)
        return torch.stack([self.front.loss(one, own) for one, own in pairs])

    def backward(self, losses: torch.Tensor) -> None:
        """Give each member's parameters the gradients of its loss."""
        found = torch.autograd.grad(losses.sum(), self.stacked.values())
        self.gradients = found
        for name, gradient in zip(self.stacked, found, strict=True):
            for named, own in zip(self.named, gradient.unbind(), strict=True):
                named[name].grad = own

    def clip(self, largest: float, each: bool) -> None:
        """Shrink gradients whose norm is larger, over all of a member's parameters or of each by itself.

        Norms are summed row by row, on a GPU member by member, which gives the same bits however many there are.
        """
        norms = torch.stack([_norms(gradient) for gradient in self.gradients])
        norms = norms if each else _norms(norms.T.contiguous()).expand_as(norms)
        for gradient, found in zip(self.gradients, norms, strict=True):
            shrunk = (largest / (found + 1e-6)).clamp(max=1.0)
            # times 1 changes nothing, but to find that out a GPU would be waited for
            if shrunk.device.type != "cpu" or (shrunk != 1.0).any():
                gradient.mul_(shrunk.view(-1, *[1] * (gradient.ndim - 1)))

    @torch.no_grad()
    def answers(
        self, place: int, store: FeatureStore, split: str, rows: np.ndarray, words: list[int] | None
    ) -> Predictions:
        """Return a member's answers to some rows of a split; `words` are their word counts, None without words."""
        vectors = self._vectors(store, split, rows, words)
        head = self.heads[place].eval()
        return vectors.answers(rows, head.logits(vectors.values).float(), head.scores)

    def _vectors(self, store: FeatureStore, split: str, rows: np.ndarray, words: list[int] | None) -> Vectors:
        """Return the vectors of some rows of train, or of all rows of another split."""
        if store is self.store and split == "train":
            return self.train.of(np.searchsorted(self.rows, rows))
        return self.reader(store, split, rows, words)


def _norms(values: torch.Tensor) -> torch.Tensor:
    """Return the norm [M] over all but the first dimension."""
    if values.device.type != "cpu":
        return torch.stack([torch.linalg.vector_norm(own) for own in values.unbind()])
    while values.ndim > 1:
        values = torch.linalg.vector_norm(values, dim=-1)
    return values
