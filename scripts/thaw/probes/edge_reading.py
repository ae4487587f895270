"""What edge probing reads: the labelled spans of a task, and the states of all layers on their tokens.

K layers, B rows, T tokens, W words, E edges, m tokens of the longest span, N tokens inside some span, C labels,
d width.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from thaw.core.boundaries import cached_layers_read
from thaw.core.errors import UserError
from thaw.data.edges import scored_labels
from thaw.declarations.probes import WORD_EMBEDDINGS
from thaw.encoders.anatomy import PROBE, probe_ids
from thaw.encoders.registry import builtin_kind
from thaw.encoders.transformers import Encoder
from thaw.evaluation.metrics import spans
from thaw.features.batch import NONE, Batch
from thaw.probes.reading import ProbeContext, phases_of
from thaw.training.run_inputs import Inputs
from thaw.training.task_model import BatchLoader, resumed

MAIN = "edge_f1"
SENTENCES = 32  # a batch, as in jiant
EQUAL = 1e-5  # largest difference of one token's states at two places, which another order of sums makes


class WordEmbeddings:
    """Gives layer 0 [B, T, d] of a batch from word pieces alone, scaled and normed as the encoder does it.

    Whether no position is left is found by computing, not by the architecture's name.
    """

    @torch.no_grad()
    def __init__(self, encoder: Encoder):
        """Take an encoder over: its other tables of embeddings become 0, and layers above are not run.

        Raises UserError where the place of a token matters otherwise, as by sinusoids that are no table, or by its
        neighbours.
        """
        self.encoder, model = encoder, encoder.model
        words = model.get_input_embeddings()
        for module in model.modules():
            if isinstance(module, nn.Embedding) and module.weight is not words.weight:
                module.weight.zero_()
        encoder.shorten([1])
        ids = probe_ids(model.config).to(words.weight.device)
        states = self(Batch(ids, torch.ones(PROBE, dtype=torch.bool, device=ids.device), None, NONE, ids[:, 0]))
        if (states - states[:, :1]).abs().max() > EQUAL:
            raise UserError(
                f"layer_0: word_embeddings is not possible for {model.config.model_type}: its layer 0 depends on where "
                "a token is in more ways than by tables of embeddings; say layer_0: embeddings"
            )

    @torch.no_grad()
    def __call__(self, batch: Batch) -> torch.Tensor:
        """Return layer 0 of a batch, whose token types are left out: some models look them up in the table of words."""
        return self.encoder.compute_boundaries(replace(batch, type_ids=None), [0])[0]


class LayerStates:
    """Gives rows of a split with the states of all layers, from the store or, where it lacks one, from a lower one."""

    def __init__(self, spec: dict, inputs: Inputs, word_embeddings: bool = False):
        """Open what a probe's spec reads.

        Args: word_embeddings, whether layer 0, which is always read, is without positions and token types. Raises
        UserError where an encoder's layer 0 cannot be had so.
        """
        read = list(zip(spec["read"], phases_of(spec), strict=True))
        built = builtin_kind(inputs.encoder)  # word vectors and ELMo: layer 0 has neither
        self.words = WordEmbeddings(inputs.whole_encoder()) if word_embeddings and not built else None
        read = read if self.words is None else read[1:]
        self.loader = BatchLoader(inputs.store, cached_layers_read([phase for _, phase in read]), inputs.device)
        self.sources = []
        for number, phase in read:
            encoder = resumed(inputs.encoder, phase["boundary"], number, {}, inputs.device)
            self.sources.append((number, phase["boundary"], encoder and encoder.eval()))

    @torch.no_grad()
    def __call__(self, split: str, rows: np.ndarray) -> tuple[Batch, torch.Tensor]:
        """Return some rows as a batch, and their states [K, B, T, d]."""
        batch, stored = self.loader(split, rows)
        layers = []
        if self.words is not None:
            layers.append(self.words(batch))
        for number, boundary, encoder in self.sources:
            if encoder:
                layers.append(encoder.compute_boundaries(batch, [number], stored.get(boundary))[number])
            else:
                layers.append(stored[boundary])
        return batch, torch.stack(layers)


def pieces(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Return where the tokens of each word start and end, both [B, W]; -1 and -1 without a token.

    A word's tokens go on to the next word that has one, the last word's to the end of the text.
    """
    starts = batch.first_pieces
    positions = torch.arange(batch.mask.shape[1], device=starts.device)
    end = torch.where(batch.texts > 0, positions + 1, 0).amax(1, keepdim=True)
    following = torch.cat([starts.where(starts >= 0, end)[:, 1:], end], 1)
    ends = following.flip(1).cummin(1).values.flip(1)
    return starts, ends.where(starts >= 0, -1)


@dataclass
class Edges:
    """The edges of some rows: the rows, and by edge the row's position, ends [E, 4] in words, and label indices."""

    split: str
    rows: np.ndarray
    of: np.ndarray
    ends: np.ndarray
    labels: list[list[int]]

    def part(self, positions: np.ndarray) -> "Edges":
        """Return the edges of some of its rows, by their positions, which rise."""
        moved = np.full(len(self.rows), -1)
        moved[positions] = np.arange(len(positions))
        chosen = np.flatnonzero(moved[self.of] >= 0)
        labels = [self.labels[edge] for edge in chosen]
        return Edges(self.split, self.rows[positions], moved[self.of[chosen]], self.ends[chosen], labels)


@dataclass
class Tokens:
    """The tokens of a batch of edges.

    States [K, N, d] of the tokens in some span; by side the indices of each span's tokens in them [E, m] and which are
    real [E, m]; gold [E, C] float.
    """

    states: torch.Tensor
    spans: list[tuple[torch.Tensor, torch.Tensor]]
    gold: torch.Tensor


class EdgeReading(ProbeContext):
    """A task as edge probing sees it: tags are spans of one word, BIO spans have their types, edges are as they are.

    Attributes: labels; counted_labels, the positions of those that the score counts; splits; pairs, whether an edge has
    two spans.
    """

    main = MAIN

    def __init__(self, spec: dict, inputs: Inputs):
        """Open the states, and read the edges of train (see `read_rows`), validation and test.

        Raises UserError where the training rows have fewer than two labels, or fewer edges than labels, and where the
        score leaves out a label that does not exist.
        """
        super().__init__(spec, inputs)
        self.states = LayerStates(spec, inputs, word_embeddings=self.entry.layer_0 == WORD_EMBEDDINGS)
        self.width = self.shape.width
        self.tags = self.labels if self.task["type"] == "spans" else None
        if self.tags is not None:
            self.labels = list(dict.fromkeys(tag[2:] for tag in self.tags if tag != "O"))
        place = f"task {self.task['id']}: unscored_labels"
        self.counted_labels = scored_labels(self.labels, self.task["unscored_labels"], place)
        self.splits = {split: self._edges(split, rows) for split, rows in self.rows.items()}
        self.pairs = bool((self.splits["train"].ends[:, 2] >= 0).any())
        self._check()

    def batches(self, split: Edges, order: np.ndarray) -> Iterator[Tokens]:
        """Yield the edges of a split's rows in some order, those of 32 rows at a time.

        Edges with a word that has no token are left out: the probe cannot read them.
        """
        first = np.searchsorted(split.of, np.arange(len(split.rows) + 1))
        full = order[first[order] < first[order + 1]]
        for start in range(0, len(full), SENTENCES):
            positions = full[start : start + SENTENCES]
            edges = np.concatenate([np.arange(first[p], first[p + 1]) for p in positions])
            of = np.repeat(np.arange(len(positions)), [first[p + 1] - first[p] for p in positions])
            batch, states = self.states(split.split, split.rows[positions])
            tokens = self._tokens(batch, states, of, split.ends[edges], [split.labels[e] for e in edges])
            if len(tokens.gold):
                yield tokens

    def true_labels(self, split: Edges) -> list[list[int]]:
        """Return, for each edge, its true labels without those that the score leaves out."""
        kept = set(self.counted_labels)
        return [[label for label in labels if label in kept] for labels in split.labels]

    def majority(self) -> dict[str, dict[str, float | None]]:
        """Return the scores on each split of predicting for every edge the label of train that is most frequent.

        It is one of those that the score counts.
        """
        frequency = np.bincount(np.concatenate(self.splits["train"].labels).astype(int), minlength=len(self.labels))
        most_frequent = max(self.counted_labels, key=frequency.__getitem__)
        scores = {}
        for name in self.scored:
            labels = self.true_labels(self.splits[name])
            total = len(labels) + sum(map(len, labels))
            scores[name] = {MAIN: 2 * sum(most_frequent in each for each in labels) / total if total else None}
        return scores

    def _tokens(self, batch: Batch, states: torch.Tensor, of, ends: np.ndarray, labels: list) -> Tokens:
        """Return the tokens of edges. Args: their batch, states [K, B, T, d], the row of each, ends, labels."""
        starts, stops = (each.numpy() for each in pieces(batch.host))
        sides = [ends[:, :2], ends[:, 2:]] if self.pairs else [ends[:, :2]]
        complete = np.all([_complete(starts, of, side) for side in sides], axis=0)
        length, spans = batch.mask.shape[1], []
        for side in sides:
            begin, end = starts[of[complete], side[complete, 0]], stops[of[complete], side[complete, 1] - 1]
            steps = np.arange((end - begin).max(initial=1))
            inside = begin[:, None] + steps < end[:, None]
            spans.append((np.where(inside, of[complete, None] * length + begin[:, None] + steps, 0), inside))
        used = np.unique(np.concatenate([tokens[inside] for tokens, inside in spans]))
        flat = states.flatten(1, 2)[:, torch.from_numpy(used).to(states.device)]
        indices = [(np.where(inside, np.searchsorted(used, tokens), 0), inside) for tokens, inside in spans]
        gold = torch.zeros(int(complete.sum()), len(self.labels), device="cpu")
        for row, edge in enumerate(np.flatnonzero(complete)):
            gold[row, labels[edge]] = 1
        tensors = [
            (torch.from_numpy(tokens).to(self.device), torch.from_numpy(inside).to(self.device))
            for tokens, inside in indices
        ]
        return Tokens(flat, tensors, gold.to(self.device))

    def _edges(self, split: str, rows: np.ndarray) -> Edges:
        targets, of, ends, labels = self.gold(split, rows), [], [], []
        for position, target in enumerate(targets):
            for *span, indices in self._of_row(target):
                of.append(position)
                ends.append(span)
                labels.append(indices)
        return Edges(split, rows, np.array(of, dtype=int), np.array(ends, dtype=int).reshape(-1, 4), labels)

    def _of_row(self, target: list) -> list[tuple]:
        """Return the edges of a row: those of the target, its spans by type, or its words by tag."""
        if self.task["type"] == "edges":
            return target
        if self.tags is None:
            return [(word, word + 1, -1, -1, [tag]) for word, tag in enumerate(target)]
        ordered = sorted(spans([self.tags[tag] for tag in target]), key=lambda span: span[1:])
        return [(start, end, -1, -1, [self.labels.index(name)]) for name, start, end in ordered]

    def _check(self) -> None:
        """Raise UserError for fewer than two labels or rows, fewer edges than labels, or a mix of spans and pairs."""
        train, task = self.splits["train"], f"task {self.task['id']}"
        known = sorted({label for labels in train.labels for label in labels})
        if len(train.rows) < 2:
            raise UserError(f"{task}: a probe needs two training rows, to fit and to choose by: take a larger subset")
        if len(train.labels) < len(self.labels):
            raise UserError(
                f"{task}: {len(train.labels)} labelled spans to fit for {len(self.labels)} labels; a probe needs at "
                "least one for each: take a larger subset"
            )
        if len(known) < 2:
            names = ", ".join(repr(self.labels[label]) for label in known) or "none"
            raise UserError(
                f"{task}: the training rows of the subset have a single label ({names}); a probe needs two or "
                "more: take a larger subset"
            )
        for split in self.splits.values():
            if any((split.ends[:, 2] >= 0) != self.pairs):
                raise UserError(f"{task}: some edges of {split.split} have one span and others two; all need the same")


def _complete(starts: np.ndarray, of: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Return which spans have a token for each of their words. Args: first tokens [B, W]; rows [E]; ends [E, 2]."""
    missing = np.concatenate([np.zeros((len(starts), 1), dtype=int), np.cumsum(starts < 0, axis=1)], axis=1)
    return missing[of, side[:, 1]] == missing[of, side[:, 0]]
