"""Edge probing: what a small network predicts of spans and pairs of spans (Tenney et al. 2019a, section 3.1; 2019b).

It reads only the tokens of the spans: a mix of layers, a projection, a mean over each span's tokens that is
weighted by attention, and a network with one hidden layer. All probes of a seed are trained in one batch: for each
layer one that reads it alone, and one that mixes it with all below.

P probes, K layers, B rows, T tokens, n spans, m tokens of the longest, E edges, C labels, d width, h width of the
projection.
"""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from thaw.core.files import finite
from thaw.core.runtime import derive_seed, log
from thaw.probes.edge_reading import EdgeReading, Edges, Tokens


class Prober(nn.Module):
    """P probes; each mixes the layers that its row of `mask` names."""

    def __init__(self, entry, mask: torch.Tensor, width: int, labels: int, pairs: bool):
        """Make the probes. Args: the probe's entry; mask [P, K] bool; d; C; whether spans come in pairs."""
        super().__init__()
        self.probes, self.sides = len(mask), 2 if pairs else 1
        self.mask: torch.Tensor
        self.register_buffer("mask", mask)
        self.weights, self.gamma = nn.Parameter(torch.zeros(mask.shape)), nn.Parameter(torch.ones(self.probes, 1))
        self.projections = nn.ModuleList(Linear(self.probes, width, entry.projection) for _ in range(self.sides))
        self.attentions = nn.ModuleList(Linear(self.probes, entry.projection, 1) for _ in range(self.sides))
        self.hidden = Linear(self.probes, self.sides * entry.projection, entry.hidden)
        self.gain = nn.Parameter(torch.ones(self.probes, 1, entry.hidden))
        self.shift = nn.Parameter(torch.zeros(self.probes, 1, entry.hidden))
        self.dropout, self.output = nn.Dropout(entry.dropout), Linear(self.probes, entry.hidden, labels)

    def shares(self) -> torch.Tensor:
        """Return how much of each layer is in each mix, [P, K]; 0 for layers that a probe does not read."""
        return self.weights.masked_fill(~self.mask, -torch.inf).softmax(1)

    def forward(self, tokens: Tokens) -> torch.Tensor:
        """Return the logits [P, E, C] of edges."""
        mixed = torch.einsum("pk,knd->pnd", self.gamma * self.shares(), tokens.states)
        sides = [self._span(mixed, side, tokens) for side in range(self.sides)]
        hidden = torch.tanh(self.hidden(torch.cat(sides, -1)))
        normed = functional.layer_norm(hidden, hidden.shape[-1:]) * self.gain + self.shift
        return self.output(self.dropout(normed))

    def _span(self, mixed: torch.Tensor, side: int, tokens: Tokens) -> torch.Tensor:
        """Return the vector of each edge's first or second span [P, E, h]: its tokens, weighted by attention."""
        projected = self.projections[side](mixed)
        relevance = self.attentions[side](projected).squeeze(-1)
        indices, inside = tokens.spans[side]
        shares = relevance[:, indices].masked_fill(~inside, -torch.inf).softmax(-1)
        return torch.einsum("pem,pemh->peh", shares, projected[:, indices])


def edge(reading: EdgeReading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each probe, and for each layer what it scores alone and mixed with those below, by split."""
    torch.manual_seed(derive_seed(seed, "edge"))
    layers = len(reading.numbers)
    mask = torch.cat([torch.eye(layers), torch.ones(layers, layers).tril()[1:]]).bool()
    model = Prober(reading.entry, mask, reading.width, len(reading.labels), reading.pairs).to(reading.device)
    fitted, held = reading.divided(seed)
    order = np.random.default_rng(derive_seed(seed, "order"))

    def epoch():
        for tokens in reading.batches(fitted, order.permutation(len(fitted.rows))):
            yield losses(model, tokens)

    best = train(model, epoch, lambda: -_mean_loss(reading, model, held), reading.entry)
    by_split = {name: scores(reading, model, reading.splits[name]) for name in reading.scored}
    shares, rows, layer_scores = model.shares().tolist(), [], []
    for alone, number in enumerate(reading.numbers):
        mixed = layers + alone - 1 if alone else 0
        for kind, probe in (("alone", alone), ("mixed", mixed)):
            common = {"layer": number, "seed": seed, "read": kind, **best[probe]}
            rows.append(common | {f"{name}_{reading.main}": finite(values[probe]) for name, values in by_split.items()})
        of_alone, of_mix = (
            {name: {reading.main: finite(values[probe])} for name, values in by_split.items()}
            for probe in (alone, mixed)
        )
        mix = {"scores": of_mix, "weights": shares[mixed][: alone + 1]}
        layer_scores.append({"layer": number, "seed": seed, "scores": of_alone, "mix": mix})
    return rows, layer_scores


def losses(model: Prober, tokens: Tokens) -> torch.Tensor:
    """Return the cross-entropy of each probe [P], the mean over edges and labels."""
    logits = model(tokens)
    each = functional.binary_cross_entropy_with_logits(logits, tokens.gold.expand_as(logits), reduction="none")
    return each.mean((1, 2))


@torch.no_grad()
def _mean_loss(reading: EdgeReading, model: Prober, split: Edges) -> np.ndarray:
    """Return the cross-entropy of each probe [P] over all edges of some rows that it can read; NaN without any.

    F1 cannot choose an epoch: it is 0 as long as no label has a probability above one half.
    """
    total, count = torch.zeros(model.probes, device=reading.device), 0
    for tokens in reading.batches(split, np.arange(len(split.rows))):
        total, count = total + losses(model, tokens) * len(tokens.gold), count + len(tokens.gold)
    return (total / count).cpu().numpy() if count else np.full(model.probes, np.nan)


@torch.no_grad()
def scores(reading: EdgeReading, model: Prober, split: Edges) -> np.ndarray:
    """Return the micro F1 of each probe on some rows [P], over the labels that the score counts.

    Edges with a word that has no token are misses.
    """
    counted = torch.tensor(reading.counted_labels, device=reading.device)
    hits, predicted = torch.zeros(2, model.probes, dtype=torch.float64, device=reading.device)
    for tokens in reading.batches(split, np.arange(len(split.rows))):
        positive = model(tokens)[..., counted] > 0
        predicted = predicted + positive.sum((1, 2))
        hits = hits + (positive & (tokens.gold[:, counted] > 0)).sum((1, 2))
    truths = sum(map(len, reading.true_labels(split)))
    return (2 * hits / (predicted + truths)).cpu().numpy()


class Linear(nn.Module):
    """A batch of P linear maps, which are initialised as torch's own linear map is."""

    def __init__(self, probes: int, inputs: int, outputs: int):
        """Make the matrices [P, inputs, outputs] and biases [P, 1, outputs]."""
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(probes, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(probes, 1, outputs).uniform_(-bound, bound))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return [P, n, outputs] of values [P, n, inputs]."""
        return torch.baddbmm(self.bias, values, self.weight)


def train(
    model: nn.Module,
    epoch: Callable[[], Iterable[torch.Tensor]],
    judge: Callable[[], np.ndarray],
    settings,
) -> list[dict]:
    """Train P probes with Adam; each ends with the values of the epoch that was its best.

    Args: model, all of whose parameters have the probes first; epoch, which yields the losses [P] of each batch; judge,
    which returns how good each probe is now [P]; settings with rate, epochs and patience: when no probe has become
    better for so many epochs, the end is reached. Returns for each probe its best epoch, from 1, and what it was worth.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.rate)
    kept = {name: value.detach().clone() for name, value in model.named_parameters()}
    best, when = np.full(1, -np.inf), np.ones(1, dtype=int)
    for number in range(1, settings.epochs + 1):
        model.train()
        for losses in epoch():
            optimizer.zero_grad()
            losses.sum().backward()
            optimizer.step()
        model.eval()
        scores = np.nan_to_num(judge(), nan=-np.inf)
        better = scores > best
        best, when = np.where(better, scores, best), np.where(better, number, when)
        for name, value in model.named_parameters():
            kept[name][torch.from_numpy(better)] = value.detach()[torch.from_numpy(better)]
        log(f"epoch {number}: {better.sum()} of {len(better)} became better, the best has {best.max():.4f}")
        if number - when.max() >= settings.patience:
            break
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(kept[name])
    model.eval()
    return [{"epoch": int(n), "choice": float(score)} for n, score in zip(when, best, strict=True)]
