"""The answers of an experiment as one file of values, which report, command line and model card read."""

from dataclasses import asdict, dataclass

from thaw.core.files import read_json, write_json
from thaw.decision.contrasts import Difference
from thaw.decision.decide import Decision, Judged


@dataclass(frozen=True)
class Answer:
    """The answer for one task in one group of runs.

    metric: of the scores; points: by arm its (strategy, variant), a baseline has none; test: by test split the score of
    what is taken with the ends of its 95 % interval, None where it is undefined; unit: of prices, as `seconds`;
    refused: what keeps arms out, one sentence each.
    """

    task: str
    subset: str
    encoder: str
    head: str
    metric: str
    decision: Decision
    points: dict[str, tuple[str, str]]
    test: dict[str, Difference | None]
    unit: str
    left_out: tuple[str, ...] = ()

    @property
    def cell(self) -> dict[str, str] | None:
        """The cell of the runs that are taken; None where that is a baseline."""
        point = self.points.get(self.decision.taken)
        place = {"task": self.task, "subset": self.subset, "encoder": self.encoder, "head": self.head}
        return point and place | {"strategy": point[0], "variant": point[1]}


def write(path, answers: list[Answer]) -> None:
    """Write answers as JSON."""
    write_json(path, {"answers": [asdict(answer) for answer in answers]})


def read(path) -> list[Answer]:
    """Read what `write` wrote."""
    return [_answer(entry) for entry in read_json(path)["answers"]]


def _answer(entry: dict) -> Answer:
    decision = entry["decision"]
    arms = [arm | {"difference": Difference(**arm["difference"]), "flags": tuple(arm["flags"])} for arm in decision["arms"]]
    return Answer(
        **entry
        | {
            "decision": Decision(**decision | {"arms": tuple(Judged(**arm) for arm in arms)}),
            "points": {name: tuple(point) for name, point in entry["points"].items()},
            "test": {split: made and Difference(**made) for split, made in entry["test"].items()},
            "left_out": tuple(entry["left_out"]),
        }
    )
