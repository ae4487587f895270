"""A scikit-learn pipeline on the means of all layers side by side: encode once, scale, fit, choose C on validation.

N rows, L layers, d width.
"""

from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from transformers import AutoModel, AutoTokenizer

from .common import Clock, device, run
from .layer_states import layers


def main(job: dict, clock: Clock) -> dict:
    """Fit each cell at each strength, and score the best by validation on test.

    Each cell has `task`, `name` and the `rows` of train that it reads; Thaw's strength s is C = 2 / (N s) for two
    classes, which have a single row of weights here, and 1 / (N s) for more. With `tolerances` it returns by tolerance
    the objectives of all fits instead, and writes the vectors of each cell for ours.
    """
    with clock("load"):
        tokenizer = AutoTokenizer.from_pretrained(job["encoder"])
        encoder = AutoModel.from_pretrained(job["encoder"], add_pooling_layer=False).eval().to(device())
    found, objectives = [], {str(tolerance): [] for tolerance in job.get("tolerances", [])}
    for name, task in job["tasks"].items():
        with clock("features"):
            read = {split: layers(task, split, tokenizer, encoder) for split in ("train", "validation", "test")}
            vectors = {split: np.concatenate(list(states), 1) for split, (states, _) in read.items()}  # [N, (L + 1) d]
            labels = {split: targets for split, (_, targets) in read.items()}
        for cell in (cell for cell in job["cells"] if cell["task"] == name):
            rows, classes = cell["rows"], len(task["labels"])
            for tolerance, values in objectives.items():
                for strength in job["strengths"]:
                    c = (2 if classes == 2 else 1) / (strength * len(rows))
                    fit = pipeline(c, float(tolerance)).fit(vectors["train"][rows], labels["train"][rows])
                    loss = log_loss(labels["train"][rows], fit.predict_proba(vectors["train"][rows].astype(np.float64)))
                    penalty = np.square(fit[-1].coef_.astype(np.float64)).sum() / (2 * c * len(rows))
                    values.append(float(loss + penalty))
            if objectives:
                for split in vectors:
                    chosen = rows if split == "train" else slice(None)
                    np.save(Path(job["features"]) / f"{cell['name']}.{split}.states.npy", vectors[split][None, chosen])
                    np.save(Path(job["features"]) / f"{cell['name']}.{split}.labels.npy", labels[split][chosen])
                continue
            fits = []
            for strength in job["strengths"]:
                c = (2 if classes == 2 else 1) / (strength * len(rows))
                # for matrices this small all cores take longer than one
                with clock("train"), threadpool_limits(job["fit_threads"]):
                    fit = pipeline(c, job["tolerance"]).fit(vectors["train"][rows], labels["train"][rows])
                with clock("evaluate"):
                    fits.append((fit.score(vectors["validation"], labels["validation"]), -len(fits), fit))
            with clock("evaluate"):
                scores = {"test": max(fits)[2].score(vectors["test"], labels["test"])}
            found.append({"task": name, "cell": cell["name"], "scores": scores})
    return {"cells": found, "objectives": objectives}


def pipeline(c: float, tolerance: float):
    """Return the pipeline that is fitted."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=c, tol=tolerance, max_iter=1000))


if __name__ == "__main__":
    run(main)
