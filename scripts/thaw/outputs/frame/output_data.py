"""What an output is built from: runs.csv, predictions of runs, records of probes, each read when it is asked for."""

from functools import cached_property
from pathlib import Path

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.outputs.frame import draws
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.probe_frame import ProbeRecord
from thaw.outputs.frame.runs_frame import read_runs


class OutputData:
    """The results of an experiment, as builders of tables and figures read them.

    Args: the results folder; runs, the path of runs.csv or the frame that was read from it; probes, the paths of the
    metrics.json of probes; first, the subsets that are shown as one (see `draws.together`); merges, the paths of the
    records of merges and of their latency.
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
        """The frame of runs.csv, see `runs_frame`."""
        return draws.together(self._each_run, self._first)

    @property
    def notes_of_draws(self) -> list[str]:
        """The note of a table whose draws are together; none where they are not."""
        return draws.notes(self._each_run, self._first) if self._first else []  # tables of probes need no runs.csv

    @cached_property
    def predictions(self) -> PredictionFiles:
        """The predictions of the runs."""
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
        return self._merge_records("merge")

    @cached_property
    def latencies(self) -> dict[tuple[str, str, str], dict]:
        """The measured times of merges by (subset, encoder, id). Raises UserError where there is none."""
        return self._merge_records("latency")

    def _merge_records(self, step: str) -> dict[tuple[str, str, str], dict]:
        records, name = {}, Path(layout.PLACES[step].file).name
        for path in (path for path in self._merges if path.name == name):
            names = layout.names_in_folder(step, path.absolute().parent.relative_to(self.results.absolute()))
            records[names["subset"], names["encoder"], names["merge"]] = read_json(path)
        if not records:
            raise UserError("no merge of this experiment has a result yet; run the workflow first")
        return records

    def folder(self, run) -> Path:
        """Return where a run's files are. Args: a row of the runs, or any mapping with its `folder`."""
        return self.results / run["folder"]
