"""A prepared corpus: its card, its splits as frames, its targets as numbers, its subsets of training rows."""

from pathlib import Path

import numpy as np

from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import read_json
from thaw.core.runtime import derive_seed
from thaw.data.carving import sentences
from thaw.data.edges import encoded
from thaw.schema.corpora import SubsetConfig


class Corpus:
    """A folder as `prepare` wrote it.

    `card` is its card; `texts` the names of its text columns, `words` the name of its words column or None;
    `splits` its split names in the card's order, train first.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.card = read_json(self.folder / "card.json")
        self.texts: list[str] = self.card.get("texts", [])
        self.words: str | None = self.card.get("words")
        self.splits: list[str] = sorted(self.card["splits"], key=lambda split: (split != "train", split))
        self._frames = {}

    def frame(self, split: str):
        """Return a split as a pandas frame, in file order; read once. Raises UserError for no such split."""
        if split not in self.card["splits"]:
            raise UserError(f"{self.folder}: no split '{split}'; there are {', '.join(self.splits)}")
        if split not in self._frames:
            import pandas

            path = self.folder / f"{split}.parquet"
            if not path.exists():
                raise UserError(f"{path} is missing though the card names it; delete {self.folder} and run again")
            with wrap_corruption(path, f"{self.folder}/card.json"):
                self._frames[split] = pandas.read_parquet(path)
        return self._frames[split]

    def labels(self, target: str) -> list[str]:
        """Return the ordered label names of a label or tags target; none for a score."""
        return self.card["labels"].get(target, [])

    def targets(self, task: dict, split: str) -> np.ndarray | list[list[int]]:
        """Return a task's targets: class indices int64 [N], scores float64 [N], or N lists of tag indices or of edges.

        An edge is the two ends of its first span, those of its second (-1 where there is none), and its label indices.
        """
        column = self.frame(split)[task["target"]]
        kind = self.card["targets"][task["target"]]
        if kind == "score":
            return column.to_numpy(np.float64)
        index = {label: i for i, label in enumerate(self.labels(task["target"]))}
        if kind == "label":
            return np.array([index[label] for label in column], dtype=np.int64)
        if kind == "edges":
            return [encoded(edges, index) for edges in column]
        return [[index[tag] for tag in tags] for tags in column]


def subset_rows(corpus: Corpus, task: dict, subset: dict) -> np.ndarray:
    """Return the training rows of a subset (as a spec has it), ascending int64: positions in train's frame.

    They are the first of a permutation seeded by the subset's draw, so smaller subsets of a draw are within
    larger ones; where the target is a label every prefix has the labels in train's proportions.
    Raises UserError for more rows than train has.
    """
    subset, total = SubsetConfig.model_validate(subset), len(corpus.frame("train"))
    if subset.rows is None:
        return np.arange(total)
    if subset.rows > total:
        raise UserError(f"subset of {subset.rows} rows: train of {corpus.card['corpus']} has {total}; ask for fewer")
    return np.sort(_draw(corpus, task, subset)[: subset.rows])


def rows_outside(corpus: Corpus, task: dict, subset: dict) -> np.ndarray:
    """Return as many training rows as a subset has, or all there are, that are not in it, ascending int64.

    They are those that follow in its draw, without rows whose texts all occur in a row of the subset too. Raises
    UserError where there is none.
    """
    frame, names = corpus.frame("train"), [corpus.words] if corpus.words else corpus.texts
    texts = list(map(tuple, sentences({name: list(frame[name]) for name in names}, names)))
    inside = set(subset_rows(corpus, task, subset).tolist())
    known = {texts[row] for row in inside}
    drawn = _draw(corpus, task, SubsetConfig.model_validate(subset)).tolist()
    order = [row for row in drawn if row not in inside and texts[row] not in known]
    if not order:
        raise UserError(
            f"task {task['id']}: the subset is all of train, {len(inside)} rows, so that none is left which no run "
            "has trained on; take a smaller subset"
        )
    return np.sort(np.array(order[: len(inside)], dtype=np.int64))


def scored_part(corpus: Corpus, split: str, subset: dict) -> np.ndarray:
    """Return the rows of a split on which runs of a subset are scored, ascending: all, or so many of a permutation."""
    subset, total = SubsetConfig.model_validate(subset), len(corpus.frame(split))
    if subset.scored is None:
        return np.arange(total)
    order = np.random.default_rng(derive_seed(subset.draw, f"scored/{split}")).permutation(total)
    return np.sort(order[: subset.scored])


def _draw(corpus: Corpus, task: dict, subset: SubsetConfig) -> np.ndarray:
    """Return all training rows in the order of a subset's draw."""
    strata = np.zeros(len(corpus.frame("train")), dtype=np.int64)
    if corpus.card["targets"][task["target"]] == "label":
        strata = corpus.targets(task, "train")
    return _stratified_permutation(strata, derive_seed(subset.draw, "subset"))


def _stratified_permutation(strata: np.ndarray, seed: int) -> np.ndarray:
    """Return a permutation of N rows in which each stratum [N] is spread evenly from first to last."""
    random = np.random.default_rng(seed)
    shuffled = random.permutation(len(strata))
    position = np.empty(len(strata))
    for stratum in np.unique(strata):
        members = shuffled[strata[shuffled] == stratum]
        position[members] = (np.arange(len(members)) + 0.5) / len(members)
    return shuffled[np.argsort(position[shuffled], kind="stable")]
