"""Two results example by example: which predictions flipped, where one is better, and what in the settings differs.

A result is a run, a run's variant with all its seeds, predictions from elsewhere, or an ensemble. An example's credit
is the share of seeds that get it right (of a tagged sentence, of its words); of scores it is the mean distance to
gold, negative. N examples of one split.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.steps import giving
from thaw.core.yaml_values import yaml_value
from thaw.data.corpus import Corpus, scored_part
from thaw.declarations.extra_files import EXTRA_FILES
from thaw.evaluation.example_slices import in_order, slice_names
from thaw.evaluation.result_files import task_with_defaults
from thaw.evaluation.target_kinds import target_of
from thaw.schema.keys import documented
from thaw.schema.phases import PhaseConfig
from thaw.statistics.bootstrap import LEVEL, unseen_share

PREDICTED = giving("scores")  # steps that write predictions
FEWEST_EXAMPLES = 10  # of a slice: with fewer an interval by the standard error says nothing


@dataclass
class ComparedRun:
    """A folder with predictions: the record and the folder of each seed (one where there are none)."""

    folder: Path
    records: list[dict]
    folders: list[Path]

    @classmethod
    def open(cls, folder) -> "ComparedRun":
        """Return the result in a folder below results; raises UserError where there is none."""
        if not Path(folder).is_dir():
            wrong = f"is a file; name its folder, {Path(folder).parent}" if Path(folder).is_file() else "no such folder"
            raise UserError(f"{folder}: {wrong}")
        folder = Path(folder).resolve()
        folders = [folder] if (folder / "metrics.json").is_file() else sorted(folder.glob("seed*"))
        folders = [one for one in folders if (one / "metrics.json").is_file()]
        if not folders or layout.results_folder(folder, PREDICTED) is None:
            known = ",".join(layout.top_folders(PREDICTED))
            raise UserError(f"{folder} has no predictions; expected a folder below results/{{{known}}}")
        return cls(folder, [read_json(one / "metrics.json") for one in folders], folders)

    @cached_property
    def task(self) -> dict:
        """The task of the result."""
        spec = self.records[0]["spec"]
        return task_with_defaults(spec["task"], spec.get("subset", {}))

    @cached_property
    def results(self) -> Path:
        """The results folder."""
        results = layout.results_folder(self.folder, PREDICTED)
        assert results  # `open` has read the records of a run
        return results

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus that the task reads."""
        return Corpus(self.results / layout.folder("prepare", {"corpus": self.task["corpus"]}))

    def score(self, split: str) -> float | None:
        """Return the main metric, mean over seeds; None where it is undefined for one."""
        scores = [record["scores"][split][self.task["metrics"][0]] for record in self.records]
        return None if None in scores else float(np.mean(scores))

    def rows(self, split: str) -> np.ndarray:
        """Return the positions of the examples of a split that were scored."""
        return scored_part(self.corpus, split, self.task, self.records[0]["spec"].get("subset", {}))

    def credits(self, split: str, rows: np.ndarray) -> np.ndarray:
        """Return the credit of N examples of a split, [N]."""
        import pandas

        frame, each = self.corpus.frame(split).iloc[rows], []
        gold = frame[self.task["target"]]
        for folder in self.folders:
            predictions = pandas.read_parquet(folder / "predictions.parquet")
            predictions = predictions[predictions["split"] == split].set_index("row").loc[frame["row"], "prediction"]
            each.append(list(map(target_of(self.task).credit, gold, predictions)))
        return np.mean(each, axis=0)


def settings(first: ComparedRun, second: ComparedRun) -> list[tuple[str, str, str]]:
    """Return the settings that differ: (key, value of the first, value of the second), a dash where one has none."""
    sides = [_flat(result.records[0]["spec"]) for result in (first, second)]
    keys = sorted((set(sides[0]) | set(sides[1])) - set(EXTRA_FILES))
    first_said, second_said = ({key: _printed(value) for key, value in side.items()} for side in sides)
    rows = [(key, first_said.get(key, "–"), second_said.get(key, "–")) for key in keys]
    return [row for row in rows if row[1] != row[2]]


def _printed(value) -> str:
    return f"{value:g}" if isinstance(value, float) else yaml_value(value)


def _flat(value, path: str = "") -> dict[str, object]:
    """Return the leaves of nested mappings and lists by their path."""
    pairs: Iterable
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        pairs = enumerate(value, 1)
    else:
        return {path: value}
    named: Callable = _documented if re.fullmatch(r"phases\.\d+", path) else str
    return {k: v for key, item in pairs for k, v in _flat(item, f"{path}.{named(key)}".lstrip(".")).items()}


def _documented(key: str) -> str:
    """Return the name that people write for a key of a phase."""
    return documented(PhaseConfig, key) if key in PhaseConfig.model_fields else key


def compared(first: ComparedRun, second: ComparedRun, split: str):
    """Return a frame of the examples of a split that both predicted: row, texts, gold, credits `first` and `second`.

    Raises UserError where the results are of different tasks, or lack the split.
    """
    if first.task["id"] != second.task["id"]:
        raise UserError(f"{first.folder} is of task {first.task['id']}, {second.folder} of {second.task['id']}")
    scored = list(first.records[0]["scores"])
    if split not in scored:
        raise UserError(f"--split {split}: these results have {', '.join(scored)}")
    corpus = first.corpus
    columns = ["row", *corpus.texts, *([corpus.words] if corpus.words else []), first.task["target"]]
    rows = np.intersect1d(first.rows(split), second.rows(split))
    frame = corpus.frame(split)[columns].iloc[rows].reset_index(drop=True)
    return frame.assign(first=first.credits(split, rows), second=second.credits(split, rows))


def flips(frame) -> dict[str, int]:
    """Return how many examples the first and the second get better. Args: a frame as `compared` gives it."""
    worse, better = int((frame["first"] > frame["second"]).sum()), int((frame["second"] > frame["first"]).sum())
    return {"first": worse, "second": better, "same": len(frame) - worse - better}


def slices(
    frame, texts: list[str], target: str, bounded: bool = True
) -> list[tuple[str, str, int, float, float, float | None]]:
    """Return by slice: what it is of, its name, examples, mean credit of both, and half the CI of their difference.

    Half the CI is 1.96 standard errors; where no example differs from the others it is what examples that were not
    seen allow, or None where credits are not bounded by 0 and 1. None with fewer than FEWEST_EXAMPLES.
    Slices are by label, by length in words, by whether a text has a negation, and, of pairs, by how many of their
    words the texts share (Jaccard); negations are those of English.
    """
    keys = {"label": list(frame[target])} if isinstance(frame[target].iloc[0], str) else {}
    rows = []
    for of, names in (keys | slice_names(frame, texts)).items():
        for name in in_order(names):
            part = frame[np.array(names) == name]
            half = _half_width((part["second"] - part["first"]).to_numpy(), bounded)
            rows.append((of, name, len(part), part["first"].mean(), part["second"].mean(), half))
    return rows


def _half_width(differences: np.ndarray, bounded: bool) -> float | None:
    """Return half the 95 % CI of the mean of N differences; see `slices`."""
    count = len(differences)
    if count < FEWEST_EXAMPLES:
        return None
    if np.ptp(differences) == 0:
        return unseen_share(count, (1 + LEVEL) / 2) if bounded else None
    return 1.96 * float(differences.std()) / count**0.5
