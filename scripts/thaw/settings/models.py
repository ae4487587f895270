"""What is trained and how: encoders, heads, phases, strategies."""

from itertools import product
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from thaw.settings.base import Entry, Id, Text, own_or
from thaw.settings.data import TASK_TYPES
from thaw.settings.heads import HEAD_KINDS, Options, options_of
from thaw.settings.phases import Phase, of_phase

# The keys of a phase that a search may choose.
SEARCHED = ("rate", "head_rate", "layer_decay", "epochs", "batch_size", "weight_decay", "warmup", "l2_to_start")
SEARCHED_KEY = rf"^([1-9]\.)?({'|'.join(SEARCHED)})$"

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
    truncated: bool = Field(False, description="only the first `layers` layers of the model are kept")
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
        if self.truncated and self.kind != "transformers":
            raise ValueError("truncated is for kind transformers; leave it out")
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
    pooling: Literal["first", "last", "mean", "max", "attention", "pooler"] = Field(
        "first", description="how tokens become one vector; tagging reads each word's first piece instead"
    )
    separate_pooling: Literal["first", "last", "mean", "max", "attention", "pooler"] = Field(
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

    @model_validator(mode="after")
    def _pooling_has_a_reader(self):
        if self.kind in HEAD_KINDS and not HEAD_KINDS[self.kind].pools:
            for key in sorted(self.model_fields_set & {"pooling", "separate_pooling"}):
                raise ValueError(f"{key} has no meaning for kind {self.kind}; leave it out")
        return self

    @model_validator(mode="after")
    def _pooler_is_for_the_last_layer(self):
        plain = self.kind == "linear" and self.layers == Layers()
        if "pooler" in (self.pooling, self.separate_pooling) and not plain:
            raise ValueError("pooling: pooler is for kind linear on the last layer alone, which it was pretrained on")
        return self

    @property
    def fixed(self) -> bool:
        """Whether the vectors that it reads of a frozen encoder are the same in every pass, however it is trained."""
        learned = {"attention", "pooler"} & {self.pooling, self.separate_pooling} or self.layers.combine == "mix"
        return self.kind in HEAD_KINDS and HEAD_KINDS[self.kind].fixed and not learned

    @property
    def chosen(self) -> Options:
        """The options of one of Thaw's kinds, defaults filled in."""
        return options_of(self.kind, self.options)


class HeadSet(Entry):
    """A name for several heads, of which the type of the task takes one."""

    by_task: dict[Literal[TASK_TYPES], Id] = Field(min_length=1, description="type of task: head; others are left out")


class After(BaseModel):
    """The run that a strategy starts from."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    strategy: Id
    variant: Id = "base"
    epoch: Literal["last", "best"] = "last"
    task: Id | None = Field(None, description="an intermediate task: its run is the start, its head is left behind")
    subset: Id = Field("all", description="training rows of the intermediate task")

    @model_validator(mode="after")
    def _subset_of_a_task(self):
        if self.task is None and "subset" in self.model_fields_set:
            raise ValueError("after: subset is for an intermediate task; without task: it is the run's own")
        return self


class Search(BaseModel):
    """A grid of settings, of which validation chooses one."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    grid: dict[Annotated[str, Field(pattern=SEARCHED_KEY)], list[int | float]] = Field(
        min_length=1,
        description="settings of all phases (2.rate: of phase 2), and values; all combinations are tried",
    )
    seeds: list[int] = Field([1], min_length=1, description="seeds of each trial; their mean decides")

    @model_validator(mode="after")
    def _something_to_choose(self):
        for key, values in self.grid.items():
            if not values or len(set(values)) < len(values):
                raise ValueError(f"grid: {key} needs one value or more, each once")
        return self

    def trials(self) -> list[dict]:
        """Return the settings of each trial: all combinations, the last key's values changing fastest."""
        return [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]


class Strategy(Entry):
    """How the encoder is adapted: a list of phases."""

    about: str | None = Field(None, description="one sentence for people; never part of a spec")
    origin: Id | None = Field(None, alias="from", description="start from the encoder after this further pretraining")
    after: Id | After | None = Field(None, description="start from this strategy's run of the same task, head and seed")
    pairs: Literal["task", "joint", "separate", "best"] = Field(
        "task",
        description="how pairs are read: task and joint in the task's view, joint and separate on pairs alone, "
        "best (lbfgs only) as validation chooses",
    )
    sweep: dict[Id, list[int] | Literal["layers"]] = Field(
        {}, max_length=1, description="one variable of train:, or a key of phases, and its values; layers: 0 to L"
    )
    phases: list[Phase] = Field(min_length=1)
    search: Search | None = Field(None, description="choose rates and the like on validation first")
    rates_from: Id | None = Field(None, description="take what the search of this strategy chose, same task and head")
    keep: bool = Field(False, description="keep the encoder's trained tensors with the result")

    @property
    def solved(self) -> bool:
        """Whether a linear head is fitted to convergence."""
        return self.phases[0].optimizer == "lbfgs"

    @property
    def head_alone(self) -> bool:
        """Whether it is one phase in which the head trains on the frozen encoder, and nothing else does."""
        first, one = self.phases[0], not (self.after or self.sweep or len(self.phases) > 1)
        turns = first.insert or first.unfreeze or first.one_by_one
        return one and list(first.train) == ["head"] and not turns and not first.frozen_dropout

    @property
    def start(self) -> After | None:
        """What `after` says, with every default filled in."""
        return After(strategy=self.after) if isinstance(self.after, str) else self.after

    @model_validator(mode="after")
    def _one_beginning(self):
        if self.origin and self.after:
            raise ValueError("after goes on with the encoder of the run that it names; say from: there, and not here")
        return self

    @model_validator(mode="after")
    def _lbfgs_stands_alone(self):
        solved = [phase for phase in self.phases if phase.optimizer == "lbfgs"]
        if solved and (len(self.phases) > 1 or self.after or self.sweep or list(solved[0].train) != ["head"]):
            raise ValueError("optimizer lbfgs fits a head alone: one phase, train: [head], no after, no sweep")
        if self.pairs == "best" and not solved:
            raise ValueError("pairs: best is for optimizer lbfgs; take task, joint or separate")
        if solved and (self.search or self.rates_from):
            raise ValueError("optimizer lbfgs chooses its l2 itself; leave out search and rates_from")
        if self.search and self.rates_from:
            raise ValueError("search and rates_from both say where rates come from; leave one out")
        return self

    @model_validator(mode="after")
    def _search_that_phases_can_have(self):
        numbered = [key for key in (self.search.grid if self.search else []) if "." in key]
        for key in numbered:
            if int(key[0]) > len(self.phases) or any(phase.one_by_one for phase in self.phases):
                raise ValueError(f"grid: {key}: there is no phase {key[0]} here, or one of them trains one by one")
        for settings in self.search.trials() if self.search else []:
            for number, phase in enumerate(self.phases, start=1):
                phase.changed(of_phase(settings, number))  # what no phase can have is an error before anything runs
        return self

    @model_validator(mode="after")
    def _one_make_of_insert(self):
        makes = [phase.insert.make() for phase in self.phases if phase.insert]
        if any(make != makes[0] for make in makes):
            raise ValueError("insert: all phases must insert the same, but for top:; a run holds inserts of one make")
        return self
