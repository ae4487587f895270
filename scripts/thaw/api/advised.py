"""From texts and labels in Python to the answer of `thaw advise`, and a classifier with scikit-learn's methods."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from thaw.core.errors import UserError
from thaw.decision import record
from thaw.decision.decide import Decision
from thaw.exporting.standalone_model import Model
from thaw.outputs.tables.recommendation import line

NAME = "advised"  # of the data, the experiment and the model in the working folder


class Classifier:
    """An exported model with scikit-learn's methods; classes_ are the labels as they were given."""

    def __init__(self, folder: Path, labels: list):
        """Load an exported model. Args: its folder; the labels that it was trained on."""
        self.model = Model(folder)
        given = {str(label): label for label in labels}
        self.classes_ = np.array([given[label] for label in self.model.labels])

    def predict_proba(self, texts) -> np.ndarray:
        """Return the probability of each class for each text, [texts, classes]."""
        return np.array([made["probabilities"] for made in self.model.predict_with_probabilities(texts)])

    def predict(self, texts) -> np.ndarray:
        return self.classes_[self.predict_proba(texts).argmax(1)]


@dataclass(frozen=True)
class Advice:
    """What to take: the decision, the table of all arms, and the fitted model, None where no encoder is taken."""

    decision: Decision
    table: pd.DataFrame
    model: Classifier | None


def advise(texts, labels, *options: str, encoder: str = "minilm", folder: str | Path = "thaw_advised") -> Advice:
    """Run `thaw advise` on texts and labels, and return its answer; what it prints is printed.

    Args: as many texts as labels; further options of the command, as "--time", "10m"; an encoder's id, owner/name of
    the Hub or folder; a working folder for the data, the runs and the model. A second call on the same data goes on
    from there.
    """
    folder, labels = Path(folder).resolve(), list(labels)
    folder.mkdir(parents=True, exist_ok=True)
    data = pd.DataFrame({"text": list(texts), "label": [str(label) for label in labels]})
    file = folder / f"{NAME}.parquet"
    if file.exists() and not data.equals(pd.read_parquet(file)):
        raise UserError(f"{folder}: holds the advice on other texts and labels; name another folder")
    data.to_parquet(file)
    draft = ("--text", "text", "--label", "label", "--type", "classification", "--encoder", encoder)
    _thaw(folder, "advise", file.name, *draft, *options)
    (answer,) = record.read(folder / "results/outputs" / NAME)
    taken = answer.cell_of(answer.decision.taken)
    if taken and not (folder / "model").exists():
        _thaw(folder, "export", f"{NAME}.yaml", "model")
    rows = [{"name": answer.names[arm.name]} | line(answer, arm) for arm in answer.decision.arms]
    table = pd.DataFrame(rows).astype({"taken": bool})
    return Advice(answer.decision, table, Classifier(folder / "model", labels) if taken else None)


def _thaw(folder: Path, *words: str) -> None:
    """Run a command of Thaw in a folder and print what it prints, in a notebook too."""
    command = [sys.executable, "-u", "-m", "thaw.cli.main", *words]
    with subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
    if process.returncode:
        raise UserError(f"thaw {words[0]} in {folder} stopped; what it printed says why")
