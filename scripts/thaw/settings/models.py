"""What is trained and how: encoders, heads, phases, strategies."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from thaw.settings.base import Entry, Id, Rate, Text, own_or

HEAD_KINDS = ("linear", "cosine")


class Encoder(Entry):
    """A pretrained model: weights, tokenizer, number of layers."""

    hub: Text | None = Field(None, description="Hub id")
    folder: Text | None = Field(None, description="local folder in Hugging Face form")
    package: Text | None = Field(None, description="name of an installed Python package that ships a model")
    path: str = Field("", description="folder of the model inside the package")
    revision: str | None = Field(None, description="Hub commit, where a source shows it; else resolved and recorded")
    weights: Literal["pretrained", "random"] = Field(
        "pretrained", description="random: the same architecture as it is before any training"
    )
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$", description="of the weights file, checked by fetch")
    layers: int = Field(gt=0)
    width: int = Field(gt=0)
    cased: bool
    objective: Text = Field(description="what it was pretrained to do")
    pretraining: list[str] = Field(min_length=1, description="corpora seen in pretraining")
    note: str | None = Field(None, description="a footnote for tables; never part of a spec")

    @model_validator(mode="after")
    def _one_source(self):
        given = [name for name in ("hub", "folder", "package") if getattr(self, name)]
        if len(given) != 1:
            raise ValueError("an encoder needs exactly one of hub, folder and package")
        return self


class Head(Entry):
    """The task-specific module on top of the encoder."""

    kind: own_or("head", HEAD_KINDS)
    pooling: Literal["first", "mean", "max", "attention"] = Field(
        "first", description="how tokens become one vector; tagging reads each word's first piece instead"
    )
    separate_pooling: Literal["first", "mean", "max", "attention"] = Field(
        "mean", description="the same for each text of a pair where the two are read apart"
    )
    dropout: float = Field(0.1, ge=0, lt=1)
    options: dict[Id, int | float | str] = Field({}, description="of a head of your own: what it reads from entry")

    @model_validator(mode="after")
    def _options_have_a_reader(self):
        if self.options and self.kind in HEAD_KINDS:
            raise ValueError(f"options are for a head of your own; {self.kind} reads none")
        return self


class Phase(BaseModel):
    """Which parameters train, at which rates, on which schedule, until when."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    train: list[str | dict[str, int | str]] = Field([], description="selectors: head, all, embeddings, {top: k}")
    optimizer: Literal["adamw", "lbfgs"] = Field("adamw", description="lbfgs: a linear head alone, to convergence")
    rate: Rate = Field(2e-5, description="peak learning rate")
    head_rate: Rate | None = Field(None, description="the head's own peak rate; else rate")
    schedule: Literal["linear", "constant", "cosine"] = "linear"
    warmup: float = Field(0.1, ge=0, lt=1, description="share of the steps over which the rate rises")
    epochs: int = Field(3, ge=1, le=1000)
    batch_size: int = Field(32, ge=1)
    patience: int | None = Field(None, ge=1, description="stop after so many epochs without a better validation")
    pick: Literal["last", "best"] = Field("last", description="the epoch whose weights are kept, best by validation")
    weight_decay: float = Field(0.01, ge=0, description="on matrices; biases and norms have none")
    clip: float | None = Field(1.0, gt=0, description="largest gradient norm over the trained parameters")
    precision: Literal["fp32", "bf16"] = Field("fp32", description="bf16: autocast of the trained part")
    frozen_dropout: bool = Field(False, description="dropout stays on in frozen layers, as in some papers: no cache")
    l2: list[Annotated[float, Field(ge=0)]] = Field(
        [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0], min_length=1, description="lbfgs: strengths, chosen on validation"
    )

    @model_validator(mode="after")
    def _keys_of_the_optimizer(self):
        known = {"train", "optimizer", "l2"} if self.optimizer == "lbfgs" else set(type(self).model_fields) - {"l2"}
        for key in sorted(self.model_fields_set - known):
            raise ValueError(f"{key} has no meaning with optimizer {self.optimizer}; leave it out")
        return self


class After(BaseModel):
    """The run that a strategy starts from."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    strategy: Id
    variant: Id = "base"
    epoch: Literal["last", "best"] = "last"


class Strategy(Entry):
    """How the encoder is adapted: a list of phases."""

    about: str | None = Field(None, description="one sentence for people; never part of a spec")
    after: Id | After | None = Field(None, description="start from this strategy's run of the same task, head and seed")
    pairs: Literal["task", "joint", "separate", "best"] = Field(
        "task",
        description="how pairs are read: task and joint in the task's view, joint and separate on pairs alone, "
        "best (lbfgs only) as validation chooses",
    )
    sweep: dict[Id, list[int] | Literal["layers"]] = Field(
        {}, max_length=1, description="one variable and its values; layers: 0 to L"
    )
    phases: list[Phase] = Field(min_length=1)
    keep: bool = Field(False, description="keep the encoder's trained tensors with the result")

    @model_validator(mode="after")
    def _lbfgs_stands_alone(self):
        solved = [phase for phase in self.phases if phase.optimizer == "lbfgs"]
        if solved and (len(self.phases) > 1 or self.after or self.sweep or list(solved[0].train) != ["head"]):
            raise ValueError("optimizer lbfgs fits a head alone: one phase, train: [head], no after, no sweep")
        if self.pairs == "best" and not solved:
            raise ValueError("pairs: best is for optimizer lbfgs; take task, joint or separate")
        return self
