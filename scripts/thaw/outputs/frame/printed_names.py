"""Names in print of tasks, subsets, encoders, heads, strategies, probes and runs."""

from collections.abc import Mapping

from thaw.words import wording


class Names:
    """Names in print of what the columns of a frame hold: what panels, lines and rows are called.

    Args: the spec of the output; the frame that is shown; names of adapted encoders as `run_names` gives them.
    """

    def __init__(self, spec: dict, frame, runs: Mapping[str, str] | None = None):
        self.labels, self.probes, self.runs = spec["labels"], spec.get("probes", {}), runs or {}
        self.frame = frame

    def of(self, column: str, id: str) -> str:
        """Return the name of an id of a column: task, subset, encoder, head, strategy, probe or run."""
        if column == "task":
            return wording.task_name(self.labels, id)
        known = {"probe": self.probes, "run": self.runs}.get(column)
        if known is None:
            known = self.labels.get({"strategy": "strategies"}.get(column, f"{column}s"), {})
        return known.get(id, id)

    def title_words(self, row: Mapping, *columns: str) -> list[str]:
        """Return the name of a row's task, and of some columns what differs in the frame: the words of a title."""
        return [self.of("task", row["task"]), *self.several(row, *columns)]

    def probe_if_several(self, row: Mapping, *columns: str) -> list[str]:
        """Return the name of a row's probe, if rows that equal it in some columns are of several probes."""
        alike = (self.frame[list(columns)] == [row[column] for column in columns]).all(axis=1)
        return [self.of("probe", row["probe"])] * (self.frame.loc[alike, "probe"].nunique() > 1)

    def several(self, row: Mapping, *columns: str) -> list[str]:
        """Return a row's names in those of some columns that have more than one value in the frame."""
        return [self.of(column, row[column]) for column in columns if self.frame[column].nunique() > 1]
