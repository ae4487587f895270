"""sentence-transformers: frozen sentence vectors, with heads of scikit-learn on them.

The recipe of its documentation: `encode` once, then LogisticRegression; and MLPClassifier in the place of the head with
a hidden layer; or gradient boosting on the rows of each cell. A logistic regression that converges has neither rates
nor seeds: its strengths stand in their place.
"""

import numpy as np
from sentence_transformers import SentenceTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from .common import Clock, compute, read_rows, run

STRENGTHS = [0.1, 1.0, 10.0, 100.0]  # scikit-learn's C


def vectors(model: SentenceTransformer, task: dict, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a split's vectors and labels; of a pair [u; v; |u - v|; u * v]."""
    texts, labels = read_rows(task, split)
    if len(task["columns"]) == 1:
        return model.encode(texts), np.array(labels)
    u, v = (model.encode(list(column)) for column in zip(*texts, strict=True))
    return np.concatenate([u, v, abs(u - v), u * v], 1), np.array(labels)


def heads(job: dict) -> list[tuple[dict, object]]:
    """Return the heads of the grid, each with what tells it apart."""
    found = [({"head": "linear", "strength": c}, LogisticRegression(C=c, max_iter=1000)) for c in STRENGTHS]
    for cell in job["cells"]:
        if cell["head"] == "mlp":
            epochs = sum(stage["epochs"] for stage in cell["phases"][0]["stages"])
            rate, size = cell["phases"][0]["rate"], cell["batch_size"]
            settings = {"max_iter": epochs, "batch_size": size, "learning_rate_init": rate, "alpha": 0.0}
            model = MLPClassifier(300, random_state=cell["seed"], **settings)
            found.append(({"head": "mlp", "rate": rate, "seed": cell["seed"]}, model))
    return found


def main(job: dict, clock: Clock) -> dict:
    """Encode each task once, fit all heads, and score each; with `boosting` one on the `rows` of each cell instead."""
    with clock("load"):
        model = SentenceTransformer(job["encoder"])
    found = []
    for name, task in job["tasks"].items():
        with clock("features"), compute(job):
            splits = {split: vectors(model, task, split) for split in ("train", "validation", "test")}
        fits = [(what, head, slice(None)) for what, head in ([] if job.get("boosting") else heads(job))]
        for cell in job["cells"] if job.get("boosting") else []:
            boosting = HistGradientBoostingClassifier(random_state=cell["seed"])
            fits.append(({"cell": cell["name"], "seed": cell["seed"]}, boosting, cell["rows"]))
        for what, head, rows in fits:
            # for matrices this small all cores take longer than one
            with clock("train"), threadpool_limits(1):
                head.fit(*(column[rows] for column in splits["train"]))
            with clock("evaluate"):
                scores = {split: head.score(*splits[split]) for split in ("validation", "test")}
            found.append(what | {"task": name, "scores": scores})
    return {"cells": found}


if __name__ == "__main__":
    run(main)
