"""A scikit-learn pipeline on the means of all layers side by side: encode once, scale, fit, choose C on validation.

N rows, L layers, d width.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from transformers import AutoModel, AutoTokenizer

from .common import Clock, device, run
from .layer_states import layers


def main(job: dict, clock: Clock) -> dict:
    """Fit each cell at each strength, and score the best by validation on test.

    Each cell has `task`, `name` and the `rows` of train that it reads; Thaw's strength s is C = 2 / (N s) for two
    classes, which have a single row of weights here, and 1 / (N s) for more.
    """
    with clock("load"):
        tokenizer = AutoTokenizer.from_pretrained(job["encoder"])
        encoder = AutoModel.from_pretrained(job["encoder"], add_pooling_layer=False).eval().to(device())
    found = []
    for name, task in job["tasks"].items():
        with clock("features"):
            read = {split: layers(task, split, tokenizer, encoder) for split in ("train", "validation", "test")}
            vectors = {split: np.concatenate(list(states), 1) for split, (states, _) in read.items()}  # [N, (L + 1) d]
            labels = {split: targets for split, (_, targets) in read.items()}
        for cell in (cell for cell in job["cells"] if cell["task"] == name):
            rows, classes = cell["rows"], len(task["labels"])
            fits = []
            for strength in job["strengths"]:
                c = (2 if classes == 2 else 1) / (strength * len(rows))
                # for matrices this small all cores take longer than one
                with clock("train"), threadpool_limits(job["fit_threads"]):
                    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=1000))
                    pipeline.fit(vectors["train"][rows], labels["train"][rows])
                with clock("evaluate"):
                    fits.append((pipeline.score(vectors["validation"], labels["validation"]), -len(fits), pipeline))
            with clock("evaluate"):
                scores = {"test": max(fits)[2].score(vectors["test"], labels["test"])}
            found.append({"task": name, "cell": cell["name"], "scores": scores})
    return {"cells": found}


if __name__ == "__main__":
    run(main)
