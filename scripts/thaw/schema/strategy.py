"""What is trained and how: phases, the run that they start from, searches, sweeps."""

import re
from itertools import product
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from thaw.core.errors import suggestion
from thaw.declarations.objective_kinds import objectives_of
from thaw.schema.entry import CatalogueEntry, Cite, Id
from thaw.schema.head import HeadConfig, Poolings
from thaw.schema.keys import ConfigModel, Inner, Key, documented, fields_by_name
from thaw.schema.layers import Layers
from thaw.schema.multi_task import MultiTaskConfig, check_strategy
from thaw.schema.phases import PhaseConfig, of_phase
from thaw.schema.student import StudentConfig


class ReadsConfig(ConfigModel):
    """The layers that a head reads under a strategy, and how it pools the tokens of a text."""

    layers: Layers | None = Field(
        None, description="which layers the head reads, and how they are combined; null: as its entry says"
    )
    pooling: Poolings | None = Field(
        None,
        description="how the tokens of a text become one vector, of pairs in both readings; of a list, "
        "[mean, max, first], the vectors are concatenated; null: as its entry says",
    )

    @model_validator(mode="after")
    def _something_is_read(self):
        if self.layers is None and self.pooling is None:
            raise ValueError("say layers: or pooling:, or leave it out")
        return self

    @property
    def searched(self) -> bool:
        """Whether validation chooses the layer, after a fit on each."""
        return self.layers is not None and self.layers.searched

    def of(self, head: HeadConfig) -> HeadConfig:
        """Return a head's entry with what it reads replaced; what its kind cannot read is a ValueError.

        A kind that pools in its own way keeps it.
        """
        changes: dict = {} if self.layers is None else {"layers": self.layers.model_dump(exclude_unset=True)}
        if self.pooling is not None and "pooling" not in head.meaningless():
            changes |= {"pooling": self.pooling, "separate_pooling": self.pooling}
        return HeadConfig.model_validate(head.model_dump(exclude_unset=True) | changes)


PHASE_NAMES = fields_by_name(PhaseConfig)
# The keys of a phase that a search may choose.
SEARCHED = tuple(
    "rate head_rate layer_decay epochs updates batch_size weight_decay warmup l2_to_start insert_size".split()
)
_SEARCHED_NAMES = [word for word, name in PHASE_NAMES.items() if name in SEARCHED]
_GRID_SCHEMA = {"type": "string", "pattern": rf"^([1-9]\.)?({'|'.join(_SEARCHED_NAMES)})$"}


def written_key(key: str) -> str:
    """Return a key of a grid as it is documented: `2.rate` is 2.learning_rate."""
    number, dot, name = key.rpartition(".")
    return number + dot + documented(PhaseConfig, name)


def _point(variant):
    if isinstance(variant, int):
        raise ValueError(f"{variant} is a number; write the id of the point, as k{variant:02d}")
    return variant


Variant = Annotated[Id, BeforeValidator(_point)]


class StartConfig(ConfigModel):
    """The run that a strategy starts from."""

    strategy: Id = Field(description="id of the strategy")
    variant: Variant = Field("base", description="a point of its sweep, as k03; base where it has none")
    epoch: Annotated[Literal["last", "best"], Key(aliases=("checkpoint",))] = Field(
        "last", description="which weights of its last phase: of the last epoch, or of the best on validation"
    )
    task: Id | None = Field(
        None, description="an intermediate task: the encoder of its run is the start, with a new head; null: the same"
    )
    subset: Id = Field("all", description="training examples of the intermediate task")

    def meaningless(self) -> dict[str, str]:
        """Without an intermediate task the subset is the run's own."""
        return {} if self.task else {"subset": "without task:"}


class TeacherConfig(ConfigModel):
    """The run that a strategy's runs are trained towards: of the same task, subset, head and, unless said, encoder."""

    strategy: Id = Field(description="id of the strategy")
    variant: Variant = Field(
        "base", description="a point of its sweep, as k03; the variable of this strategy's own sweep: the same point"
    )
    encoder: Id | None = Field(
        None,
        description="another encoder of the catalogue, whose logits alone can be targets; null: the student's own",
    )
    seed: int | None = Field(
        None, ge=0, description="one seed whose run teaches all seeds; null: each seed has the run of its own seed"
    )
    dropout: bool = Field(
        False,
        description="whether the teacher has its dropout, as in some papers' code; its logits, the only target then, "
        "are computed in each update and not stored",
    )
    subset: Id | None = Field(
        None,
        description="another subset of the training rows that the teacher was trained on; with hard: 0 the other "
        "rows of the student are text without labels (Turc et al. 2019); null: the student's own",
    )


class SearchConfig(ConfigModel):
    """A grid of settings, of which validation chooses one."""

    grid: dict[Annotated[str, WithJsonSchema(_GRID_SCHEMA)], list[int | float]] = Field(
        min_length=1,
        description="key of a phase: values to try; all combinations are trained. 2.learning_rate is that of phase 2",
    )
    seeds: list[int] = Field(
        [1], min_length=1, description="seeds of each trial; the mean of their validation scores decides"
    )
    penalty: Literal["gap"] | None = Field(
        None,
        description="gap: a trial counts by its validation score less what its score on the training rows is above it; "
        "of settings that score alike the one that overfits less is chosen; null: by the validation score",
    )

    @field_validator("grid", mode="before")
    @classmethod
    def _stored_keys(cls, grid):
        """Store each key of a phase under the field's own name."""
        if not isinstance(grid, dict):
            return grid
        by_field = {}
        for written_key, values in grid.items():
            number, _, word = str(written_key).rpartition(".")
            name = PHASE_NAMES.get(word)
            if name not in SEARCHED or not re.fullmatch(r"[1-9]?", number):
                known = [documented(PhaseConfig, name) for name in SEARCHED]
                raise ValueError(f"{written_key} is no key that a search can choose{suggestion(word, known)}")
            key = f"{number}.{name}" if number else name
            if key in by_field:
                raise ValueError(f"{written_key} is here twice, under two names; leave one out")
            by_field[key] = values
        return by_field

    @model_validator(mode="after")
    def _something_to_choose(self):
        for key, values in self.grid.items():
            if not values or len(set(values)) < len(values):
                raise ValueError(f"grid: {written_key(key)} needs one value or more, each once")
        return self

    def trials(self) -> list[dict]:
        """Return the settings of each trial: all combinations, the last key's values changing fastest."""
        return [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]


def _is_whole(value) -> bool:
    return type(value) is int or type(value) is float and value.is_integer() or bool(re.fullmatch(r"\d+", str(value)))


class StrategyConfig(CatalogueEntry):
    """How the encoder is adapted: a list of phases."""

    inner: ClassVar[Inner] = Inner(PhaseConfig, "in phases:, as phases: [{train: [all], ...}]")
    about: str | None = Field(None, description="one sentence for people; never part of a spec")
    cite: Cite = []
    origin: Annotated[Id | None, Key(aliases=("from",))] = Field(
        None, description="start from the encoder after this further pretraining (config/encoders.yaml)"
    )
    after: Id | StartConfig | None = Field(
        None, description="start from this strategy's run of the same task, head and seed"
    )
    teacher: Id | TeacherConfig | None = Field(
        None, description="the strategy whose run, of the same task, head and seed, the phases with distil: learn from"
    )
    student: StudentConfig | None = Field(
        None, description="the layers that the encoder keeps, and whose weights they start from; null: all of them"
    )
    multi_task: MultiTaskConfig | None = Field(
        None, description="other tasks that train the encoder in turn with the run's own; null: one task"
    )
    pairs: Literal["task", "joint", "separate", "best"] = Field(
        "task",
        description="how pairs of texts are read: task: as the task says; joint: cross-encoder, separate: bi-encoder, "
        "neither of which is run on single texts; best (lbfgs only): whichever is better on validation",
    )
    reads: ReadsConfig | None = Field(
        None, description="what the head reads, in the place of layers and pooling of its entry in heads.yaml"
    )
    sweep: dict[Id, list[int] | Literal["layers"]] = Field(
        {},
        max_length=1,
        description="one run for each value of a variable in train: or insert:, or of a key of the phases; layers: 0 "
        "to the number of layers",
    )
    phases: list[PhaseConfig] = Field(min_length=1, description="what trains and how, one phase after the other")
    search: SearchConfig | None = Field(None, description="choose learning rates and other keys on validation first")
    rates_from: Id | None = Field(
        None, description="take what the search of this strategy chose for the same task and head"
    )
    keep: bool = Field(False, description="keep the trained weights of the encoder with the result")

    @field_validator("sweep", mode="before")
    @classmethod
    def _stored_key_of_phases(cls, sweep):
        """Store a swept key of the phases under the field's own name; values other than whole numbers are an error."""
        for name, values in sweep.items() if isinstance(sweep, dict) else ():
            if isinstance(values, list) and not all(map(_is_whole, values)):
                said = ", ".join(map(str, values))
                raise ValueError(
                    f"a sweep has whole numbers, and {name} has {said}; learning rates and the like are tried on "
                    f"validation by search: {{grid: {{{name}: [{said}]}}}}"
                )
        return {PHASE_NAMES.get(key, key): value for key, value in sweep.items()} if isinstance(sweep, dict) else sweep

    @property
    def fits_to_convergence(self) -> bool:
        """Whether a linear head is fitted to convergence."""
        return self.phases[0].fits_to_convergence

    def at_width(self, width: int) -> "StrategyConfig":
        """Return the strategy with the learning rates that its phases have for an encoder of this width."""
        return self.model_copy(update={"phases": [phase.at_width(width) for phase in self.phases]})

    def computed(self, settings: dict) -> "StrategyConfig":
        """Return the strategy with its phases as `PhaseConfig.computed`."""
        return self.model_copy(update={"phases": [phase.computed(settings) for phase in self.phases]})

    def head(self, entry: HeadConfig) -> HeadConfig:
        """Return a head's entry as it is under this strategy; what the head cannot read is a ValueError."""
        return self.reads.of(entry) if self.reads else entry

    @property
    def head_alone(self) -> bool:
        """Whether it is one phase in which the head trains on the frozen encoder, and nothing else does."""
        first, one = self.phases[0], not (self.after or self.sweep or len(self.phases) > 1)
        turns = first.insert or first.unfreeze or first.one_by_one
        whole = not (self.student or self.teacher or self.multi_task)
        return one and whole and list(first.train) == ["head"] and not turns and not first.frozen_dropout

    @property
    def start(self) -> StartConfig | None:
        return StartConfig(strategy=self.after) if isinstance(self.after, str) else self.after

    @property
    def teaching(self) -> TeacherConfig | None:
        return TeacherConfig(strategy=self.teacher) if isinstance(self.teacher, str) else self.teacher

    @property
    def needed(self) -> dict[str, tuple[str, str]]:
        """The strategies whose runs one of this strategy needs, each with the variant, by role."""
        named = {"start": self.start, "teacher": self.teaching}
        return {role: (one.strategy, one.variant) for role, one in named.items() if one}

    @model_validator(mode="after")
    def _lbfgs_fits_a_head_alone(self):
        fitted = [phase for phase in self.phases if phase.fits_to_convergence]
        if fitted and (len(self.phases) > 1 or self.after or self.sweep or list(fitted[0].train) != ["head"]):
            raise ValueError("optimizer lbfgs fits a head alone: one phase, train: [head], no after, no sweep")
        if fitted and (self.student or self.teacher):
            raise ValueError("optimizer lbfgs fits a head to labels, on all layers; leave out student: and teacher:")
        if self.pairs == "best" and not fitted:
            raise ValueError("pairs: best is for optimizer lbfgs; take task, joint or separate")
        if self.reads and self.reads.searched and not fitted:
            raise ValueError(f"reads: layer: {self.reads.layers.layer} is for optimizer lbfgs; name one layer")
        if fitted and (self.search or self.rates_from):
            raise ValueError("optimizer lbfgs chooses its l2 itself; leave out search and rates_from")
        return self

    @model_validator(mode="after")
    def _teacher_that_is_read(self):
        read = [term for phase in self.phases if phase.distil for term in phase.distil.terms]
        if self.teacher and not read:
            raise ValueError("teacher: no phase reads it; give one distil: {logits: {}}, or leave teacher out")
        if read and not self.teacher:
            raise ValueError(f"distil: {read[0]}: needs a teacher; name a strategy as teacher:")
        return self

    @model_validator(mode="after")
    def _keys_that_belong_together(self):
        if self.origin and self.after:
            raise ValueError("after goes on with the encoder of the run that it names; say from: there, and not here")
        if self.search and self.rates_from:
            raise ValueError("search and rates_from both say where rates come from; leave one out")
        if self.student and any(phase.reinit_top for phase in self.phases):
            raise ValueError("student: start: random says which of its layers start at random; leave out reinit_top")
        makes = [phase.insert.make() for phase in self.phases if phase.insert]
        if any(make != makes[0] for make in makes):
            raise ValueError("insert: all phases must insert the same, but for top:; a run holds inserts of one make")
        for phase in self.phases:
            for name, kind in objectives_of(phase).items():
                if wrong := kind.in_strategy(phase, self):
                    raise ValueError(f"{name}: {wrong}")
        check_strategy(self)
        return self

    @model_validator(mode="after")
    def _search_that_phases_can_have(self):
        numbered = [key for key in (self.search.grid if self.search else []) if "." in key]
        for key in numbered:
            if int(key[0]) > len(self.phases) or any(phase.one_by_one for phase in self.phases):
                raise ValueError(f"grid: {written_key(key)}: there is no phase {key[0]} here, or one has chain_thaw")
        for settings in self.search.trials() if self.search else []:
            for number, phase in enumerate(self.phases, start=1):
                phase.changed(of_phase(settings, number))  # what no phase can have is an error before anything runs
        return self
