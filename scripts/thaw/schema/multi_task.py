"""Several tasks that train one encoder: which they are, and how often each is drawn.

Sources: MT-DNN (Liu et al. 2019), BAM (Clark et al. 2019), projected attention layers (Stickland and Murray 2019).
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from thaw.core.errors import UserError
from thaw.core.phrases import listing
from thaw.declarations.objective_kinds import objectives_of
from thaw.schema.entry import Id
from thaw.schema.keys import ConfigModel

FAR_APART = 100  # times as many rows: which tasks an encoder then learns is a choice, and not a default
# What a spec says of each task of a training, where tasks differ; all else they share.
OF_A_TASK = ("task", "head", "head_version", "unlabelled", "data", "features", "also", "teacher")
OTHERS = ("auxiliary", "multi_task")  # keys of the spec of a training that list its other tasks, and how they are drawn


class MultiTaskConfig(ConfigModel):
    """One encoder that several tasks train in turn: each update has a batch of one task, whose head it trains too."""

    tasks: list[Id] = Field(min_length=1, description="the tasks; each has a head of its own")
    sampling: Literal["size", "power", "annealed", "even"] | None = Field(
        None,
        description="which task an update trains. size: each row once an epoch; power: drawn by the number of rows to "
        "a power; annealed: drawn by a power that falls from 1 to 0.2 over the epochs; even: all equally often. null: "
        "size, unless one task has a hundred times the rows of another",
    )
    power: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.5, description="sampling: power: the power; 0.5 is the square root, and BAM has 0.75"
    )
    own: Literal["member", "added", "left_out"] = Field(
        "member",
        description="what becomes of the run's own task. member: it is one of these, and one training makes the runs "
        "of all; added: it is trained with these, in a training of its own; left_out: these are trained without it, "
        "for a run that starts after it (leave-one-out)",
    )

    def meaningless(self) -> dict[str, str]:
        """Only one way of sampling has a power."""
        return {} if self.sampling == "power" else {"power": f"with sampling: {self.sampling or 'size'}"}

    @model_validator(mode="after")
    def _each_once(self):
        for task in self.tasks:
            if self.tasks.count(task) > 1:
                raise ValueError(f"tasks: {task} is named twice; name each task once")
        return self

    def of_run(self, task: str) -> list[str]:
        """Return the tasks of the training of a run: the first of them is the one whose job trains all."""
        return self.tasks if self.own == "member" else [task, *(other for other in self.tasks if other != task)]

    def exponent(self, epoch: int, epochs: int) -> float:
        """Return the power of the number of rows by which tasks are drawn. Args: an epoch from 1, of so many."""
        if self.sampling == "annealed":
            return 1 - 0.8 * (epoch - 1) / (epochs - 1)
        return {"power": self.power, "even": 0.0}.get(str(self.sampling), 1.0)

    def check_sizes(self, rows: dict[str, int], place: str) -> None:
        """Raise UserError for a task without rows, and for sizes that are far apart where sampling is not stated.

        Args: the number of training rows by task; where the strategy is said.
        """
        if empty := [task for task, count in rows.items() if not count]:
            raise UserError(f"{place}: {empty[0]} has no training row; leave it out of tasks:")
        if not rows:
            return
        most, least = max(rows, key=rows.__getitem__), min(rows, key=rows.__getitem__)
        if self.sampling is None and rows[most] >= FAR_APART * rows[least]:
            raise UserError(
                f"{place}: {most} has {rows[most]} training rows and {least} has {rows[least]}; say sampling: size, "
                "power, annealed or even"
            )


def check_strategy(strategy) -> None:
    """Find out whether what a strategy says goes with several tasks; a ValueError if not. Args: a StrategyConfig."""
    if (several := strategy.multi_task) is None:
        return
    for name, why in (
        ("origin", "further pretraining reads the text of one task"),
        ("search", "a search chooses by the validation of one task"),
        ("rates_from", "a search has chosen by the validation of one task"),
    ):
        if getattr(strategy, name):
            raise ValueError(f"multi_task: {why}; leave out {'from' if name == 'origin' else name}")
    if strategy.pairs == "best" or strategy.fits_to_convergence:
        raise ValueError("multi_task: lbfgs fits one head alone, where no encoder is shared; take adamw")
    for phase in strategy.phases:
        if named := list(objectives_of(phase)):
            raise ValueError(f"multi_task: {listing(named)} is for a run of one task; leave it out")
        if several.sampling == "annealed" and phase.updates is None and phase.epochs == 1:
            raise ValueError("multi_task: sampling: annealed goes over epochs, and a phase has one; take power")


def of_task(spec: dict, entry: dict) -> dict:
    """Return what the spec of a training says of one of its other tasks, in the form of the spec of a run."""
    return {key: value for key, value in spec.items() if key not in (*OF_A_TASK, *OTHERS)} | entry
