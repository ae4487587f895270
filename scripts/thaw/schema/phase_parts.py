"""Parts of a phase with keys of their own."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from thaw.core import plugins
from thaw.core.phrases import listing
from thaw.declarations.lazy_import import LazyImport
from thaw.declarations.objective_kinds import OBJECTIVES
from thaw.schema.entry import Id
from thaw.schema.keys import ConfigModel, Key


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


Fraction = Annotated[float, Field(gt=0, le=1)]


class UnfreezeConfig(ConfigModel):
    """Gradual unfreezing: training begins with the head; in stages, further layers from the top train with it."""

    layers: Annotated[int, Key(unit="layers")] = Field(1, ge=1, description="number of further layers in each stage")
    epochs: Annotated[int, Key(unit="epochs")] = Field(
        1, ge=1, description="length of each stage but the last, which has the phase's own epochs"
    )
    updates: Annotated[int | None, Key(unit="updates")] = Field(
        None,
        ge=1,
        description="of a phase with updates: those of each stage but the last, which has the rest; null: equal shares",
    )
    restart: bool = Field(
        False, description="restart the schedule in each stage; otherwise one schedule spans the phase"
    )

    def meaningful(self) -> set[str]:
        """Return the keys that are read: stages have epochs or updates."""
        return set(type(self).model_fields) - ({"epochs"} if self.updates else set())

    def refused_with(self, name: str) -> str:
        """Return the setting under which a key has no meaning."""
        return f"with updates: {self.updates}"


class EarlyStoppingConfig(ConfigModel):
    """When a phase ends before its last epoch; checked after each epoch, either condition is enough."""

    gap: Annotated[float | None, Key(unit="score, 0-1")] = Field(
        None, gt=0, description="stop when training and validation score differ by more than this"
    )
    score: Annotated[float | None, Key(unit="score, 0-1")] = Field(
        None, description="stop when the validation score reaches this"
    )

    @model_validator(mode="after")
    def _says_something(self):
        if self.gap is None and self.score is None:
            raise ValueError("early_stopping needs gap or score, as {gap: 0.02}")
        return self


@dataclass(frozen=True)
class SelectionKind(LazyImport):
    """A way of selecting features, which a plug-in has, and the keys of `select` that it reads.

    source: its code, from vectors [N, d], targets, number of classes, settings and fitted(features), the head on some
    features with the best strength, to the features among which some are taken, by index, and their relevance.
    """

    keys: set[str]


SELECTIONS: dict[str, SelectionKind] = plugins.shipped("SELECTIONS")


class SelectConfig(ConfigModel):
    """Which features a linear head is fitted on; which fraction of them, validation chooses."""

    by: Literal[tuple(SELECTIONS)] = Field(  # type: ignore[valid-type]
        description="group_lasso: by relevance in a group lasso (Head2Toe, Evci et al. 2022); clusters: one neuron of "
        "each cluster, and of these by weight (Dalvi et al. 2020)"
    )
    penalty: float = Field(
        0.1, gt=0, le=0.9, description="group_lasso: penalty, as a share of the least one that leaves no feature"
    )
    correlation: float = Field(
        0.7, gt=0, lt=1, description="clusters: least mean correlation of the neurons of a cluster, in absolute value"
    )
    fractions: list[Fraction] = Field(
        [0.02, 0.05, 0.1, 0.25, 0.5, 1.0],
        min_length=1,
        description="fractions of the features, of which validation chooses one",
    )

    def meaningful(self) -> set[str]:
        """Return the keys that the way of selecting reads."""
        return {"by", "fractions"} | SELECTIONS[self.by].keys

    def refused_with(self, name: str) -> str:
        """Return the setting under which a key has no meaning."""
        return f"with by: {self.by}"


def check_length(updates: int | None, judge: int | None, unfreeze: UnfreezeConfig | None) -> None:
    """Raise ValueError where evaluations or stages do not go with the length of a phase."""
    if judge and updates and judge > updates:
        raise ValueError(f"evaluations: {judge} do not fit into updates: {updates}; say {updates} or fewer")
    if unfreeze is None:
        return
    if updates is None and unfreeze.updates:
        raise ValueError("gradual_unfreezing: updates is for a phase with updates; this one has epochs, so say epochs")
    if updates is not None and "epochs" in unfreeze.model_fields_set:
        raise ValueError("gradual_unfreezing: epochs is for a phase with epochs; this one has updates, so say updates")
