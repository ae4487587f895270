"""What is trained and how: encoders, heads, phases, strategies."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from thaw.settings.base import Entry, Id, Rate, Text, own_or
from thaw.settings.heads import HEAD_KINDS, Options, options_of
from thaw.settings.inserts import Insert

PLANNED = {"components", "boundary", "reads"}  # what the plan adds to a phase in a spec


# Where an encoder of each kind may come from.
ENCODER_SOURCES = {
    "transformers": ("hub", "folder", "package"),
    "elmo": ("folder",),
    "sentence": ("hub", "folder", "package", "file"),
    "word_vectors": ("file",),
}


class Encoder(Entry):
    """A pretrained model: weights, tokenizer, number of layers."""

    kind: Literal["transformers", "elmo", "sentence", "word_vectors"] = "transformers"
    hub: Text | None = Field(None, description="Hub id")
    folder: Text | None = Field(None, description="local folder, in the form of its kind")
    package: Text | None = Field(None, description="name of an installed Python package that ships a model")
    path: str = Field("", description="folder of the model inside the package")
    file: Text | None = Field(None, description="local file of vectors, for word_vectors and sentence")
    supply: Text | None = Field(None, description="where local files are to be had; said where they are missing")
    vocabulary: int | None = Field(None, ge=1, description="word_vectors: only the first so many words of the file")
    revision: str | None = Field(None, description="Hub commit, where a source shows it; else resolved and recorded")
    weights: Literal["pretrained", "random"] = Field(
        "pretrained", description="random: the same architecture as it is before any training"
    )
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$", description="of the weights file, checked by fetch")
    layers: int = Field(ge=0)
    width: int = Field(gt=0)
    cased: bool
    objective: Text = Field(description="what it was pretrained to do")
    pretraining: list[str] = Field(min_length=1, description="corpora seen in pretraining")
    note: str | None = Field(None, description="a footnote for tables; never part of a spec")

    @model_validator(mode="after")
    def _one_source(self):
        allowed = ENCODER_SOURCES[self.kind]
        given = [name for name in ("hub", "folder", "package", "file") if getattr(self, name)]
        if len(given) != 1 or given[0] not in allowed:
            due = " and ".join(filter(None, [", ".join(allowed[:-1]), allowed[-1]]))
            raise ValueError(f"an encoder of kind {self.kind} needs exactly one of {due}")
        return self

    @model_validator(mode="after")
    def _numbers_of_the_kind(self):
        if (self.layers == 0) != (self.kind in ("sentence", "word_vectors")):
            raise ValueError(f"layers: {self.layers} can not be: sentence and word_vectors have 0, other kinds more")
        if self.vocabulary and self.kind != "word_vectors":
            raise ValueError("vocabulary is for kind word_vectors; leave it out")
        return self


class Layers(BaseModel):
    """Which layers a head reads, and how they are combined."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    combine: Literal["one", "mix", "mean", "sum", "concat"] = Field(
        "one", description="one: a single layer, the last unless `layer` says which; mix: learned scalar mix"
    )
    layer: int | None = Field(None, ge=0, description="one: which, 0 the embeddings; unless stated the last")
    last: int | None = Field(None, ge=1, description="how many layers from the top; mix reads all and embeddings else")
    norm: bool = Field(False, description="mix: each layer at mean 0 and deviation 1 first")
    dropout: float = Field(0.0, ge=0, lt=1, description="mix: share of the layers left out while training")

    @model_validator(mode="after")
    def _keys_of_the_way(self):
        known = {"one": {"layer"}, "mix": {"last", "norm", "dropout"}}.get(self.combine, {"last"}) | {"combine"}
        for key in sorted(self.model_fields_set - known):
            raise ValueError(f"{key} has no meaning with combine: {self.combine}; leave it out")
        if self.combine in ("mean", "sum", "concat") and self.last is None:
            raise ValueError(f"combine: {self.combine} needs last: how many layers from the top")
        return self

    def reads(self, layers: int) -> list[int]:
        """Return the boundaries that are read of an encoder of L layers; one that it lacks is a ValueError."""
        if self.combine == "one":
            read = [layers if self.layer is None else self.layer]
        else:
            read = list(range(layers + 1 - (layers + 1 if self.last is None else self.last), layers + 1))
        if not 0 <= read[0] <= read[-1] <= layers:
            raise ValueError(f"layers: {self.layer or self.last} is more than the encoder's {layers} layers")
        return read


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
    layers: Layers = Field(Layers(), description="which layers it reads")
    initialisation: Literal["bert", "kaiming"] = Field(
        "bert", description="bert: the last matrix normal with deviation 0.02, biases 0; kaiming: every matrix"
    )
    options: dict[Id, int | float | str] = Field({}, description="of its kind, or what a head of your own reads")

    @field_validator("options")
    @classmethod
    def _options_of_the_kind(cls, given: dict, info: ValidationInfo) -> dict:
        """Values equal to the default are left out, so that a spec is the same with and without them."""
        kind = info.data.get("kind")
        return options_of(kind, given).model_dump(exclude_defaults=True) if kind in HEAD_KINDS else given

    @property
    def chosen(self) -> Options:
        """The options of one of Thaw's kinds, defaults filled in."""
        return options_of(self.kind, self.options)


class Phase(BaseModel):
    """Which parameters train, at which rates, on which schedule, until when."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    train: list[str | dict[str, int | str | dict[str, list[int]]]] = Field(
        [], description="selectors: head, all, embeddings, {top: k}, {top: k, only: bias}, {only: bias}"
    )
    insert: Insert | None = Field(None, description="small modules put into frozen layers, which train instead of them")
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

    @classmethod
    def of_spec(cls, entry: dict) -> "Phase":
        """Return the settings of a phase as it stands in a spec, without what the plan added to them."""
        return cls.model_validate({key: value for key, value in entry.items() if key not in PLANNED})


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
