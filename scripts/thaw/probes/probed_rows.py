"""Which rows of a corpus a probe reads."""

import numpy as np

from thaw.data.corpus import Corpus, rows_outside, subset_rows
from thaw.evaluation.result_files import scored_rows, task_with_defaults


def read_rows(spec: dict, corpus: Corpus) -> dict[str, np.ndarray]:
    """Return the rows of train, validation and test that a probe reads, by split, as its spec has them.

    Of train they are those of the subset, or with `rows: outside` as many that are not in it, or none. Raises UserError
    where no row is left.
    """
    task, subset = task_with_defaults(spec["task"]), spec["subset"]
    rows = scored_rows(task, corpus, subset)
    chosen = spec.get("rows", "subset")
    if chosen == "none":
        return rows
    return rows | {"train": (subset_rows if chosen == "subset" else rows_outside)(corpus, task, subset)}
