"""Records of probes as rows of a frame: which encoder was probed, as it was pretrained or as runs left it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from thaw.declarations.splits import shown_split, splits_of
from thaw.outputs.frame.runs_frame import value
from thaw.words import wording

PRETRAINED = "pretrained"
BETWEEN_SEEDS = "between_seeds"
PROBED = ["task", "subset", "encoder", "run"]  # the columns that say which encoder was probed on what


@dataclass(frozen=True)
class ProbeRecord:
    """The metrics.json of a probe, and where it is."""

    path: Path
    record: dict

    def value(self, *keys):
        """Return a value of the record; a missing key is a UserError that names the file."""
        return value(self.record, self.path, *keys)

    @property
    def of(self) -> dict:
        """What was probed: task, subset, encoder and probe, and for runs their strategy, head and task."""
        return self.value("spec", "of")

    @property
    def cell(self) -> dict[str, str]:
        """What was probed as columns: task, subset, encoder, probe, and `run` as `run_key` gives it."""
        return {name: self.of[name] for name in ("task", "subset", "encoder", "probe")} | {"run": run_key(self.of)}

    @property
    def entry(self) -> dict:
        return self.value("spec", "probe")

    @property
    def task(self) -> dict:
        """The task as its spec has it, with the splits of its subset."""
        return splits_of(self.value("spec", "task"), self.record["spec"].get("subset", {}))

    def split(self, shown: str) -> str:
        """Return the split of the task that an output shows. Args: test (the task's first) or validation."""
        return shown_split(self.task, shown)


def run_key(of: dict) -> str:
    """Return which runs left an encoder, as one word, from what a record says of itself.

    Their task is part of it where they were trained on another one than is probed, so that runs of one strategy, each
    probed on its own task, are one line of a figure.
    """
    if "run" not in of:
        return PRETRAINED
    return ".".join(value for name, value in of["run"].items() if name != "task" or value != of["task"])


def run_names(records: list[ProbeRecord], labels: dict) -> dict[str, str]:
    """Return the names of pretrained and adapted encoders in print, by `run_key`, pretrained first.

    A name has the task that runs were trained on where it is not the one that is probed, and the head where there are
    several.
    """
    keys = {run_key(record.of): record.of for record in records}
    runs = {key: of for key, of in keys.items() if "run" in of}
    heads = {of["run"]["head"] for of in runs.values()}
    names = {PRETRAINED: "Pretrained"} if PRETRAINED in keys else {}
    for key, of in runs.items():
        run = of["run"]
        name = wording.strategy_name(labels, run["strategy"], run["variant"])
        name += f", {wording.label(labels, 'heads', run['head'])}" * (len(heads) > 1)
        elsewhere = f" on {wording.task_name(labels, run['task'])}"
        names[key] = name + elsewhere * (run["task"] != of["task"])
    return names


def layer_scores(records: list[ProbeRecord], split: str, keys: list[str], factor: Callable = lambda measure: 100):
    """Return a row for each score and layer: mean, sd, low, high and number of seeds, and `baseline`.

    The baseline is that of the record: the most frequent label; NaN where there is none. What a probe scores on one
    split alone is taken from there. Args: split, "test" (the first of a task) or "validation"; the columns before the
    numbers; the factor of a measure.
    """
    import pandas

    rows = []
    for record in records:
        main, wanted = record.value("main"), record.split(split)
        constant = record.value("majority").get(wanted, {}).get(main)
        for end in record.value("layers"):
            shown = wanted if wanted in end["scores"] else next(iter(end["scores"]))
            values = {"value": end["scores"][shown][main], "baseline": constant}
            scaled = {name: None if value is None else factor(main) * value for name, value in values.items()}
            rows.append({**record.cell, "measure": main, "split": shown, "layer": end["layer"], **scaled})
    table = pandas.DataFrame(rows).astype({"value": float, "baseline": float})
    baselines = table.groupby(keys, sort=False)["baseline"].first()
    return over_seeds(table, keys).assign(baseline=baselines.to_numpy())


def over_seeds(table, keys: list[str]):
    """Return a row for each of the keys: mean, sd, low, high and number of seeds of the column `value`.

    Low and high are mean ± standard deviation from three seeds on, else the range.
    """
    frame = table.groupby(keys, sort=False)["value"].agg(["mean", "std", "min", "max", "count"]).reset_index()
    frame.columns = [*keys, "mean", "sd", "low", "high", "seeds"]
    spread = frame["seeds"] >= 3
    frame["low"] = frame["low"].where(~spread, frame["mean"] - frame["sd"])
    frame["high"] = frame["high"].where(~spread, frame["mean"] + frame["sd"])
    return frame


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
