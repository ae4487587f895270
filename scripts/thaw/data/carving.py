"""Which rows belong together, and validation splits and folds made of whole groups of such rows.

Pairs that share a sentence leak from one split into another when rows are drawn one by one: hence connected
components. Shapes: N rows, G groups, C classes.
"""

from collections.abc import Sequence

import numpy as np

from thaw.core.errors import UserError
from thaw.core.runtime import derive_seed

# Training and validation rows together below which a phase with folds is cross-validated: of more, the usual share that
# is held out has hundreds of rows, which choose a penalty well, and as many fits no longer take seconds.
FEW_ROWS = 2000
SEED = 0  # of the one draw by which a corpus is carved or rows are reserved: a fixed part of the corpus, not of a run


def normalise(text: str | list[str]) -> str:
    """Return a sentence in lower case with single spaces, so that equal sentences are equal strings."""
    words = text.split() if isinstance(text, str) else text
    return " ".join(words).lower()


def sentences(columns: dict[str, list], names: list[str]) -> list[list[str]]:
    """Return each row's normalised sentences [N][1 or 2], from its text columns or its column of words."""
    return [[normalise(text) for text in texts] for texts in zip(*(columns[name] for name in names), strict=True)]


def group(columns: dict[str, list], names: list[str], group_by: str) -> np.ndarray:
    """Return each row's group [N] int64, numbered by first appearance.

    group_by: `sentence` (rows connected through shared normalised sentences, over any number of steps), `phrase`
    (a text goes with the longest one that holds it), `row` (each on its own), or a column whose equal values
    belong together: a document, a parent sentence.
    """
    keys: Sequence
    if group_by == "row":
        keys = range(len(columns[names[0]]))
    elif group_by == "sentence":
        keys = components(sentences(columns, names))
    elif group_by == "phrase":
        keys = _holders([texts[0] for texts in sentences(columns, names)])
    else:
        keys = columns[group_by]
    numbers: dict = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def components(rows: list[list[str]]) -> list[int]:
    """Return a representative row [N] for each row's component: rows connected by texts (union-find, paths halved)."""
    parent = list(range(len(rows)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[str, int] = {}
    for i, texts in enumerate(rows):
        for text in texts:
            a, b = root(first.setdefault(text, i)), root(i)
            parent[max(a, b)] = min(a, b)
    return [root(i) for i in range(len(rows))]


def _holders(texts: list[str]) -> list[str]:
    """Return for each text [N] the longest text that contains its words in a row; itself where there is none."""
    holder: dict[str, str] = {}
    known = set(texts)
    for whole in sorted(known, key=lambda text: (-len(text.split()), text)):
        if whole in holder:
            continue
        words = whole.split()
        for start in range(len(words)):
            for end in range(start + 1, len(words) + 1):
                phrase = " ".join(words[start:end])
                if phrase in known:
                    holder.setdefault(phrase, whole)
    return [holder[text] for text in texts]


def carve(
    groups: np.ndarray, classes: np.ndarray, shares: dict[str, float], location: str, seed: int = SEED
) -> dict[str, np.ndarray]:
    """Carve splits from train by whole groups; return each split's rows in order, the rest under `train`.

    Args: groups [N], numbered without gaps; classes [N] int, whose proportions are kept as far as whole groups allow
    (zeros: none to keep); shares {split: share of all rows}; seed of the draw. Groups are taken in
    one fixed random order, first while every class stays within its share, then to fill up. A group larger than the
    wanted share stays in train.
    Raises UserError where no group is small enough.
    """
    counts = np.zeros((groups.max() + 1, classes.max() + 1), dtype=np.int64)
    np.add.at(counts, (groups, classes), 1)
    free, carved = np.ones(len(counts), dtype=bool), {}
    for split, share in shares.items():
        order = np.random.default_rng(derive_seed(seed, f"carving {split}")).permutation(len(counts))
        taken = _take(counts, order[free[order]], share)
        if not len(taken):
            wanted, smallest = round(share * len(groups)), counts[free].sum(1).min()
            if share * len(groups) < 1:
                few = f"{share:g} of {len(groups)} rows is less than one row"
                raise UserError(f"{location}: carve {split}: {few}; say a larger share, or take more rows")
            message = f"no group is small enough for the {wanted} rows wanted, the smallest has {smallest}"
            raise UserError(
                f"{location}: carve {split}: {message}; say group_by: row, so that splits may share texts, "
                "or use an official split"
            )
        free[taken] = False
        carved[split] = np.flatnonzero(np.isin(groups, taken))
    return {"train": np.flatnonzero(free[groups]), **carved}


def folds(groups: np.ndarray, classes: np.ndarray, number: int, seed: int) -> np.ndarray:
    """Return the fold [N] of each row: whole groups, with rows and classes spread as evenly as groups allow.

    Args: groups [N], numbered without gaps; classes [N] int (zeros: none to spread); number of folds; seed of the draw.
    Groups are taken in a random order, larger ones first, each into the fold that has least of its classes.
    """
    counts = np.zeros((groups.max() + 1, classes.max() + 1))
    np.add.at(counts, (groups, classes), 1)
    totals = counts.sum(0).clip(min=1)
    order = np.random.default_rng(derive_seed(seed, "folds")).permutation(len(counts))
    order = order[np.argsort(-counts[order].sum(1), kind="stable")]
    held, fold = np.zeros((number, counts.shape[1])), np.empty(len(counts), dtype=np.int64)
    for g in order:
        alike = (held * (counts[g] / totals)).sum(1)
        fold[g] = np.lexsort((held.sum(1), alike))[0]
        held[fold[g]] += counts[g]
    return fold[groups]


def _take(counts: np.ndarray, order: np.ndarray, share: float) -> np.ndarray:
    """Return the groups to carve: counts [G, C] rows of each class, order: the free groups as they are drawn.

    In the second turn a class may exceed its share by half, but train always keeps a row of each.
    """
    totals = counts.sum(0)
    wanted = share * totals
    rows = round(share * totals.sum())
    got, taken = np.zeros_like(totals), np.zeros(len(counts), dtype=bool)
    for most in (np.floor(wanted + 0.5), 1.5 * wanted):
        most = np.maximum(np.minimum(most, totals - 1), 0)
        for g in order[~taken[order]]:
            after = got + counts[g]
            if after.sum() <= rows and (after <= most).all():
                taken[g] = True
                got = after
    return np.flatnonzero(taken)
