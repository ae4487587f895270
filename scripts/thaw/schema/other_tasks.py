"""What a phase learns from other tasks in addition to its own."""

from pydantic import Field

from thaw.core.phrases import listing
from thaw.declarations.objective_kinds import OBJECTIVES
from thaw.schema.entry import Id
from thaw.schema.keys import ConfigModel


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


def check_losses(phase) -> None:
    """Find out whether what sets the loss of a phase goes with its other settings; a ValueError if not."""
    if phase.auxiliary and list(phase.train) == ["head"] and not phase.insert:
        raise ValueError("auxiliary adapts the encoder; let some of it train, as train: [head, {top: 2}]")
    known = ("auxiliary", "distil", *OBJECTIVES)
    named = [name for name in known if getattr(phase, name)]
    if len(named) > 1:
        raise ValueError(f"{named[0]} sets the loss of a phase, as {listing(known)} do; leave all but one out")
