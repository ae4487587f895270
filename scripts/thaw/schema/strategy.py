"""What is trained and how: encoders, heads, phases, strategies."""

from itertools import product
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from thaw.schema.entry import CatalogueEntry, Id
from thaw.schema.phases import PhaseConfig, of_phase

# The keys of a phase that a search may choose.
SEARCHED = ("rate", "head_rate", "layer_decay", "epochs", "batch_size", "weight_decay", "warmup", "l2_to_start")
SEARCHED_KEY = rf"^([1-9]\.)?({'|'.join(SEARCHED)})$"


class StartConfig(BaseModel):
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


class SearchConfig(BaseModel):
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


class StrategyConfig(CatalogueEntry):
    """How the encoder is adapted: a list of phases."""

    about: str | None = Field(None, description="one sentence for people; never part of a spec")
    origin: Id | None = Field(None, alias="from", description="start from the encoder after this further pretraining")
    after: Id | StartConfig | None = Field(
        None, description="start from this strategy's run of the same task, head and seed"
    )
    pairs: Literal["task", "joint", "separate", "best"] = Field(
        "task",
        description="how pairs are read: task and joint in the task's view, joint and separate on pairs alone, "
        "best (lbfgs only) as validation chooses",
    )
    sweep: dict[Id, list[int] | Literal["layers"]] = Field(
        {}, max_length=1, description="one variable of train:, or a key of phases, and its values; layers: 0 to L"
    )
    phases: list[PhaseConfig] = Field(min_length=1)
    search: SearchConfig | None = Field(None, description="choose rates and the like on validation first")
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
    def start(self) -> StartConfig | None:
        """What `after` says, with every default filled in."""
        return StartConfig(strategy=self.after) if isinstance(self.after, str) else self.after

    @property
    def needed(self) -> dict[str, str]:
        """The strategies whose runs one of this strategy needs, by role."""
        return {"start": self.start.strategy} if self.start else {}

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
