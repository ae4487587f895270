"""What an output is built from: runs.csv, predictions of runs, records of probes, each read when it is asked for."""

from collections import Counter
from functools import cached_property
from pathlib import Path

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.probe_frame import ProbeRecord
from thaw.outputs.frame.runs_frame import read_runs
from thaw.words import wording


class OutputData:
    """The results of an experiment, as builders of tables and figures read them.

    Args: the results folder; runs, the path of runs.csv or the frame that was read from it; probes, the paths of the
    metrics.json of probes; first, the subsets that are shown as one (see `together`); merges, the paths of the
    records of merges.
    """

    def __init__(self, results, runs=None, probes=(), first: dict[str, str] | None = None, merges=()):
        self.results = Path(results)
        self._merges = [Path(path) for path in merges]
        self._runs, self._probes, self._first = runs, [Path(path) for path in probes], first or {}

    @cached_property
    def _each_run(self):
        return read_runs(self._runs) if isinstance(self._runs, (str, Path)) else self._runs

    @cached_property
    def runs(self):
        return together(self._each_run, self._first)

    @property
    def notes_of_draws(self) -> list[str]:
        """The note of a table whose draws are together; none where they are not."""
        return notes(self._each_run, self._first) if self._first else []  # tables of probes need no runs.csv

    @cached_property
    def predictions(self) -> PredictionFiles:
        return PredictionFiles(self.results)

    @cached_property
    def probes(self) -> list[ProbeRecord]:
        """The records of the probes. Raises UserError where there is none."""
        if not self._probes:
            raise UserError("no probe of this experiment has a result yet; run the workflow first")
        return [ProbeRecord(path, read_json(path)) for path in self._probes]

    @cached_property
    def merges(self) -> dict[tuple[str, str, str], dict]:
        """The records of merges by (subset, encoder, id). Raises UserError where there is none."""
        records = {}
        for path in self._merges:
            names = layout.names_in_folder("merge", path.absolute().parent.relative_to(self.results.absolute()))
            records[names["subset"], names["encoder"], names["merge"]] = read_json(path)
        if not records:
            raise UserError("no merge of this experiment has a result yet; run the workflow first")
        return records

    def folder(self, run) -> Path:
        """Return where a run's files are. Args: a row of the runs, or any mapping with its `folder`."""
        return self.results / run["folder"]


def together(runs, first: dict[str, str]):
    """Return the runs with the draws of a size as one subset, whose seeds are numbered over draws and seeds.

    Args: runs as `read_runs` returns them; first, for each subset that is one of several draws, the first of them. The
    same draw and seed have the same number in all cells, so that they are compared in pairs.
    """
    if not first:
        return runs
    known, numbers = runs["seed"].notna() & runs["subset"].isin(first), numbered(runs, first)
    runs = runs.copy()
    runs.loc[known, "seed"] = [numbers[row.subset, row.seed] for row in runs[known].itertuples()]
    return runs.assign(subset=runs["subset"].map(lambda subset: first.get(subset, subset)))


def numbered(runs, first: dict[str, str]) -> dict[tuple[str, int], int]:
    """Return the number that `together` gives a seed of a draw, by (subset, seed)."""
    places = {subset: place for place, subset in enumerate(first)}
    known = runs[runs["seed"].notna() & runs["subset"].isin(places)]
    keys = set(zip(known["subset"], known["seed"], strict=True))
    return {key: number for number, key in enumerate(sorted(keys, key=lambda key: (places[key[0]], key[1])), start=1)}


def unit(first: dict[str, str], most: int) -> str:
    """Return what the runs of a mean differ in: seed, draw, or run for both. Args: see `together`; their number."""
    draws = Counter(first.values()).values()
    return "seed" if not draws else "draw" if most <= max(draws) else "run"


def notes(runs, first: dict[str, str]) -> list[str]:
    """Return the note of a table whose draws are together, none where they are not. Args: as of `together`."""
    if not first:
        return []
    counts = {one: sum(other == one for other in first.values()) for one in dict.fromkeys(first.values())}
    said = wording.listing(f"{count} from {one} on" for one, count in counts.items())
    seeds = runs[runs["subset"].isin(first)].groupby("subset")["seed"].nunique().max()
    shared = f" The {seeds} seeds of a draw share its rows, so that intervals are too narrow." if seeds > 1 else ""
    return [f"Each draw of the training rows counts as further seeds: {said}.{shared}"]
