"""What a phase learns from another task in addition to its own: texts without labels (CORAL), or auxiliary tasks."""

from typing import Annotated

from pydantic import Field

from thaw.core.phrases import listing
from thaw.schema.entry import Id
from thaw.schema.keys import ConfigModel, Key, clauses, format_value


class CoralConfig(ConfigModel):
    """CORAL (Sun and Saenko 2016): covariances of source and target are brought near each other."""

    to: Annotated[
        Id, Key(lambda id, _, context: f"CORAL towards the training texts of {context.name('tasks', id)}")
    ] = Field(description="a task among the transfer_sets of each task that the strategy is run on")
    weight: Annotated[float, Key("weight {}")] = Field(1.0, gt=0, description="of the distance in the loss")


def _say_tasks(tasks: list[str], _, context) -> str:
    names = listing([context.name("tasks", task) for task in tasks])
    return f"with each batch one of an auxiliary task ({names}, but for the task itself)"


def _say_power(power: float, *_) -> str:
    if power == 0:
        return "all auxiliary tasks drawn equally often"
    return "drawn by the number of its training examples" + (
        "" if power == 1 else f" to the power {format_value(power)}"
    )


class AuxiliaryConfig(ConfigModel):
    """Auxiliary tasks (Caruana 1997): each update adds the loss of one of them, with a head of its own, on a batch."""

    tasks: Annotated[list[Id], Key(_say_tasks)] = Field(
        min_length=1,
        description="tasks of which one is drawn for each update, with as many training examples as the batch has; the "
        "run's own is left out; each has a new head, of the kind of the run's, which is not kept",
    )
    power: Annotated[float, Key(_say_power)] = Field(
        1.0,
        ge=0,
        le=1,
        description="a task is drawn with a probability that goes by its number of training examples to this power; 0: "
        "all equally often",
    )
    weight: Annotated[float, Key("weight {}")] = Field(1.0, gt=0, description="of an auxiliary task's loss")


def say_other(other: CoralConfig | AuxiliaryConfig | None, _, context) -> str:
    """Say what a phase learns from another task."""
    return other and ", ".join(clauses(other, context))


def check_other_tasks(phase) -> None:
    """Find out whether what a phase learns from other tasks goes with its other settings; a ValueError if not."""
    named = [name for name in ("coral", "auxiliary") if getattr(phase, name)]
    for name in named:
        if list(phase.train) == ["head"] and not phase.insert:
            raise ValueError(f"{name} adapts the encoder; let some of it train, as train: [head, {{top: 2}}]")
        if phase.distil or phase.replace or len(named) > 1:
            raise ValueError(
                f"{name} sets the loss of a phase, as coral, auxiliary, distil and replace do; leave all but one out"
            )
