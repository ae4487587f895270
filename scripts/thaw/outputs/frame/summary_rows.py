"""The rows of a summary as named tuples, by what they are: filtering a frame for each takes ten times as long."""

from collections import defaultdict

from thaw.outputs.frame import aggregate


class SummaryRows:
    """The rows of `aggregate.summarise`, in its order; `Index` of a row is its number."""

    def __init__(self, summary):
        self.all = list(summary.itertuples())
        self.external = [row for row in self.all if row.kind in aggregate.EXTERNAL]
        self._runs, self._baselines = defaultdict(list), defaultdict(list)
        for row in self.all:
            if row.fitted:
                self._runs[row.subset, row.encoder, row.head].append(row)
            elif row.baseline:
                self._baselines[row.subset].append(row)

    def runs(self, group: tuple) -> list:
        """Return the runs of a group (subset, encoder, head)."""
        return self._runs[group]

    def baselines(self, group: tuple) -> list:
        """Return the baselines that the runs of a group are compared with."""
        subset, encoder, _ = group
        return [row for row in self._baselines[subset] if row.encoder in ("", encoder)]


def of_column(rows: list, column: aggregate.Column) -> list:
    """Return those of some rows that are on the task and split of a column."""
    return [row for row in rows if (row.task, row.split) == (column.task, column.split)]
