"""What speaks against a run's numbers without being an error: found in its records, and told wherever they are shown.

A run's own flags stand in its metrics.json. What is found here is found when results are collected, so that it is told
of results too that were made before anybody looked for it.
"""

import csv
import functools
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from thaw.core.files import read_json
from thaw.evaluation.metrics import METRICS
from thaw.evaluation.result_files import task_with_defaults

JUDGED = 3  # from so many equal validation scores on, validation is said not to move
LEARNT = 0.99  # a training score from here on: the training rows are known by heart
GAINED = 0.1  # of the way from the constant answer to a perfect score: less is hardly anything
ROOM = 0.97  # a tokenizer that fills less of the embeddings is another model's; padding takes at most some per cent
OF_CLASSES = {"accuracy", "f1", "f1_macro", "mcc"}


def sanity_flags(record: dict, folder: Path, results: Path, read: Callable[[Path], dict]) -> list[str]:
    """Return all doubts that a run raises by itself.

    Args: its metrics.json; its folder below the results folder; `read`, which returns a card by its path.
    """
    corpus, encoder = record["spec"]["task"]["corpus"], folder.relative_to(results).parts[3]
    card, store = results / "data" / corpus / "card.json", results / "features" / encoder / corpus
    found = _of_history(record, folder) + (_of_scores(record, read(card)) if card.exists() else [])
    pads = {read(tokens).get("pad") for tokens in store.glob("*/tokens.json")}
    found += _of_kernels(folder / "cost.json")
    return found + _of_tokenizer(results / "encoders" / encoder, pads)


def _of_history(record: dict, folder: Path) -> list[str]:
    """Return the doubts that the way of a run's training raises."""
    history = folder / "history.csv"
    if not history.is_file():
        return []
    with open(history, encoding="utf-8", newline="") as file:
        notes = list(csv.DictReader(file))
    if not notes or "rate" not in notes[0]:  # a convex fit has strengths, no epochs
        return []
    phases = range(1, len(record["spec"]["phases"]) + 1)
    found = ["rate_stuck"] if any(_stuck(record["spec"]["phases"][n - 1], _phase(notes, n)) for n in phases) else []
    return found + (["validation_flat"] if any(_flat(_phase(notes, n)) for n in phases) else [])


def _of_kernels(cost: Path) -> list[str]:
    """Return the warning that a run's cost.json raises: computed on a GPU by kernels that are not deterministic."""
    return ["not_deterministic"] if cost.is_file() and read_json(cost).get("deterministic") is False else []


def _phase(notes: list[dict], number: int) -> list[dict]:
    """Return the rows of a phase."""
    return [note for note in notes if note["phase"] == str(number)]


def _stuck(entry: dict, notes: list[dict]) -> bool:
    """Tell whether the rate of a phase stayed where it began, although its schedule lets it rise or fall."""
    moves = entry.get("schedule", "linear") != "constant"
    return moves and len(notes) > 2 and len({note["rate"] for note in notes}) == 1


def _flat(notes: list[dict]) -> bool:
    """Tell whether all validation scores of a phase are equal, where there are enough of them."""
    judged = [score for note in notes for name, score in note.items() if name.startswith("validation") and score]
    return len(judged) >= JUDGED and len(set(judged)) == 1


def _of_scores(record: dict, card: dict) -> list[str]:
    """Return the doubts that scores raise beside the card of their corpus."""
    task, scores = task_with_defaults(record["spec"]["task"]), record["scores"]
    main, validation = task["metrics"][0], task["validation"]
    tests, found = [split for split in task["test"] if split in scores], []
    if any(_all_seen(card, split) for split in (validation, *tests)):
        found.append("all_seen")
    labels = {split: part.get("labels", {}).get(task["target"], {}) for split, part in card["splits"].items()}
    if any(count and not labels["train"].get(label) for split in tests for label, count in labels[split].items()):
        found.append("label_unknown")
    least = {split: _constant(main, labels["train"], labels.get(split, {})) for split in (validation, *tests)}
    got = {split: -math.inf if scores[split][main] is None else scores[split][main] for split in scores}
    if any(least[split] - got[split] > 1 / math.sqrt(record["rows"][split]) for split in tests):  # two standard errors
        found.append("test_below_majority")
    train, held = got.get("train", -math.inf), got.get(validation, math.inf)
    if train >= LEARNT and held - least[validation] < GAINED * (1 - least[validation]):
        found.append("memorised")
    return found


def _all_seen(card: dict, split: str) -> bool:
    """Tell whether every row of a split shares a sentence with train."""
    return card["splits"][split].get("overlap_train", {}).get("share") == 1


def _constant(metric: str, train: dict[str, int], split: dict[str, int]) -> float:
    """Return the score on a split, by its label counts, of answering train's most frequent label; 0 without labels."""
    if metric not in OF_CLASSES or not sum(train.values()) or not sum(split.values()):
        return 0.0
    return _score_of_one(metric, max(range(len(train)), key=list(train.values()).__getitem__), tuple(split.values()))


@functools.cache
def _score_of_one(metric: str, answer: int, counts: tuple[int, ...]) -> float:
    """Return the score of one answer to so many rows of each class, 0 where it is not defined."""
    gold = np.repeat(np.arange(len(counts)), counts)
    found = METRICS[metric](gold, np.full(len(gold), answer))
    return found if math.isfinite(found) else 0.0


def identical_runs(folders: list[Path]) -> set[Path]:
    """Return the folders of runs whose losses are, to the last digit, those of the same run with another seed.

    Convex fits, which all seeds share, are none of them.
    """
    known: dict[tuple[Path, str], list[Path]] = {}
    for folder in folders:
        history = folder / "history.csv"
        content = history.read_bytes() if history.is_file() else b""
        if b"rate" in content.partition(b"\n")[0]:
            known.setdefault((folder.parent, hashlib.sha256(content).hexdigest()), []).append(folder)
    return {folder for alike in known.values() if len(alike) > 1 for folder in alike}


def _of_tokenizer(encoder: Path, pads: set) -> list[str]:
    """Return the doubt that an encoder's folder raises whose tokenizer seems to be another model's.

    Args: the folder; the ids with which texts were padded. Either that is not the one that the model was trained with,
    or the embeddings have many rows that the tokenizer never names.
    """
    config, tokenizer = encoder / "config.json", encoder / "tokenizer.json"
    if not config.is_file() or not tokenizer.is_file():
        return []
    stated = read_json(config)
    due, ends = stated.get("pad_token_id"), stated.get("eos_token_id")
    foreign = due is not None and due >= 0 and bool(pads - {due, ends, None})
    rows = stated.get("vocab_size")
    return ["foreign_tokenizer"] if foreign or (rows and _tokens(tokenizer) < ROOM * rows) else []


@functools.cache
def _tokens(path: Path) -> int:
    """Return how many tokens a tokenizer.json names."""
    found = json.loads(path.read_text(encoding="utf-8"))
    model = found["model"]["vocab"]
    names = set(model) if isinstance(model, dict) else {name for name, _ in model}
    return len(names | {token["content"] for token in found["added_tokens"]})
