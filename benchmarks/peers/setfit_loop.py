"""SetFit with its defaults: a sentence encoder fine-tuned on pairs of rows, then LogisticRegression on its vectors."""

from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments

from .common import Clock, read_rows, run


def main(job: dict, clock: Clock) -> dict:
    """Train a model for each cell, and score it on test. A cell has `task`, `name`, `seed` and the `rows` it reads."""
    found = []
    for cell in job["cells"]:
        task = job["tasks"][cell["task"]]
        texts, labels = read_rows(task, "train")
        with clock("load"):
            model = SetFitModel.from_pretrained(job["encoder"])
        with clock("train"):
            chosen = {"text": [texts[i] for i in cell["rows"]], "label": [labels[i] for i in cell["rows"]]}
            settings = TrainingArguments(output_dir=job["out"], seed=cell["seed"], save_strategy="no", report_to="none")
            Trainer(model, args=settings, train_dataset=Dataset.from_dict(chosen)).train()
        with clock("evaluate"):
            texts, labels = read_rows(task, "test")
            right = [int(answer) == label for answer, label in zip(model.predict(texts), labels, strict=True)]
        found.append({"task": cell["task"], "cell": cell["name"], "scores": {"test": sum(right) / len(right)}})
    return {"cells": found}


if __name__ == "__main__":
    run(main)
