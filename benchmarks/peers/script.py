"""What one writes for a first score: sentence-transformers, and scikit-learn's logistic regression on its vectors.

A fifth of the rows of a CSV file is the test. Cross-validation on the others chooses the strength.
"""

import csv
from pathlib import Path

from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import train_test_split

from .common import Clock, run


def main(job: dict, clock: Clock) -> dict:
    """Return the accuracy on test. The job has the `file` and the column of its `text`."""
    with clock("load"):
        with open(Path(job["file"]), newline="") as file:
            rows = list(csv.DictReader(file))
        model = SentenceTransformer(job["encoder"])
    with clock("features"):
        vectors = model.encode([row[job["text"]] for row in rows])
    labels = [row["label"] for row in rows]
    train, test, known, hidden = train_test_split(vectors, labels, test_size=0.2, random_state=1, stratify=labels)
    with clock("train"):
        fitted = LogisticRegressionCV(cv=5, max_iter=1000).fit(train, known)
    return {"score": fitted.score(test, hidden)}


if __name__ == "__main__":
    run(main)
