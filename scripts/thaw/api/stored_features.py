"""Frozen hidden states as the workflow stored them, for notebooks: `stored_features.open("minilm", "mrpc").layer(6)`.

N rows of a split, S their sequences (N; 2N where the texts of pairs are read separately), T tokens of one sequence, W
words, d width.
"""

from pathlib import Path

import numpy as np

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.data.corpus import Corpus
from thaw.features.parts import POOLED
from thaw.features.payload import floats
from thaw.features.store import FeatureStore


def open(encoder: str, corpus: str, view: str | None = None, results="results") -> "Features":
    """Return the stored features of an encoder on a corpus.

    Args: ids as in the catalogues; view, where there is more than one and `joint` is not meant; the results folder.
    Raises UserError where there are none, naming those that exist, or where the corpus was prepared again since.
    """
    names = {"weights": encoder, "corpus": corpus, "view": view or "joint"}
    of_view = Path(results, layout.folder("features", names))
    _among(encoder, of_view.parents[2], "encoder with stored features")
    _among(corpus, of_view.parents[1], f"corpus that {encoder} has read")
    views = _inside(of_view.parent)
    chosen = views[0] if len(views) == 1 and not view else of_view.name
    _among(chosen, of_view.parent, f"view of {corpus}")
    folder = of_view.with_name(chosen)
    features = Features(folder, Path(results, layout.folder("prepare", {"corpus": corpus})))
    if features.store.card["data"] != features.corpus.card["digest"]:
        raise UserError(
            f"{features.folder} was made from another {corpus} than {features.corpus.folder} holds; run again"
        )
    return features


def _inside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*/"))


def _among(name: str, folder: Path, what: str) -> None:
    if name not in _inside(folder):
        known = ", ".join(_inside(folder)) or "nothing"
        raise UserError(f"'{name}' is no {what}; in {folder} there is {known}")


class Features:
    """What an encoder makes of a corpus in one view.

    Attributes: folder; corpus; store; splits, their names; boundaries, the numbers of those that are stored: 0 is what
    the embeddings give, n what layer n gives.
    """

    def __init__(self, folder: Path, corpus: Path):
        self.folder, self.corpus, self.store = folder, Corpus(corpus), FeatureStore(folder)
        self.splits = self.store.splits
        self.boundaries = self.store.boundaries()

    def layer(self, boundary: int, split: str | None = None):
        """Return the states of a boundary on one split, or on all, {split: States}.

        Raises UserError for a boundary that is not stored, with those that are, and for a split that is not there.
        """
        if boundary not in self.boundaries:
            known = ", ".join(map(str, self.boundaries)) or "none: they were deleted to free disk, or no run reads any"
            raise UserError(
                f"boundary {boundary} is not stored in {self.folder}; stored: {known}. A boundary is stored when a run "
                "starts there: frozen at the last one, top_k at the last less k"
            )
        if split is None:
            return {name: StoredStates(self, boundary, name) for name in self.splits}
        return StoredStates(self, boundary, split)

    def pooled(self, split: str, pooling: str = "mean") -> np.ndarray:
        """Return one vector of each text at each of the L + 1 boundaries, float32 [N, L + 1, d].

        [N, 2, L + 1, d] where the texts of pairs are read separately. Args: pooling, `mean`, `max` or `first`. Raises
        UserError for another pooling, and where no pooled states are stored.
        """
        if pooling not in POOLED:
            raise UserError(f"'{pooling}' is no pooling that is stored; there are {', '.join(POOLED)}")
        if not self.store.payload_path("pooled").is_file():
            raise UserError(f"{self.folder} has no pooled states: they are stored when a run reads several layers")
        rows, layers = np.arange(self.corpus.size(split)), self.store.part_card("pooled")["layers"]
        stored, dtype = self.store.vectors(
            "pooled", split, rows, list(range(layers + 1)), [list(POOLED).index(pooling)]
        )
        vectors = floats(stored, dtype).numpy()[:, :, 0]
        return vectors.reshape(len(rows), 2, *vectors.shape[1:]) if self.store.separate_encoding else vectors


class StoredStates:
    """The hidden states of one boundary on one split, read from disk when they are asked for.

    A list of N rows: `states[i]` is float32 [T, d], or several such arrays: two where the texts of pairs are read
    separately, one for each window where a context is read in windows.
    Attributes: frame, the split as it was prepared, with texts and targets in the same order (pandas); lengths [S] and
    offsets [S + 1], tokens of each sequence and where it begins in `flat`; separate_encoding, whether a row is two.
    """

    def __init__(self, features: Features, boundary: int, split: str):
        self.frame, self.separate_encoding = features.corpus.frame(split), features.store.separate_encoding
        self._store, self._split = features.store, split
        self._states = features.store.states(boundary, split)
        self.lengths = features.store.sequences(split, np.arange(len(self.frame)))
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)])

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, row: int):
        """Return the states of a row, special tokens included; negative numbers count from the end."""
        row = range(len(self))[row]
        sequences = [self._sequence(place) for place in self._store.sequence_places(self._split, [row])]
        return tuple(sequences) if self.separate_encoding or self._store.windowed else sequences[0]

    @property
    def flat(self) -> np.ndarray:
        """The states of all rows one after the other, float32 [tokens, d]: all of them in memory."""
        return self._states.at(np.arange(self.offsets[-1])).numpy()

    def words(self, row: int) -> np.ndarray:
        """Return the state of each word's first piece, float32 [W, d]; NaN for a word that was cut off.

        Raises UserError where the corpus has texts and no words.
        """
        pieces = self._store.batch(self._split, [range(len(self))[row]]).first_pieces
        if not self._store.card["words"]:
            raise UserError(f"{self._store.folder} has texts, not words; take states[{row}]")
        first = pieces[0].numpy()
        vectors = self[row][np.maximum(first, 0)]
        vectors[first < 0] = np.nan
        return vectors

    def _sequence(self, number: int) -> np.ndarray:
        return self._states.at(np.arange(self.offsets[number], self.offsets[number + 1])).numpy()
