"""What a phase learns from another task in addition to its own: texts without labels (CORAL), or auxiliary tasks."""

from pydantic import Field

from thaw.schema.entry import Id
from thaw.schema.keys import ConfigModel


class CoralConfig(ConfigModel):
    """CORAL (Sun and Saenko 2016): covariances of source and target are brought near each other."""

    to: Id = Field(description="a task among the transfer_sets of each task that the strategy is run on")
    weight: float = Field(1.0, gt=0, description="of the distance in the loss")


class AuxiliaryConfig(ConfigModel):
    """Auxiliary tasks (Caruana 1997): each update adds the loss of one of them, with a head of its own, on a batch."""

    tasks: list[Id] = Field(
        min_length=1,
        description="tasks of which one is drawn for each update, with as many training examples as the batch has; the "
        "run's own is left out; each has a new head, of the kind of the run's, which is not kept",
    )
    power: float = Field(
        1.0,
        ge=0,
        le=1,
        description="a task is drawn with a probability that goes by its number of training examples to this power; 0: "
        "all equally often",
    )
    weight: float = Field(1.0, gt=0, description="of an auxiliary task's loss")


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
