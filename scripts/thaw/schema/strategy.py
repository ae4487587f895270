"""What is trained and how: phases, the run that they start from, searches, sweeps."""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from thaw.declarations.objective_kinds import objectives_of
from thaw.schema.entry import CatalogueEntry, Cite, Id
from thaw.schema.head import HeadConfig
from thaw.schema.keys import Inner, Key
from thaw.schema.phases import PhaseConfig, of_phase
from thaw.schema.strategy_parts import PHASE_NAMES, ReadsConfig, SearchConfig, StartConfig, TeacherConfig, written_key
from thaw.schema.student import StudentConfig


def _is_whole(value) -> bool:
    """Return whether a value of a sweep is a whole number, or the text of one."""
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

    def head(self, entry: HeadConfig) -> HeadConfig:
        """Return a head's entry as it is under this strategy; what the head cannot read is a ValueError."""
        return self.reads.of(entry) if self.reads else entry

    @property
    def head_alone(self) -> bool:
        """Whether it is one phase in which the head trains on the frozen encoder, and nothing else does."""
        first, one = self.phases[0], not (self.after or self.sweep or len(self.phases) > 1)
        turns = first.insert or first.unfreeze or first.one_by_one
        whole = not (self.student or self.teacher)
        return one and whole and list(first.train) == ["head"] and not turns and not first.frozen_dropout

    @property
    def start(self) -> StartConfig | None:
        """What `after` says, with every default filled in."""
        return StartConfig(strategy=self.after) if isinstance(self.after, str) else self.after

    @property
    def teaching(self) -> TeacherConfig | None:
        """What `teacher` says, with every default filled in."""
        return TeacherConfig(strategy=self.teacher) if isinstance(self.teacher, str) else self.teacher

    @property
    def needed(self) -> dict[str, tuple[str, str]]:
        """The strategies whose runs one of this strategy needs, each with the variant, by role."""
        named = {"start": self.start, "teacher": self.teaching}
        return {role: (one.strategy, one.variant) for role, one in named.items() if one}

    @model_validator(mode="after")
    def _one_beginning(self):
        if self.origin and self.after:
            raise ValueError("after goes on with the encoder of the run that it names; say from: there, and not here")
        return self

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
        if self.search and self.rates_from:
            raise ValueError("search and rates_from both say where rates come from; leave one out")
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
    def _objectives_that_go_with_the_rest(self):
        for phase in self.phases:
            for name, kind in objectives_of(phase).items():
                if wrong := kind.in_strategy(phase, self):
                    raise ValueError(f"{name}: {wrong}")
        return self

    @model_validator(mode="after")
    def _one_random_start(self):
        if self.student and any(phase.reinit_top for phase in self.phases):
            raise ValueError("student: start: random says which of its layers start at random; leave out reinit_top")
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

    @model_validator(mode="after")
    def _one_make_of_insert(self):
        makes = [phase.insert.make() for phase in self.phases if phase.insert]
        if any(make != makes[0] for make in makes):
            raise ValueError("insert: all phases must insert the same, but for top:; a run holds inserts of one make")
        return self
