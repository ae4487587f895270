"""Parts of a phase with keys of their own, and what keys say whose sentence depends on others."""

from typing import Annotated

from pydantic import Field, model_validator

from thaw.core.phrases import plural
from thaw.schema.keys import ConfigModel, Key, clauses, written


class UnfreezeConfig(ConfigModel):
    """Gradual unfreezing: training begins with the head; in stages, further layers from the top train with it."""

    layers: Annotated[
        int, Key(lambda layers, *_: f"{plural(layers, 'more layer')} from the top in each stage", unit="layers")
    ] = Field(1, ge=1, description="number of further layers in each stage")
    epochs: Annotated[int, Key(lambda epochs, *_: f"{plural(epochs, 'epoch')} per stage", unit="epochs")] = Field(
        1, ge=1, description="length of each stage but the last, which has the phase's own epochs"
    )
    restart: Annotated[
        bool, Key({False: "one schedule over all stages", True: "the schedule restarting in each stage"})
    ] = Field(False, description="restart the schedule in each stage; otherwise one schedule spans the phase")


class EarlyStoppingConfig(ConfigModel):
    """When a phase ends before its last epoch; checked after each epoch, either condition is enough."""

    gap: Annotated[
        float | None, Key("early stopping when training and validation score differ by more than {}", unit="score, 0-1")
    ] = Field(None, gt=0, description="stop when training and validation score differ by more than this")
    score: Annotated[float | None, Key("early stopping when the validation score reaches {}", unit="score, 0-1")] = (
        Field(None, description="stop when the validation score reaches this")
    )

    @model_validator(mode="after")
    def _says_something(self):
        if self.gap is None and self.score is None:
            raise ValueError("early_stopping needs gap or score, as {gap: 0.02}")
        return self


def say_rate(rate, phase, context) -> str:
    """Say the learning rate; where layers have rates of their own it is the head's only."""
    if phase.layer_rates:
        return "" if phase.head_rate else f"head learning rate {written(rate)}"
    return f"learning rate {written(rate)}"


def say_epochs(epochs, phase, context) -> str:
    """Say how many epochs there are, and of which part of a phase."""
    where = " in the last stage" if phase.unfreeze else " for each part" if phase.one_by_one else ""
    return plural(epochs, "epoch") + where


def say_clip(norm, phase, context) -> str:
    """Say how gradients are clipped."""
    if norm is None:
        return "no gradient clipping"
    of = "the norm of each tensor's gradient" if phase.clip_each else "gradient norm"
    return f"{of} clipped at {written(norm)}"


def say_inserted(insert, phase, context) -> str:
    """Say what is put into which layers."""
    if insert is None:
        return ""
    kind, where, *options = clauses(insert, context)
    return f"Inserts and trains {', '.join([f'{kind} {where}', *options])}."


def say_unfreezing(unfreeze, phase, context) -> str:
    """Say in which stages a phase unfreezes layers."""
    return unfreeze and f"Gradual unfreezing: the head alone first, then {', '.join(clauses(unfreeze, context))}."
