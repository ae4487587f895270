"""The answers of an experiment as one file of values, which report, command line and model card read."""

import contextlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from thaw.compute_cost.deployment import Deployment
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.decision.decide import Decision
from thaw.evaluation.calibration import Calibration
from thaw.statistics.bootstrap import Interval

# why an arm is left out
NOT_TRAINED, NO_PREDICTIONS, UNDEFINED, OTHER_ROWS = "not_trained", "no_predictions", "undefined", "other_rows"
NOT_SELECTED = "not_selected"  # of what other tasks of the experiment have

VERSION = 5  # of the file; raised with its fields
ADVISED = "advised.json"  # what `thaw advise` writes into the folder of an experiment's outputs


@dataclass(frozen=True)
class CurvePoints:
    """Two points of the learning curve of a cross-validated arm: out-of-fold scores with half of the rows, and all."""

    arm: str
    half_rows: int
    half_score: float
    rows: int
    score: float


@dataclass(frozen=True)
class TaskAnswer:
    """The answer for one task in one group of runs: those that share subset, encoder and head.

    title and metric: of the task, in print; names: of the arms, in print. points: by arm (strategy, variant), none for
    a baseline. test: by split the score of what is taken with its 95 % CI, None where it is undefined. left_out: (arm,
    why). single_class: whether validation has one class alone. curve: of the best cross-validated arm. calibration: by
    arm, of those that predict probabilities of classes. deployment: by arm, of those with an encoder.
    """

    task: str
    subset: str
    encoder: str
    head: str
    title: str
    metric: str
    decision: Decision
    names: dict[str, str]
    points: dict[str, tuple[str, str]]
    test: dict[str, Interval | None]
    left_out: tuple[tuple[str, str], ...] = ()
    single_class: bool = False
    curve: CurvePoints | None = None
    calibration: dict[str, Calibration] = field(default_factory=dict)
    deployment: dict[str, Deployment] = field(default_factory=dict)

    def cell_of(self, arm: str) -> dict[str, str] | None:
        """Return the cell of an arm's runs; None of a baseline."""
        point = self.points.get(arm)
        place = {"task": self.task, "subset": self.subset, "encoder": self.encoder, "head": self.head}
        return place | {"strategy": point[0], "variant": point[1]} if point else None


def write(path, answers: list[TaskAnswer]) -> None:
    write_json(path, {"version": VERSION, "answers": entries(answers)})


def entries(answers: list[TaskAnswer]) -> list[dict]:
    return [asdict(answer) for answer in answers]


def read(folder: Path) -> list[TaskAnswer]:
    """Return the latest answers of an experiment, of its table or of `thaw advise`; none where there are none.

    Args: the folder of its outputs. Raises UserError for a file of another version of Thaw.
    """
    tables = layout.output(folder, "table", "any").parent.glob("*.json")
    files = [*(file for file in tables if not file.name.endswith(".failures.json")), folder / ADVISED]
    there = sorted((file for file in files if file.exists()), key=lambda file: file.stat().st_mtime_ns)
    return next((answers for file in reversed(there) if (answers := read_file(file))), [])


def folders(results: Path) -> dict[str, Path]:
    """Return by experiment the folder of its outputs, where it has a report or answers of `thaw advise`."""
    report = layout.pattern("report")
    files = [*results.glob(report), *results.glob(str(Path(report).with_name(ADVISED)))]
    return {file.parent.name: file.parent for file in sorted(files)}


def answers_that_take(run: Path, results: Path) -> list[tuple[str, TaskAnswer]]:
    """Return the experiments whose answer takes the strategy of a run, each with the answer. Args: its folder."""
    try:
        cell = layout.names_in_folder("train", run.relative_to(results))
    except ValueError:  # a run that was put elsewhere is in no experiment
        return []
    found = []
    for name, folder in folders(results).items():
        with contextlib.suppress(UserError):  # of another version: what it says is not known
            for answer in read(folder):
                taken = answer.cell_of(answer.decision.taken)
                if taken and all(cell[key] == value for key, value in taken.items()):
                    found.append((name, answer))
    return found


def read_file(file: Path) -> list[TaskAnswer]:
    """Return the answers in a JSON file. Raises UserError as `read_output` and `built` do."""
    return built(list[TaskAnswer], read_output(file).get("answers"), file)


def read_output(path: Path) -> dict:
    """Return the values of a table, figure or answers. Raises UserError for a file of another version of Thaw."""
    content = read_json(path)
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise UserError(f"{path} is of another version of Thaw; delete it and run the experiment again")
    return content


def built(kind: Any, values: Any, path: Path) -> Any:
    """Return a file's values as a type. Raises UserError where they are damaged."""
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise UserError(f"{path} is damaged at {place or 'answers'}; delete it and run the experiment again") from None
