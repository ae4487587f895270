"""The result of a run: scores by split, row counts and flags, and the predictions as a table.

Shared by everything that predicts for a task (training, fitted heads, baselines), so that their records agree.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from thaw.core.digests import digest
from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import write_json, write_parquet, write_text
from thaw.core.phrases import plural
from thaw.core.runtime import derive_seed, log
from thaw.data.corpus import Corpus, rows_outside, scored_part, subset_rows
from thaw.declarations.task_types import METRIC_LABELS
from thaw.evaluation.metrics import score
from thaw.evaluation.target_kinds import target_of
from thaw.schema.corpora import SubsetConfig, TaskConfig

SCORED_TRAINING_ROWS = 500


@dataclass
class Predictions:
    """What a run predicts for some rows of a split.

    `rows` are positions within the split's Parquet file; `values` are encoded as metrics want them
    (class indices, floats, per sentence a list of tag indices, -1 where the model saw no such word, or of sets of
    labels the probability of each label, or answers); `probabilities` [rows, classes] exist for classification alone.
    """

    rows: np.ndarray
    values: list | np.ndarray
    probabilities: np.ndarray | None = None


def task_with_defaults(entry: dict, subset: dict) -> dict:
    """Return a spec's task with its `id`, every default filled in, and the splits that runs on a subset have.

    Args: task and subset of a spec; of what has no subset the empty one.
    """
    task = TaskConfig.model_validate({key: value for key, value in entry.items() if key != "id"})
    return {"id": entry["id"], **SubsetConfig.model_validate(subset).of_runs(task).model_dump()}


def whole_task(spec: dict) -> dict:
    """Return the whole task of a spec, with the splits that runs on its subset have."""
    return task_with_defaults(spec["task"], spec.get("subset", {}))


def scored_splits(task: dict) -> list[str]:
    """Return the validation split and the test splits of a whole task, each once."""
    return list(dict.fromkeys([task["validation"], *task["test"]]))


def scored_rows(task: dict, corpus, subset: dict) -> dict[str, np.ndarray]:
    """Return the rows of validation and of the test splits that are scored, by split. Args: subset of a spec."""
    return {split: scored_part(corpus, split, task, subset) for split in scored_splits(task)}


def scored_training_rows(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return the training rows that are scored: the first 500 of a seeded permutation, ascending."""
    order = np.random.default_rng(derive_seed(seed, "train_score")).permutation(len(rows))
    return np.sort(np.asarray(rows)[order[:SCORED_TRAINING_ROWS]])


def decided(
    task: dict, corpus, predictions: dict[str, Predictions], validation: str
) -> tuple[Callable[[Predictions], Predictions], dict]:
    """Return what turns predictions into those by what validation decides of them, and what that is, for `chosen`.

    Of most targets it decides nothing; of answers the threshold above which a question has none.
    """
    target, judged = target_of(task), predictions[validation]
    gold = select_rows(corpus.targets(task, validation), judged.rows)
    threshold = target.threshold(task, gold, judged.values)
    if threshold is None:
        return lambda predicted: predicted, {}
    note = {} if np.isinf(threshold) else {"no_answer_threshold": threshold}
    return lambda predicted: replace(predicted, values=target.decided(predicted.values, threshold)), note


def evaluate(task: dict, corpus, predictions: dict[str, Predictions], diverged: bool = False) -> dict:
    """Return {"scores", "rows", "flags"} of a run's predictions by split, as metrics.json has them.

    `unread_words` counts by split the words that the model never saw, where there are any.
    Where some sentences of a test split of the dataset occur in train, the split is scored a second time without
    those, as `<split>_unseen`. Flags: `diverged`; `undefined` where a score is not defined; and on validation
    `one_class` where a single class is ever predicted, `below_majority` where the main metric is below
    that of the most frequent class in train (an undefined score counts as 0).
    """
    labels = corpus.labels(task["target"])
    scores: dict[str, dict] = {}
    rows: dict[str, int] = {}
    outcome: dict = {"scores": scores, "rows": rows}
    for split, predicted in predictions.items():
        gold = select_rows(corpus.targets(task, split), predicted.rows)
        scores[split], rows[split] = score(task, gold, predicted.values, labels), len(predicted.rows)
        if split in task["test"] and "overlap_train" in corpus.card["splits"].get(split, {}):
            new = np.flatnonzero(~corpus.column(split, "seen").to_numpy(bool)[predicted.rows])
            if 0 < len(new) < len(predicted.rows):
                scores[f"{split}_unseen"] = score(
                    task, select_rows(gold, new), select_rows(predicted.values, new), labels
                )
                rows[f"{split}_unseen"] = len(new)
        if unread := target_of(task).unread(predicted.values):
            outcome.setdefault("unread_words", {})[split] = unread
            log(f"{split}: {plural(unread, 'word')} without a token or cut off, which count as wrong")
    flags = ["diverged"] if diverged else []
    flags += ["undefined"] if any(None in by_metric.values() for by_metric in scores.values()) else []
    return {**outcome, "flags": flags + _weak(task, corpus, predictions, scores, labels)}


def predictions_frame(task: dict, corpus, predictions: dict[str, Predictions], train: bool = False):
    """Return the predictions as a table, those for the training split with `train` alone.

    Columns: split, row (as in the split's Parquet file), prediction (label, score, list of tags or of labels, answer),
    and for classification probabilities (in the order of the corpus' labels), for answers `extracted` (the best text,
    how much less likely it is than no answer, and the next best ones). A word that the model never saw is null: it
    counts as wrong, and as O in spans.
    """
    import pandas as pd

    parts, target = [], target_of(task)
    for split in [split for split in predictions if train or split != "train"]:
        predicted = predictions[split]
        numbers = corpus.column(split, "row").to_numpy()[predicted.rows]
        names = target.named(predicted.values, corpus.labels(task["target"]))
        part = pd.DataFrame({"split": split, "row": numbers, "prediction": names} | target.columns(predicted.values))
        if (probabilities := target.probabilities(predicted)) is not None:
            part["probabilities"] = list(probabilities.astype(np.float32))
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def averaged(files: list[Path], task: dict, corpus, rows: dict[str, np.ndarray]) -> dict[str, Predictions]:
    """Return the predictions of an ensemble for validation and test.

    They are means of probabilities, or of scores. Args: each member's predictions.parquet; a whole task; its corpus; by
    split the rows that are scored.
    """
    import pandas as pd

    frames = []
    for file in files:
        with wrap_corruption(file, f"{file.parent}/metrics.json"):
            frames.append(pd.read_parquet(file))
    predictions = {}
    for split, asked in rows.items():
        expected = corpus.column(split, "row").to_numpy()[asked]
        parts = [frame[frame["split"] == split] for frame in frames]
        for file, part in zip(files, parts, strict=True):
            if not np.array_equal(part["row"].to_numpy(), expected):
                raise UserError(
                    f"{file} does not hold the {len(expected)} rows of {split}; delete its run and run again"
                )
        predictions[split] = Predictions(asked, *target_of(task).averaged(parts))
    return predictions


def write_result(out: Path, spec: dict, outcome: dict, cost: dict | None, predictions, history=None) -> None:
    """Write a run's records into its folder, metrics.json last: cost.json, predictions.parquet, history.csv.

    Args: spec; outcome as `evaluate` gives it, with `chosen`; cost (None for what was not computed here);
    predictions and history (None where nothing was trained step by step) as pandas frames. Seconds, memory and date
    are in cost.json alone, so that the same spec gives the same bytes of metrics.json.
    """
    if cost is not None:
        write_json(out / "cost.json", cost)
    write_parquet(out / "predictions.parquet", predictions)
    if history is not None:
        write_text(out / "history.csv", history.to_csv(index=False, lineterminator="\n"))
    write_json(out / "metrics.json", {"spec": spec, "digest": digest(spec), **outcome})


def select_rows(values, positions):
    return [values[i] for i in positions] if isinstance(values, list) else np.asarray(values)[positions]


def joined(parts: list):
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else [value for part in parts for value in part]


def _weak(task: dict, corpus, predictions: dict, scores: dict, labels) -> list[str]:
    """Return the flags of a run that has learnt nothing, judged on validation where it was predicted."""
    split, main = task["validation"], task["metrics"][0]
    flags: list[str] = []
    if split not in predictions:
        return flags
    target = target_of(task)
    if target.is_constant(predictions[split].values):
        flags.append("one_class")
    gold = select_rows(corpus.targets(task, split), predictions[split].rows)
    constant = target.repeated(target.constant(corpus.targets(task, "train")), gold)
    least = score(task, gold, constant, labels)[main]
    return flags + (["below_majority"] if (scores[split][main] or 0) < (least or 0) else [])


def epoch_line(place: str, losses: Sequence[float], metric: str, scores: list[float | None]) -> str:
    """Return `epoch 1 of 2: loss 0.52, validation MCC 12.3`, of several runs that train side by side their means.

    Args: the epoch, or the update; the mean loss since the line before, by run; main metric and its value on
    validation, by run: an empty list where it was not scored, None where it is undefined.
    """
    several = f"means of {len(losses)} runs: " if len(losses) > 1 else ""
    line = f"{place}: {several}loss {_mean(losses):#.3g}"
    return f"{line}, validation {scored(metric, _mean(scores))}" if scores else line


def result_line(task: dict, outcome: dict, seconds: float) -> str:
    """Return `test MCC 17.9, 27 s`: the test scores and the seconds. Args: as of `scores_line`; the seconds."""
    return f"{scores_line(task, outcome)}, {seconds:.{0 if seconds >= 10 else 1}f} s"


def scores_line(task: dict, outcome: dict) -> str:
    """Return `test MCC 17.9`: the main metric on each test split, of a trial on validation.

    Args: a task with its defaults; an outcome as `evaluate` gives it.
    """
    metric, scores = task["metrics"][0], outcome["scores"]
    splits = [split for split in task["test"] if split in scores] or [task["validation"]]
    return ", ".join(f"{split} {scored(metric, scores[split][metric])}" for split in splits)


def scored(metric: str, value: float | None) -> str:
    """Return a score with its metric, as `MCC 12.3`: times 100, as in all tables."""
    shown = "undefined" if value is None or not math.isfinite(value) else f"{100 * value:.1f}"
    return f"{METRIC_LABELS.get(metric, metric)} {shown}"


def _mean(values: Sequence[float | None]) -> float:
    return sum(math.nan if value is None else value for value in values) / len(values)


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
