"""Estimates: what a plan will cost in bytes and seconds, before anything runs. No torch.

Bytes follow from the catalogue's sizes before `prepare` and from the tokenised corpus after it. Seconds follow from
the multiplications of training and extraction, and from a matrix product timed on this machine a moment ago.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from thaw.plan import Plan
from thaw.records import read_json
from thaw.runs import BYTES

JOB_SECONDS = 7.0  # starting Python with torch and transformers, loading weights
EFFICIENCY = (
    0.35  # of a plain matrix product's rate, what training steps of MiniLM reached on a CPU, evaluation and all
)
TRAIN_SHARE = 0.6  # of a corpus' tokens, before its splits are counted
UNKNOWN = 100_000  # tokens of a corpus whose size is not in the catalogue and that is not tokenised yet


@dataclass(frozen=True)
class StoreEstimate:
    """One store: its boundaries, tokens, bytes, and whether the tokens were counted or estimated."""

    key: str
    boundaries: list[int]
    tokens: int | None
    exact: bool
    bytes: int


def stores(plan: Plan) -> list[StoreEstimate]:
    """Return what each store of the plan will take on disk: 2 or 4 bytes a number, one vector a token and boundary."""
    found = []
    for key, job in plan.jobs["features"].items():
        encoder, corpus, _ = key.split("/")
        width = plan.catalogue.get("encoders", encoder, "encoders").width
        tokens, exact = _tokens(plan, key, corpus)
        size = (tokens or 0) * width * BYTES[job.spec["dtype"]] * len(plan.boundaries[key])
        found.append(StoreEstimate(key, plan.boundaries[key], tokens, exact, size))
    return found


def _tokens(plan: Plan, key: str, corpus: str) -> tuple[int | None, bool]:
    """Return a store's tokens: counted where tokens.json is there, else from the catalogue, else None."""
    card = Path(plan.store(key)) / "tokens.json"
    if card.exists():
        return sum(split["tokens"] for split in read_json(card)["splits"].values()), True
    size = plan.catalogue.get("corpora", corpus, "corpora").size
    return (size.tokens if size else None), False


def _training(plan: Plan, key: str, corpus: str) -> tuple[float, float]:
    """Return the examples and tokens of a store's training split, counted or estimated."""
    card = Path(plan.store(key)) / "tokens.json"
    if card.exists():
        train = read_json(card)["splits"]["train"]
        return train["examples"], train["tokens"]
    size = plan.catalogue.get("corpora", corpus, "corpora").size
    return (TRAIN_SHARE * size.examples, TRAIN_SHARE * size.tokens) if size else (UNKNOWN / 20, UNKNOWN)


def machine_rate() -> float:
    """Time a product of two 1024 x 1024 matrices on all cores and return floating-point operations a second."""
    import numpy as np

    matrix = np.ones((1024, 1024), dtype=np.float32)
    best = float("inf")
    for _ in range(10):
        start = time.perf_counter()
        matrix @ matrix
        best = min(best, time.perf_counter() - start)
    return 2 * 1024**3 / best


def seconds(operations: float, jobs: int, threads: int, rate: float) -> float:
    """Return how long some jobs take with all cores busy: their operations, and their start-ups side by side."""
    together = max(1, (os.cpu_count() or 1) // threads)
    return operations / (rate * EFFICIENCY) + JOB_SECONDS * jobs / together


def training_operations(plan: Plan, spec: dict, key: str) -> float:
    """Return the floating-point operations of one run's training.

    Per token and layer, with width d and the usual inner width 4d: 24 d^2 operations forward, twice that backward.
    """
    encoder, corpus, _ = key.split("/")
    entry = plan.catalogue.get("encoders", encoder, "encoders")
    examples, tokens = _training(plan, key, corpus)
    share = min(1.0, spec["subset"].get("rows", examples) / examples)
    layer = 24 * entry.width**2 * tokens * share
    total = 0.0
    for phase in spec["phases"]:
        below = phase["boundary"] or 0
        trained = sum(component.startswith("layer.") for component in phase["components"])
        total += phase.get("epochs", 3) * layer * (entry.layers - below + 2 * trained)
    return total


def extraction_operations(plan: Plan, store: StoreEstimate) -> float:
    """Return the floating-point operations of the one pass that fills a store, up to its highest boundary."""
    entry = plan.catalogue.get("encoders", store.key.split("/")[0], "encoders")
    return 24 * entry.width**2 * (store.tokens or 0) * max(store.boundaries, default=0)
