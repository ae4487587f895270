"""Whether an export predicts what its run does: a fresh process loads it and reads the test splits again, from text.

N examples of a split, T tokens, W words, d width, C classes.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from thaw.core.errors import UserError
from thaw.core.plugins import is_plugin
from thaw.core.processes import why_it_ended
from thaw.core.runtime import progress
from thaw.data.corpus import scored_part
from thaw.evaluation.metrics import NO_TAG, score
from thaw.evaluation.result_files import select_rows
from thaw.exporting import folder_reader
from thaw.exporting.finished_run import FinishedRun
from thaw.exporting.formats import trained_encoder
from thaw.features.row_sets import batches
from thaw.features.store import FeatureStore
from thaw.heads.registry import build
from thaw.schema.experiment import threads_of

# The most by which a probability, or a score as a share of the gold scores' range, may differ from what the run's own
# tensors give in fp32: a batch of another shape moves a state by some 1e-6, a wrong model by far more than this.
TOLERANCE = 1e-3

# The share of predictions that may be others than recorded, one in any case. A run may have read states stored in bf16,
# whose rounding turns those on the edge: 0.4 % with MiniLM, 1.5 % under a head fitted with little restraint.
MAY_CHANGE = 0.05

AT_ONCE = 512  # texts of a request: as many as a model sorts by length together


class FreshProcess:
    """A Python that cannot import Thaw; while the context lasts, it answers with exported and merged folders."""

    def __init__(self, threads: int):
        self._setting = os.environ | {"OMP_NUM_THREADS": str(threads)}

    def __enter__(self) -> "FreshProcess":
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-E", "-P", "-B", folder_reader.__file__],
            env=self._setting,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        assert self._process.stdin and self._process.stdout, "both are pipes"
        self._requests, self._replies = self._process.stdin, self._process.stdout
        return self

    def __exit__(self, *error) -> None:
        self._end()
        self._errors.close()

    def ask(self, texts: list, *folders: Path, tasks: list[str] | None = None) -> dict:
        """Return the answers of some folders, one after the other.

        Raises UserError, with its last error and its exit code or signal, where the process ends.
        """
        request = {"folders": [str(folder) for folder in folders], "texts": texts, "tasks": tasks}
        line = ""
        with contextlib.suppress(BrokenPipeError):  # it had ended before the request
            self._requests.write(json.dumps(request) + "\n")
            self._requests.flush()
            line = self._replies.readline()
        if not line.endswith("\n"):
            code = self._end()
            self._errors.seek(0)
            raise UserError(f"the folder fails in a fresh process: {why_it_ended(code, self._errors.read())}")
        reply = json.loads(line)
        if reply["thaw"]:
            raise UserError(f"the folder needs Thaw: it imported {reply['thaw'][0]}")
        return reply

    def _end(self) -> int:
        """Wait until the process has ended, and return its exit code."""
        with contextlib.suppress(BrokenPipeError):  # closing writes what is left of a request
            self._requests.close()
        self._replies.close()
        return self._process.wait()


def check(source: FinishedRun, folder: Path) -> dict:
    """Read the dataset's test splits again with the export and return the comparison, as check.json has it."""
    with FreshProcess(threads_of(source.spec)) as process:
        return compared(process, source, folder)


def compared(process: FreshProcess, source: FinishedRun, folder: Path) -> dict:
    splits = {
        split: compare(source, split, predictions_of(process, source, split, folder)) for split in checked(source)
    }
    passed = all(map(passes, splits.values()))
    return {"passed": passed, "tolerance": TOLERANCE, "may_change": MAY_CHANGE, "splits": splits}


def checked(source: FinishedRun) -> list[str]:
    """Return the test splits of a run's task that its dataset has."""
    return [split for split in source.task["test"] if split in source.corpus.splits]


def compare(source: FinishedRun, split: str, predictions: list[dict]) -> dict:
    """Compare predictions for all examples of a split with the recorded ones and with those of the run's tensors."""
    import pandas

    recorded = pandas.read_parquet(source.made / "predictions.parquet")
    rows = scored_part(source.corpus, split, source.task, source.spec["subset"])
    before, again = recorded["prediction"][recorded["split"] == split], select_rows(predictions, rows)
    changed = _changed(source, split, before, again)
    return {
        "answers": len(changed),
        "changed": sum(changed),
        "largest_difference": _largest(source, split, own_outputs(source, split), predictions),
        "scores": _scores(source, split, rows, again),
    }


def passes(part: dict) -> bool:
    """Return whether a comparison of `compare` is within the limits."""
    few = part["changed"] <= max(1, MAY_CHANGE * part["answers"])
    return few and part["largest_difference"] <= TOLERANCE


def predictions_of(process: FreshProcess, source: FinishedRun, split: str, folder: Path, task: str = "") -> list[dict]:
    """Return a folder's predictions for a split, as a fresh process reads it. Args: the task, in a merged folder."""
    asked = examples(source, split)
    predictions, tasks = [], [task] if task else None
    for start in progress(range(0, len(asked), AT_ONCE), f"a fresh process reads {split}"):
        (reply,) = process.ask(asked[start : start + AT_ONCE], folder, tasks=tasks)["replies"]
        predictions += reply["predictions"][task]
    return predictions


def examples(source: FinishedRun, split: str) -> list:
    """Return the texts of a split as the loader takes them: a text, a list of two texts, or a list of words."""
    frame, corpus = source.corpus.frame(split), source.corpus
    if source.reads == "pair":
        return [list(pair) for pair in zip(*(frame[name] for name in corpus.texts), strict=True)]
    return frame[corpus.texts[0]].tolist() if source.reads == "text" else [list(words) for words in frame[corpus.words]]


@torch.inference_mode()
def own_outputs(source: FinishedRun, split: str) -> list[np.ndarray]:
    """Return what the run's tensors give in Thaw's own code, in fp32, from the token ids that the run read.

    For each example its probabilities [C], its score [], or the probabilities of each word that was seen [W, C].
    """
    store, encoder = FeatureStore(source.features), trained_encoder(source)
    outputs, task_type, layers = len(source.labels) or 1, source.task["type"], source.spec["layers"]
    head = build(source.head, encoder.width, outputs, task_type, source.separate_encoding, layers).eval()
    head.load_state_dict(load_file(source.made / "head.safetensors"))
    predictions = [np.empty(0)] * source.corpus.size(split)
    for rows in progress(batches(store.sizes(split)), f"the run's own model reads {split}"):
        batch = store.batch(split, rows)
        states = dict(zip(head.combination.read, encoder.states(batch, source.read).values(), strict=True))
        logits = head(head.combination(states, batch.mask), batch).float()
        outputs = logits if not source.labels else logits.sigmoid() if head.label_sets else logits.softmax(-1)
        for index, row in enumerate(rows):
            seen = batch.first_pieces[index] >= 0 if head.words else ...
            predictions[row] = outputs[index][seen].numpy()
    return predictions


def _largest(source: FinishedRun, split: str, expected: list[np.ndarray], predictions: list[dict]) -> float:
    unit = 1.0 if source.labels else _range(source, split)
    largest = 0.0
    for ours, prediction in zip(expected, predictions, strict=True):
        shares = prediction["probabilities"] if source.labels else prediction["prediction"]
        theirs = np.array([share for share in shares if share is not None] if source.reads == "words" else shares)
        if theirs.shape != ours.shape:  # a word that one of them did not see
            return float("inf")
        largest = max(largest, np.abs(theirs - ours).max(initial=0.0) / unit)
    return float(largest)


def _changed(source: FinishedRun, split: str, before, predictions: list[dict]) -> list[bool]:
    """Return for each text or word whether its prediction is another than the recorded one.

    A score is another when it moved by more than that share of the gold scores' range which may change.
    """
    now: Any = [prediction["prediction"] for prediction in predictions]
    if source.reads == "words":
        before, now = chain.from_iterable(before), chain.from_iterable(map(_tags, predictions))
    if source.target == "label_set":
        return [list(old) != new for old, new in zip(before, now, strict=True)]
    if source.labels:
        return [bool(old != new) for old, new in zip(before, now, strict=True)]
    limit = MAY_CHANGE * _range(source, split)
    return [bool(abs(old - new) > limit) for old, new in zip(before, now, strict=True)]


def _tags(prediction: dict) -> list[str | None]:
    """Return the tags of a sentence; None for a word that was cut off, which the loader calls O."""
    both = zip(prediction["prediction"], prediction["probabilities"], strict=True)
    return [None if shares is None else tag for tag, shares in both]


def _range(source: FinishedRun, split: str) -> float:
    return float(np.ptp(source.corpus.targets(source.task, split))) or 1.0


def _scores(source: FinishedRun, split: str, rows: np.ndarray, predictions: list[dict]) -> dict:
    index = {label: number for number, label in enumerate(source.labels)}
    values: Any = [prediction["prediction"] for prediction in predictions]
    if source.reads == "words":
        values = [[NO_TAG if tag is None else index[tag] for tag in _tags(prediction)] for prediction in predictions]
    elif source.target == "label_set":
        values = np.array([prediction["probabilities"] for prediction in predictions])
    elif index:
        values = np.array([index[label] for label in values])
    names = [name for name in source.task["metrics"] if not is_plugin(name)]
    gold = select_rows(source.corpus.targets(source.task, split), rows)
    exported = score(source.task | {"metrics": names}, gold, values, source.labels)
    return {name: {"run": source.metrics["scores"][split][name], "export": exported[name]} for name in names}
