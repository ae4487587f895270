"""A prepared corpus: its card, its splits as frames, its targets as numbers, its subsets of training rows."""

from pathlib import Path
from typing import Any

import numpy as np

from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import read_json
from thaw.core.runtime import derive_seed
from thaw.data import squad
from thaw.data.carving import FEW_ROWS, carve, components, folds, sentences
from thaw.data.edges import encoded
from thaw.declarations.splits import HELD_OUT, PARTS_OF_TRAIN, RESERVED, stored_split
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
        self.text_columns = [self.words] if self.words else self.texts
        self.splits: list[str] = sorted(self.card["splits"], key=lambda split: (split != "train", split))
        self._frames: dict[str, Any] = {}
        self._columns: dict[tuple[str, str], Any] = {}
        self._reserved: dict[int, np.ndarray] = {}
        self._targets: dict[tuple[str, str], Any] = {}
        self.divisions: dict[tuple, dict[str, np.ndarray]] = {}  # by target and subset, what `_divided` returns

    def frame(self, split: str):
        """Return a split as a pandas frame in file order, its texts included; read once.

        Raises UserError for no such split. `held_out` and `reserved` are train's frame: a subset says which of its rows
        they are.
        """
        split = self._stored(split)
        if split not in self._frames:
            self._frames[split] = self._read(split)
        return self._frames[split]

    def column(self, split: str, name: str):
        """Return one column of what `frame` returns, as a pandas series; it alone is read, once."""
        key = self._stored(split), name
        if key not in self._columns:
            frame = self._frames.get(key[0])  # where all columns were read
            self._columns[key] = (self._read(key[0], [name]) if frame is None else frame)[name]
        return self._columns[key]

    def size(self, split: str) -> int:
        return self.card["splits"][self._stored(split)]["rows"]

    def _stored(self, split: str) -> str:
        stored = stored_split(split, self.card["splits"])
        if stored not in self.card["splits"]:
            raise UserError(f"{self.folder}: no split '{stored}'; there are {', '.join(self.splits)}")
        return stored

    def _read(self, split: str, columns: list[str] | None = None):
        import pandas

        path = self.folder / f"{split}.parquet"
        if not path.exists():
            raise UserError(f"{path} is missing though the card names it; delete {self.folder} and run again")
        with wrap_corruption(path, f"{self.folder}/card.json"):
            return pandas.read_parquet(path, columns=columns)

    def reserved(self, most: int) -> np.ndarray:
        """Return the rows of train that no draw takes, ascending int64: at most so many, and at most half of train.

        They are whole groups of rows that share texts, and depend on the dataset alone: all its tasks and draws have
        the same. The proportions of its first label target are kept as far as groups allow.
        """
        if most not in self._reserved:
            self.refuse(RESERVED)
            groups = np.unique(self.column("train", "group"), return_inverse=True)[1]
            label = next((name for name, kind in self.card["targets"].items() if kind == "label"), None)
            classes = np.zeros(len(groups), np.int64)
            if label:
                classes = np.unique(self.column("train", label), return_inverse=True)[1]
            share = min(most / len(groups), 0.5)
            self._reserved[most] = carve(groups, classes, {RESERVED: share}, self.card["corpus"])[RESERVED]
        return self._reserved[most]

    def refuse(self, part: str) -> None:
        """Raise UserError where the dataset has a split of the name that a part of train would have."""
        if part in self.card["splits"]:
            raise UserError(
                f"{self.folder}: the dataset has a split '{part}', which is the name of rows that a subset takes from "
                "train; rename the split in its entry in tasks.yaml"
            )

    def labels(self, target: str) -> list[str]:
        """Return the ordered label names of a target of labels, sets of labels or tags; none for scores and answers."""
        return self.card["labels"].get(target, [])

    def targets(self, task: dict, split: str) -> Any:
        """Return a task's targets: class indices int64 [N], scores float64 [N], or N lists of tag indices or of edges.

        Sets of labels are an array [N, C] of 0 and 1.
        An edge is the two ends of its first span, those of its second (-1 where there is none), and its label indices.
        Answers are N lists of (first character in the context, text), empty where a question has none.
        They are encoded once and the same for all callers, who do not write into them; into an array they cannot.
        """
        key = task["target"], split
        if key not in self._targets:
            self._targets[key] = _read_only(self._encoded(*key))
        return self._targets[key]

    def _encoded(self, target: str, split: str) -> np.ndarray | list:
        column, kind = self.column(split, target), self.card["targets"][target]
        if kind == "score":
            return column.to_numpy(np.float64)
        if kind == "answers":
            return [squad.encoded(answers) for answers in column]
        index = {label: i for i, label in enumerate(self.labels(target))}
        if kind == "label":
            import pandas

            codes, names = pandas.factorize(column)
            return np.array([index[name] for name in names], dtype=np.int64)[codes]
        if kind == "label_set":
            sets = np.zeros((len(column), len(index)), dtype=np.int64)
            for row, labels in enumerate(column):
                sets[row, [index[label] for label in labels]] = 1
            return sets
        if kind == "edges":
            return [encoded(edges, index) for edges in column]
        return [[index[tag] for tag in tags] for tags in column]


def subset_rows(corpus: Corpus, task: dict, subset: dict) -> np.ndarray:
    """Return the training rows of a subset (as a spec has it), ascending int64: positions in train's frame.

    They are the first of a permutation seeded by the subset's draw, of all rows or of each label's, so smaller subsets
    of a draw are within larger ones; where the target is a label every prefix has the labels in train's proportions.
    The rows of `held_out` and `reserved` are left out. Raises UserError for more rows than are not reserved.
    """
    return _divided(corpus, task, SubsetConfig.model_validate(subset))["train"]


def rows_outside(corpus: Corpus, task: dict, subset: dict) -> np.ndarray:
    """Return as many training rows as a subset trains on, or all there are, that are not in it, ascending int64.

    They are those that follow in its draw, without rows whose texts all occur in a row of the subset too; none of them
    is reserved. Raises UserError where there is none.
    """
    names = corpus.text_columns
    texts = list(map(tuple, sentences({name: list(corpus.column("train", name)) for name in names}, names)))
    drawn, entry = subset_rows(corpus, task, subset), SubsetConfig.model_validate(subset)
    inside = set(_drawn(corpus, task, entry).tolist())
    known = {texts[row] for row in inside}
    order = [row for row in _draw(corpus, task, entry).tolist() if row not in inside and texts[row] not in known]
    if not order:
        raise UserError(
            f"task {task['id']}: the subset is all of train, {len(inside)} rows, so that none is left which no run "
            "has trained on; take a smaller subset"
        )
    return np.sort(np.array(order[: len(drawn)], dtype=np.int64))


def scored_part(corpus: Corpus, split: str, task: dict, subset: dict) -> np.ndarray:
    """Return the rows of a split on which runs of a subset are scored, ascending: all, or so many of a permutation.

    Those of `held_out` and `reserved` are positions in train's frame.
    """
    entry = SubsetConfig.model_validate(subset)
    if split == RESERVED and entry.reserved:
        rows = corpus.reserved(entry.reserved)
    else:
        parts = _divided(corpus, task, entry) if split in PARTS_OF_TRAIN else {}
        rows = parts[split] if split in parts else np.arange(corpus.size(split))
    if entry.scored is None:
        return rows
    order = np.random.default_rng(derive_seed(entry.draw, f"scored/{split}")).permutation(len(rows))
    return rows[np.sort(order[: entry.scored])]


def joint_groups(corpus: Corpus, rows: dict[str, np.ndarray]) -> np.ndarray:
    """Return the names [N] of the groups of rows of several splits together, one split after the other.

    Groups of two splits are one where they share a text, unless the corpus separates rows with equal texts: then groups
    are documents, or single rows, and each split has its own.
    """
    names = corpus.text_columns
    named = []
    owners: dict[tuple[str, str], set[int]] = {}
    for split, chosen in rows.items():
        stored = stored_split(split, corpus.card["splits"])
        origin = corpus.card["splits"][stored].get("carved_from") or stored  # carved rows keep the groups of train
        columns = {name: corpus.column(split, name).iloc[chosen].tolist() for name in names}
        for number, texts in zip(corpus.column(split, "group").iloc[chosen], sentences(columns, names), strict=True):
            named.append((f"{origin}/{number}", texts))
            for text in texts:
                owners.setdefault((origin, text), set()).add(number)
    separate = any(len(groups) > 1 for groups in owners.values())
    # no normalised text begins with a blank
    firsts = components([[f" {group}", *([] if separate else texts)] for group, texts in named])
    return np.array([named[first][0] for first in firsts])


def numbered_groups(corpus: Corpus, rows: dict[str, np.ndarray]) -> np.ndarray:
    """Return the groups of `joint_groups` [N] as numbers without gaps."""
    return np.unique(joint_groups(corpus, rows), return_inverse=True)[1]


def joint_folds(
    corpus: Corpus, task: dict, rows: dict[str, np.ndarray], number: int, draw: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return groups, classes and folds [N] of the rows of train and validation together, None where validation chooses.

    Folds hold whole groups; where the target is a label each has its share of each. Validation chooses with many rows,
    with a single group, where it is a test split too, and for words, where folds gained 0.1 points for 5.6 times the
    seconds (docs/explanation/decision.md). Args: a whole task; rows by split; folds wanted; draw of the subset.
    """
    count = sum(map(len, rows.values()))
    if corpus.words or count >= FEW_ROWS or task["validation"] in task["test"]:
        return None
    groups, classes = numbered_groups(corpus, rows), np.zeros(count, dtype=np.int64)
    if corpus.card["targets"][task["target"]] == "label":
        classes = np.concatenate([corpus.targets(task, split)[chosen] for split, chosen in rows.items()])
    number = min(number, int(groups.max()) + 1)
    return (groups, classes, folds(groups, classes, number, draw)) if number > 1 else None


def _divided(corpus: Corpus, task: dict, subset: SubsetConfig) -> dict[str, np.ndarray]:
    """Return the rows of train that a subset uses, ascending, by split: `train`, and its own of PARTS_OF_TRAIN.

    `held_out` is the wanted share of the drawn rows, in whole groups of rows that share texts. They are drawn once, and
    nobody can write into them.
    """
    key = task["target"], subset.model_dump_json()
    if key not in corpus.divisions:
        corpus.divisions[key] = {split: _read_only(rows) for split, rows in _divide(corpus, task, subset).items()}
    return corpus.divisions[key]


def _divide(corpus: Corpus, task: dict, subset: SubsetConfig) -> dict[str, np.ndarray]:
    rows = _drawn(corpus, task, subset)
    parts = {RESERVED: corpus.reserved(subset.reserved)} if subset.reserved else {}
    if subset.validation is None:
        return {"train": rows, **parts}
    corpus.refuse(HELD_OUT)
    groups = np.unique(corpus.column("train", "group").to_numpy()[rows], return_inverse=True)[1]
    classes = np.unique(_strata(corpus, task)[rows], return_inverse=True)[1]
    shares, place = {HELD_OUT: subset.validation}, f"task {task['id']}: subset of {len(rows)} rows"
    divided = carve(groups, classes, shares, place, subset.draw)
    return {split: rows[positions] for split, positions in divided.items()} | parts


def _drawn(corpus: Corpus, task: dict, subset: SubsetConfig) -> np.ndarray:
    order = _draw(corpus, task, subset)
    if subset.per_label:
        return np.sort(_of_each_label(corpus, task, order, subset.per_label))
    if subset.rows is not None and subset.rows > len(order):
        total = corpus.size("train")
        kept = f", of which {total - len(order)} are reserved" if subset.reserved else ""
        raise UserError(
            f"subset of {subset.rows} rows: train of {corpus.card['corpus']} has {total}{kept}; ask for fewer"
        )
    return np.sort(order[: subset.rows])


def _of_each_label(corpus: Corpus, task: dict, order: np.ndarray, count: int) -> np.ndarray:
    """Return the first rows of each label in an order. Raises UserError for a label with fewer, or no label a row."""
    if (kind := corpus.card["targets"][task["target"]]) != "label":
        raise UserError(f"task {task['id']}: per_label draws rows by label, and {task['target']} is a {kind}; say rows")
    classes = corpus.targets(task, "train")[order]
    rows = [order[classes == label][:count] for label in range(len(corpus.labels(task["target"])))]
    for label, drawn in zip(corpus.labels(task["target"]), rows, strict=True):
        if len(drawn) < count:
            raise UserError(
                f"task {task['id']}: subset of {count} rows a label: train of {corpus.card['corpus']} has {len(drawn)} "
                f"of {label} that are not reserved; ask for fewer"
            )
    return np.concatenate(rows)


def _draw(corpus: Corpus, task: dict, subset: SubsetConfig) -> np.ndarray:
    """Return the training rows that are not reserved, in the order of a subset's draw."""
    free = np.ones(corpus.size("train"), dtype=bool)
    if subset.reserved:
        free[corpus.reserved(subset.reserved)] = False
    rows = np.flatnonzero(free)
    return rows[_stratified_permutation(_strata(corpus, task)[rows], derive_seed(subset.draw, "subset"))]


def _strata(corpus: Corpus, task: dict) -> np.ndarray:
    """Return the class [N] of each row of train, zeros where the target is no label."""
    if corpus.card["targets"][task["target"]] == "label":
        return corpus.targets(task, "train")
    return np.zeros(corpus.size("train"), dtype=np.int64)


def _read_only(values: Any) -> Any:
    """Return an array into which nobody can write any more; a list as it is."""
    if isinstance(values, np.ndarray):
        values.setflags(write=False)
    return values


def _stratified_permutation(strata: np.ndarray, seed: int) -> np.ndarray:
    """Return a permutation of N rows in which each stratum [N] is spread evenly from first to last."""
    random = np.random.default_rng(seed)
    shuffled = random.permutation(len(strata))
    position = np.empty(len(strata))
    for stratum in np.unique(strata):
        members = shuffled[strata[shuffled] == stratum]
        position[members] = (np.arange(len(members)) + 0.5) / len(members)
    return shuffled[np.argsort(position[shuffled], kind="stable")]
