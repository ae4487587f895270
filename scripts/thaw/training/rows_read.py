"""The rows of a corpus that runs and probes read."""

import numpy as np

from thaw.data.corpus import Corpus, rows_outside, subset_rows
from thaw.evaluation.result_files import scored_rows, task_with_defaults, whole_task


def read_rows(spec: dict, corpus: Corpus) -> dict[str, np.ndarray]:
    """Return the rows of train, validation and test that a run or a probe reads, by split, as its spec has them.

    Of train they are those of the subset, or with `rows: outside` as many that are not in it, or none. Raises UserError
    where no row is left.
    """
    task, subset = whole_task(spec), spec["subset"]
    rows = scored_rows(task, corpus, subset)
    chosen = spec.get("rows", "subset")
    if chosen == "none":
        return rows
    return rows | {"train": (subset_rows if chosen == "subset" else rows_outside)(corpus, task, subset)}


def rows_of_all(selections: list[dict], corpus: Corpus) -> dict[str, np.ndarray]:
    """Return the rows that any of some selections reads, by split.

    Args: selections, each the `task`, `subset` and `rows` of a spec; or the `transfer` task whose test splits are read,
    and with `subset` all of its train.
    """
    by_split: dict[str, list[np.ndarray]] = {}
    for selection in selections:
        if "transfer" in selection:
            splits = task_with_defaults(selection["transfer"], {})["test"]
            splits = [*splits, "train"] if "subset" in selection else splits
            rows = {split: np.arange(corpus.size(split)) for split in splits}
        else:
            rows = read_rows(selection, corpus)
        for split, chosen in rows.items():
            by_split.setdefault(split, []).append(chosen)
    return {split: np.unique(np.concatenate(chosen)) for split, chosen in by_split.items()}
