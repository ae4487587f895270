"""One phase of a strategy: what trains, at which learning rates, on which schedule, until when."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, create_model, model_validator

from thaw.core import plugins
from thaw.core.phrases import listing
from thaw.declarations.lazy_import import LazyImport
from thaw.declarations.objective_kinds import OBJECTIVES
from thaw.schema.distillation import DistilConfig
from thaw.schema.entry import Rate, Share
from thaw.schema.keys import OF_A_PHASE, OF_AN_INSERT, ConfigModel, Key

Fraction = Annotated[float, Field(gt=0, le=1)]


class UnfreezeConfig(ConfigModel):
    """Gradual unfreezing: training begins with the head; in stages, further layers from the top train with it."""

    layers: Annotated[int, Key(unit="layers")] = Field(1, ge=1, description="number of further layers in each stage")
    epochs: Annotated[int, Key(unit="epochs")] = Field(
        1, ge=1, description="length of each stage but the last, which has the phase's own epochs"
    )
    restart: bool = Field(
        False, description="restart the schedule in each stage; otherwise one schedule spans the phase"
    )


class EarlyStoppingConfig(ConfigModel):
    """When a phase ends before its last epoch; checked after each epoch."""

    gap: Annotated[float, Key(unit="score, 0-1")] = Field(
        gt=0, description="stop when training and validation score differ by more than this"
    )


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

    def meaningless(self) -> dict[str, str]:
        """Each way of selecting has keys of its own."""
        absent = type(self).model_fields.keys() - {"by", "fractions"} - SELECTIONS[self.by].keys
        return dict.fromkeys(absent, f"with by: {self.by}")


KEYS = {
    "lora": {"rank", "alpha", "targets", "variant"},
    "ia3": set(),
    "adapters": {"size", "std", "place"},
}  # the keys that each kind reads


class InsertConfig(ConfigModel):
    """What is put into which layers; all phases of a run insert the same kind with the same options."""

    hints: ClassVar[dict[str, str]] = OF_AN_INSERT
    kind: Literal["lora", "ia3", "adapters"] = Field(
        description="lora: low-rank matrices; ia3: scaling vectors; adapters: bottlenecks, and the layer norms"
    )
    top: Annotated[int | str | None, Key(unit="layers")] = Field(
        None, description="number of layers from the top, or the variable of a sweep; null: all layers"
    )
    rank: Annotated[int, Key(aliases=("rank", "r"))] = Field(8, ge=1, description="lora: rank of the two matrices")
    alpha: Annotated[float, Key(aliases=("alpha", "lora_alpha"))] = Field(
        16, gt=0, description="lora: the product of the matrices is scaled by alpha / rank"
    )
    targets: Literal["query_value", "attention", "feed_forward", "all"] = Field(
        "query_value",
        description="lora: the matrices that it is added to; ModernBERT and GPT-2 have one matrix of queries, keys and "
        "values, and query_value is that one",
    )
    variant: Literal["plain", "dora", "rslora"] = Field(
        "plain",
        description="lora: as Hu et al. 2022; dora: with a trained norm of each row of the matrix (Liu et al. 2024); "
        "rslora: scaled by alpha / sqrt(rank) (Kalajdzievski 2023)",
    )
    size: Annotated[int, Key(unit="units")] = Field(64, ge=1, description="adapters: width of the bottleneck")
    std: float = Field(  # that of Houlsby et al.'s code, where the paper says 1e-2
        1e-3, gt=0, le=1, description="adapters: standard deviation of the first weights"
    )
    place: Literal["matrix", "dropout"] = Field(
        "matrix",
        description="adapters: on the output of a sublayer's last matrix, or, as Houlsby et al. have it, on that of "
        "the dropout which follows",
    )

    def meaningless(self) -> dict[str, str]:
        """Each kind has keys of its own."""
        absent = type(self).model_fields.keys() - {"kind", "top"} - KEYS[self.kind]
        return dict.fromkeys(absent, f"with insert: {self.kind}")

    def make(self) -> dict:
        """Return what the insert is, wherever it is put, in the form that specs store."""
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"top"})


# what the plan adds to a phase in a spec
PLANNED = set("components boundary reads stages vectors pairs attended".split())
LOSSES = ("distil", *OBJECTIVES)  # keys that set the loss
FITTED = {"l2", "folds", "select"}  # keys of lbfgs alone
OF_EPOCHS = {"epochs", "warmup_of"}  # keys that a phase with updates lacks
Precision = Literal["fp32", "tf32", "bf16"]
SCHEDULE = Literal["linear", "constant", "cosine", "slanted_triangular", "plateau"]
RatesByWidth = Annotated[dict[Annotated[int, Field(ge=1)], Rate], Field(min_length=1)]
ONE_STRENGTH = Annotated[float, Field(ge=0)]


def of_phase(searched: dict, number: int) -> dict:
    """Return what searched settings say of one phase, counted from 1: `rate` is all phases', `2.rate` the second's."""
    own = {key.removeprefix(f"{number}."): value for key, value in searched.items() if key.startswith(f"{number}.")}
    return {key: value for key, value in searched.items() if "." not in key} | own


# Each kind of objective is a key of a phase.
_OF_KINDS: dict[str, Any] = {
    name: (kind.settings | None, Field(None, description=kind.about)) for name, kind in OBJECTIVES.items()
}
ObjectiveKeys = create_model("ObjectiveKeys", __base__=ConfigModel, __module__=__name__, **_OF_KINDS)


class PhaseConfig(ObjectiveKeys):
    """What trains, at which learning rates, on which schedule, until when."""

    hints: ClassVar[dict[str, str]] = OF_A_PHASE
    train: list[str | dict[str, int | str | dict[str, list[int]]]] = Field(
        [],
        description="what trains; everything else is frozen. head, all, embeddings, layers, {top: 3} or {top: k} of a "
        "sweep; a part of layers by {top: 3, only: attention | feed_forward | query_value | bias | norm | "
        "{heads: [0, 3]}}; {only: bias} of all layers and the embeddings",
    )
    insert: InsertConfig | None = Field(
        None, description="LoRA, IA3 or adapters: small modules that train in frozen layers"
    )
    insert_size: Annotated[int | None, Key(unit="units")] = Field(
        None, ge=1, description="size of the insert, under the name that a search chooses it by"
    )
    unfreeze: Annotated[UnfreezeConfig | None, Key(aliases=("gradual_unfreezing",))] = Field(
        None, description="gradual unfreezing: the head first, then further layers from the top"
    )
    one_by_one: Annotated[bool, Key(aliases=("chain_thaw",))] = Field(
        False, description="chain-thaw: the head alone, then each block alone from below, at last all of them together"
    )
    reinit_top: Annotated[int, Key(unit="layers")] = Field(
        0, ge=0, description="number of layers from the top that start from random weights"
    )
    optimizer: Literal["adamw", "bert_adam", "lbfgs"] = Field(
        "adamw",
        description="bert_adam: Adam without bias correction, as in the code of 2019; lbfgs: a linear head alone, to "
        "convergence",
    )
    betas: Annotated[tuple[Share, Share], Key(aliases=("adam_betas",))] = Field(
        (0.9, 0.999), description="Adam's factors of the running means of the gradients and of their squares"
    )
    rate: Annotated[Rate | RatesByWidth, Key(aliases=("learning_rate", "lr"))] = Field(
        2e-5,
        description="peak learning rate; {384: 2e-4, 768: 3e-5} by the encoder's width: that of the largest width not "
        "above it, else of the least",
    )
    head_rate: Annotated[Rate | None, Key(aliases=("head_learning_rate", "head_lr"))] = Field(
        None, description="peak learning rate of the head; null: the same as learning_rate"
    )
    layer_decay: Annotated[float, Key(aliases=("layerwise_lr_decay", "llrd"), unit="factor")] = Field(
        1.0,
        gt=0,
        le=1,
        description="layer-wise learning-rate decay: the top layer has learning_rate, each layer below it this factor "
        "times the one above; 0.385 is the 1 / 2.6 of ULMFiT",
    )
    schedule: SCHEDULE = Field(
        "linear",
        description="linear and cosine fall to 0 after the warm-up, constant stays at the peak; slanted_triangular is "
        "that of ULMFiT: it rises over a tenth of the updates from a 32nd of the peak, and falls back to it; plateau "
        "halves the rate after each epoch, with updates each evaluation, without a better validation score",
    )
    warmup: Annotated[float, Key(aliases=("warmup_ratio",), unit="share of the updates")] = Field(
        0.1, ge=0, lt=1, description="share of the updates over which the learning rate rises to its peak"
    )
    warmup_of: Literal["phase", "epoch"] = Field(
        "phase", description="the updates that warmup_ratio is a share of: those of the phase, or of one epoch"
    )
    epochs: Annotated[int, Key(aliases=("epochs", "num_train_epochs", "num_epochs"), unit="epochs")] = Field(
        3, ge=1, le=1000, description="passes over the training examples"
    )
    updates: Annotated[int | None, Key(aliases=("updates", "max_steps"), unit="updates")] = Field(
        None,
        ge=1,
        description="steps of the optimizer, in the place of epochs; the same budget for each strategy, in all stages "
        "of a phase together (of chain_thaw: for each part)",
    )
    judge: Annotated[int | None, Key(aliases=("evaluations",), unit="evaluations")] = Field(
        None,
        ge=1,
        description="with updates: validation is scored so many times, at equal distances and at the end; null: 10 "
        "times, where early stopping, checkpoint: best or schedule: plateau asks for scores",
    )
    batch_size: Annotated[
        int, Key(aliases=("batch_size", "per_device_train_batch_size", "train_batch_size"), unit="examples")
    ] = Field(32, ge=1, description="examples of one update")
    order: Annotated[int | None, Key(aliases=("data_seed",))] = Field(
        None, ge=0, description="seed of the order of the training examples; null: the seed of the run"
    )
    batches: Literal["by_length", "random"] = Field(
        "by_length",
        description="by_length: the examples of a batch have similar lengths, which saves padding; random: they are "
        "drawn at random, as in the code of most papers. A head alone on vectors that stay the same has random ones",
    )
    patience: Annotated[int | None, Key(aliases=("patience", "early_stopping_patience"), unit="epochs")] = Field(
        None,
        ge=1,
        description="early stopping: epochs, with updates evaluations, without a better validation score after which "
        "it ends",
    )
    stop: Annotated[EarlyStoppingConfig | None, Key(aliases=("early_stopping",))] = Field(
        None, description="early stopping by a gap between training and validation score"
    )
    pick: Annotated[Literal["last", "best"], Key(aliases=("checkpoint",))] = Field(
        "last", description="the epoch, with updates the evaluation, whose weights are kept; best: by validation score"
    )
    weight_decay: float = Field(
        0.01, ge=0, description="decoupled weight decay of matrices; biases and norms have none"
    )
    l2_to_start: Annotated[float, Key(aliases=("l2_sp",))] = Field(
        0.0,
        ge=0,
        description="L2-SP: half of it times the squared distance of the encoder's weights from those at the start of "
        "the phase is added to the loss",
    )
    clip: Annotated[float | None, Key(aliases=("max_grad_norm",), unit="L2 norm")] = Field(
        1.0, gt=0, description="gradient clipping: largest norm over all trained parameters; null: no clipping"
    )
    clip_over: Literal["trained", "all"] = Field(
        "trained",
        description="all: the norm that is clipped counts the gradients of frozen parameters too, as the code of some "
        "papers does; with frozen_dropout: true, since below a cached layer there are no gradients",
    )
    distil: DistilConfig | None = Field(
        None, description="the loss towards the strategy's teacher; null: the task's own loss alone"
    )
    precision: Precision = Field(
        "fp32",
        description="bf16: autocast of what trains, but for a head alone on vectors that stay the same; fp32 where a "
        "processor or GPU would emulate it. tf32: a GPU multiplies matrices with ten bits of mantissa where it can",
    )
    batch_gib: Annotated[float | None, Key(unit="GiB")] = Field(
        None,
        gt=0,
        description="most memory of what a batch leaves in the layers, by estimate; a larger one is computed in parts, "
        "each twice: the same update but for the draws of dropout. null: no limit",
    )
    frozen_dropout: bool = Field(
        False, description="keep dropout on in frozen layers, as the code of some papers does; nothing is cached"
    )
    l2: list[ONE_STRENGTH] = Field(
        [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0],
        min_length=1,
        description="lbfgs: strengths of the L2 penalty, of which validation, or cross-validation, chooses one",
    )
    folds: int | None = Field(
        None,
        ge=2,
        description="lbfgs: of fewer than 2,000 training and validation texts together, number of folds by which "
        "settings are chosen; null: by validation, whatever the rows",
    )
    select: SelectConfig | None = Field(
        None, description="lbfgs: the features that the head is fitted on; null: all of them"
    )

    @property
    def fits_to_convergence(self) -> bool:
        """Whether a linear head is fitted to convergence."""
        return self.optimizer == "lbfgs"

    def meaningless(self) -> dict[str, str]:
        """The optimizer, the schedule and the length of a phase have keys of their own."""
        fitted = type(self).model_fields.keys() - {"train", "optimizer", *FITTED}
        if self.fits_to_convergence:
            return dict.fromkeys(fitted, f"with optimizer {self.optimizer}")
        refused = dict.fromkeys(FITTED, f"with optimizer {self.optimizer}")
        if self.schedule == "slanted_triangular":
            refused |= dict.fromkeys(("warmup", "warmup_of"), f"with schedule {self.schedule}")
        if self.updates is None:
            return refused | {"judge": "without updates, since epochs end with an evaluation"}
        return refused | dict.fromkeys(OF_EPOCHS, f"with updates: {self.updates}")

    @model_validator(mode="before")
    @classmethod
    def _size_is_the_inserts(cls, values):
        """Give a size that a search chose to the insert, which has the key."""
        if not isinstance(values, dict) or values.get("insert_size") is None:
            return values
        if not isinstance(values.get("insert"), dict):
            raise ValueError("insert_size is the size of an insert, and there is none; say insert: {kind: adapters}")
        rest = {key: value for key, value in values.items() if key != "insert_size"}
        return rest | {"insert": values["insert"] | {"size": values["insert_size"]}}

    @model_validator(mode="after")
    def _keys_that_belong_together(self):
        if self.clip_over == "all" and (self.clip is None or not self.frozen_dropout):
            raise ValueError("clip_over: all needs frozen_dropout: true and a max_grad_norm")
        if len(named := [name for name in LOSSES if getattr(self, name)]) > 1:
            raise ValueError(f"{named[0]} sets the loss of a phase, as {listing(LOSSES)} do; leave all but one out")
        if self.judge and self.updates and self.judge > self.updates:
            most = f"updates: {self.updates}; say {self.updates} or fewer"
            raise ValueError(f"evaluations: {self.judge} do not fit into {most}")
        if self.unfreeze and self.updates is not None and "epochs" in self.unfreeze.model_fields_set:
            raise ValueError(
                "gradual_unfreezing: epochs is for a phase with epochs; stages of one with updates have equal shares"
            )
        if self.folds and self.select and self.select.by == "clusters":
            raise ValueError("folds: with select: {by: clusters} validation orders the neurons; leave folds out")
        if self.unfreeze and self.one_by_one:
            raise ValueError("gradual_unfreezing and chain_thaw are two orders of unfreezing; leave one out")
        if self.reinit_top and (self.unfreeze or self.one_by_one):
            raise ValueError(
                "reinit_top needs layers that train from the first step; leave out gradual_unfreezing and chain_thaw"
            )
        return self

    def changed(self, settings: dict) -> "PhaseConfig":
        """Return the phase with some other settings; values that no phase can have are a ValueError."""
        return type(self).model_validate(self.model_dump(exclude_unset=True) | settings)

    @property
    def one_rate(self) -> float:
        """The learning rate; of one for each width `at_width` has taken one."""
        if isinstance(self.rate, dict):
            raise ValueError("a learning rate for each width has to be that of one width before it trains")
        return self.rate

    def at_width(self, width: int) -> "PhaseConfig":
        """Return the phase with the one learning rate that it has for an encoder of this width."""
        if not isinstance(self.rate, dict):
            return self
        widest = max((one for one in self.rate if one <= width), default=min(self.rate))
        return self.changed({"rate": self.rate[widest]})

    def computed(self, settings: dict) -> "PhaseConfig":
        """Return the phase with what its experiment says of computing, where it says nothing of its own."""
        others = {key: value for key, value in settings.items() if key not in self.model_fields_set}
        return self if self.fits_to_convergence else self.changed(others)

    @classmethod
    def of_spec(cls, entry: dict) -> "PhaseConfig":
        """Return the settings of a phase of a spec, without what the plan added to them."""
        return cls.model_validate({key: value for key, value in entry.items() if key not in PLANNED})
