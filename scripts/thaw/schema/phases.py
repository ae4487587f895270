"""One phase of a strategy: what trains, at which rates, on which schedule, until when."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from thaw.schema.entry import Rate, Share
from thaw.schema.insert import InsertConfig

PLANNED = {"components", "boundary", "reads", "stages"}  # what the plan adds to a phase in a spec


def of_phase(searched: dict, number: int) -> dict:
    """Return what searched settings say of one phase, counted from 1: `rate` is all phases', `2.rate` the second's."""
    own = {key.removeprefix(f"{number}."): value for key, value in searched.items() if key.startswith(f"{number}.")}
    return {key: value for key, value in searched.items() if "." not in key} | own


class UnfreezeConfig(BaseModel):
    """Gradual unfreezing: in stages, from the top, what is thawed stays thawed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    layers: int = Field(1, ge=1, description="how many more layers train in each further stage")
    epochs: int = Field(1, ge=1, description="of each stage but the last, which has the phase's own epochs")
    restart: bool = Field(False, description="the schedule begins anew with each stage; else it spans the phase")


class EarlyStoppingConfig(BaseModel):
    """When a phase ends before its last epoch, looked at after each epoch; either is enough."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    gap: float | None = Field(None, gt=0, description="training and validation score differ by more than this")
    score: float | None = Field(None, description="the validation score reaches this")

    @model_validator(mode="after")
    def _says_something(self):
        if self.gap is None and self.score is None:
            raise ValueError("stop needs gap or score, as {gap: 0.02}")
        return self


class PhaseConfig(BaseModel):
    """Which parameters train, at which rates, on which schedule, until when."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    train: list[str | dict[str, int | str | dict[str, list[int]]]] = Field(
        [], description="selectors: head, all, embeddings, {top: k}, {top: k, only: bias}, {only: bias}"
    )
    insert: InsertConfig | None = Field(
        None, description="small modules put into frozen layers, which train instead of them"
    )
    unfreeze: UnfreezeConfig | None = Field(
        None, description="what trains is thawed in stages: head, then layer by layer"
    )
    one_by_one: bool = Field(False, description="what trains trains in turn: head, then from below, at last together")
    reinit_top: int = Field(0, ge=0, description="so many layers from the top begin as the model began before training")
    optimizer: Literal["adamw", "bert_adam", "lbfgs"] = Field(
        "adamw", description="bert_adam: without bias correction; lbfgs: a linear head alone, to convergence"
    )
    rate: Rate = Field(2e-5, description="peak learning rate")
    head_rate: Rate | None = Field(None, description="the head's own peak rate; else rate")
    layer_decay: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0, description="rate of a layer by that of the one above"
    )
    layer_rates: list[Rate] = Field([], description="peak rates from the top layer down, the last for all below")
    schedule: Literal["linear", "constant", "cosine", "slanted_triangular"] = "linear"
    warmup: float = Field(0.1, ge=0, lt=1, description="share of the steps over which the rate rises")
    warmup_of: Literal["phase", "epoch"] = Field("phase", description="the steps that warmup is a share of")
    cut_frac: Share = Field(0.1, description="slanted_triangular: share of the steps over which the rate rises")
    ratio: float = Field(32.0, gt=1, description="slanted_triangular: highest rate by lowest")
    epochs: int = Field(3, ge=1, le=1000)
    batch_size: int = Field(32, ge=1)
    order: int | None = Field(None, ge=0, description="seed of the order of the rows; unless stated the run's own")
    patience: int | None = Field(None, ge=1, description="stop after so many epochs without a better validation")
    stop: EarlyStoppingConfig | None = Field(
        None, description="stop by a gap between training and validation, or by a score"
    )
    pick: Literal["last", "best"] = Field("last", description="the epoch whose weights are kept, best by validation")
    weight_decay: float = Field(0.01, ge=0, description="on matrices; biases and norms have none")
    l2_to_start: float = Field(
        0.0,
        ge=0,
        description="half of it times the squared distance of the encoder's weights "
        "to those that the phase began with is added to the loss",
    )
    clip: float | None = Field(1.0, gt=0, description="largest gradient norm over the trained parameters")
    clip_each: bool = Field(False, description="clip holds for each tensor by itself, as in some papers' BertAdam")
    precision: Literal["fp32", "tf32", "bf16"] = Field(
        "fp32",
        description="bf16: autocast of the trained part, but for a head alone on vectors that stay the same; tf32: a "
        "GPU multiplies with ten bits, where it can",
    )
    frozen_dropout: bool = Field(False, description="dropout stays on in frozen layers, as in some papers: no cache")
    l2: list[Annotated[float, Field(ge=0)]] = Field(
        [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0], min_length=1, description="lbfgs: strengths, chosen on validation"
    )

    @model_validator(mode="after")
    def _keys_of_the_optimizer(self):
        known = {"train", "optimizer", "l2"} if self.optimizer == "lbfgs" else set(type(self).model_fields) - {"l2"}
        self._only(known, f"optimizer {self.optimizer}")
        return self

    @model_validator(mode="after")
    def _keys_that_belong_together(self):
        slanted = self.schedule == "slanted_triangular"
        absent = {"warmup", "warmup_of"} if slanted else {"cut_frac", "ratio"}
        self._only(self.model_fields_set - absent, f"schedule {self.schedule}")
        if self.layer_rates and self.layer_decay < 1:
            raise ValueError("layer_rates and layer_decay both say what each layer's rate is; leave one out")
        if self.unfreeze and self.one_by_one:
            raise ValueError("unfreeze and one_by_one are two ways to thaw; leave one out")
        if self.reinit_top and (self.unfreeze or self.one_by_one):
            raise ValueError("reinit_top needs its layers to train from the first step; leave out the gradual thawing")
        return self

    def _only(self, known: set[str], where: str) -> None:
        """Raise ValueError for a key that is given and has no meaning here."""
        for key in sorted(self.model_fields_set - known):
            raise ValueError(f"{key} has no meaning with {where}; leave it out")

    def changed(self, settings: dict) -> "PhaseConfig":
        """Return the phase with some other settings; values that no phase can have are a ValueError."""
        return type(self).model_validate(self.model_dump(exclude_unset=True) | settings)

    @classmethod
    def of_spec(cls, entry: dict) -> "PhaseConfig":
        """Return the settings of a phase as it stands in a spec, without what the plan added to them."""
        return cls.model_validate({key: value for key, value in entry.items() if key not in PLANNED})

    @classmethod
    def stages_of_spec(cls, entry: dict) -> list[dict]:
        """Return the stages of a phase as it stands in a spec, each with its `epochs`; a phase without any is one."""
        *early, last = entry.get("stages", [entry])
        return [*early, last | {"epochs": cls.of_spec(entry).epochs}]
