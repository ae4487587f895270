"""Runs as cells of the grid (task x subset x encoder x head x strategy x variant x seed), and what they need."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import floor
from typing import NamedTuple

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.declarations.needs import NEEDS
from thaw.declarations.task_types import PAIR_TYPES
from thaw.planning.initial_weights import InitialWeights
from thaw.planning.jobs import Result
from thaw.schema.corpora import TaskConfig
from thaw.schema.strategy import StrategyConfig

TAUGHT = "taught"  # the role of the run whose outputs a teacher gives
TRAINED_WITH = "multi_task"  # the role of the run whose training has trained another task's run too
TRIAL = "trial"  # the role of what a search chooses among; no run needs it itself


@dataclass(frozen=True)
class Need:
    """What a run needs of another job: in which role, of what, and what its spec says of it next to the digest.

    `task` is another task of its training, for which it is needed; "" for the run's own.
    """

    role: str
    of: "Planned"
    facts: dict = field(default_factory=dict, compare=False)
    task: str = ""


class RunCell(NamedTuple):
    """What an experiment chooses of a run; `value` is the point of the strategy's sweep, None without a sweep."""

    task: str
    subset: str
    encoder: str
    head: str
    strategy: str
    value: int | None
    seed: int


@dataclass(frozen=True)
class RunPlan:
    """One cell of the grid.

    `views` are those that it reads, two where validation chooses between them; `pairs` says how it came to them.
    `weights` are those of the encoder that it begins with. `value` is the number behind a variant such as k03. A trial
    of a search has its number and its settings. `needs` are the results that it is made from, with data and encoder.
    """

    task: str
    subset: str
    encoder: str
    head: str
    strategy: str
    variant: str
    seed: int
    step: str
    pairs: str
    views: tuple[str, ...]
    weights: InitialWeights
    value: int | None = None
    trial: int = 0
    settings: dict = field(default_factory=dict, compare=False)
    needs: tuple[Need, ...] = field(default=(), compare=False)

    @cached_property
    def names(self) -> dict:
        return {name: getattr(self, name) for name in layout.RUN}

    @cached_property
    def cell(self) -> str:
        return layout.cell(self.names)

    @cached_property
    def folder(self) -> str:
        """The folder of the run's files, below results."""
        return layout.folder("train", self.names)

    @cached_property
    def key(self) -> str:
        return layout.key(self.step, self.names)

    @property
    def read_as(self) -> str:
        """How it reads pairs, as tables say it: joint, separate, or best of both."""
        return "joint" if self.pairs == "task" else self.pairs

    @property
    def result(self) -> Result:
        return Result(self.step, self.key, self.seed if self.step == "fit_heads" else None)

    def earlier(self) -> Iterator["RunPlan"]:
        """Yield the runs from whose weights it goes on, the last one first."""
        for need in self.needs:
            if NEEDS[need.role].gives_weights and isinstance(need.of, RunPlan):
                yield need.of
            if isinstance(need.of, RunPlan) and (NEEDS[need.role].gives_weights or need.role == TRAINED_WITH):
                yield from need.of.earlier()

    @property
    def trained_by(self) -> "RunPlan | None":
        """The run of another task whose training trained this one too; None where it trains itself."""
        made = (need.of for need in self.needs if need.role == TRAINED_WITH)
        return next((run for run in made if isinstance(run, RunPlan)), None)


@dataclass(frozen=True)
class SearchPlan:
    """The choice among the trials of a strategy's grid, and where its record is: a cell of the grid."""

    step: str
    key: str
    grid: tuple[dict, ...] = field(compare=False)
    trials: tuple[RunPlan, ...] = field(compare=False)
    penalty: str | None = None  # what a trial's training scores count in the choice

    @property
    def strategy(self) -> str:
        return self.trials[0].strategy

    @property
    def head(self) -> str:
        return self.trials[0].head

    @cached_property
    def names(self) -> dict:
        return layout.names_in_key(self.step, self.key)

    @property
    def result(self) -> Result:
        return Result(self.step, self.key)

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        return tuple(Need(TRIAL, trial) for trial in self.trials) if self.step == "select" else ()


@dataclass(frozen=True)
class TeachPlan:
    """What a run gives on the training rows of a subset, for all students that are trained towards it."""

    run: RunPlan
    rows: str  # id of the subset
    step: str = "teach"

    @cached_property
    def names(self) -> dict:
        return self.run.names | {"rows": self.rows}

    @cached_property
    def key(self) -> str:
        return layout.key(self.step, self.names)

    @property
    def result(self) -> Result:
        return Result(self.step, self.key)

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        return (Need(TAUGHT, self.run),)


Planned = RunPlan | SearchPlan | TeachPlan | InitialWeights


def needed(of: Planned) -> Iterator[Need]:
    """Yield the needs of a run or a search, direct and indirect ones, each after those that it has itself."""
    for need in of.needs:
        yield from needed(need.of)
        yield need


def variant(strategy: StrategyConfig, value: int | None, trial: int = 0) -> str:
    """Return the id of a point of a strategy's sweep, such as k03, or of a trial, such as trial2; else base."""
    point = "base" if value is None else f"{next(iter(strategy.sweep))}{value:02d}"
    return layout.of_trial(point, trial) if trial else point


def named_points(item: str | dict[str, list[int]]) -> tuple[str, list[int] | None]:
    """Return the strategy that an item of a selection names, and the points of its sweep, None for all."""
    return (item, None) if isinstance(item, str) else next(iter(item.items()))


def points(strategy: StrategyConfig, layers: int) -> Sequence[int | None]:
    """Return the points of a strategy's sweep on an encoder of L layers; [None] where there is no sweep."""
    for values in strategy.sweep.values():
        return list(range(layers + 1)) if isinstance(values, str) else values
    return [None]


def variants(strategy: StrategyConfig, layers: int) -> dict[str, int | None]:
    """Return the points of a strategy's sweep on an encoder of L layers by their ids."""
    return {variant(strategy, value): value for value in points(strategy, layers)}


def named_point(named, values: dict[str, int | None], strategy: StrategyConfig, point: int | None, place: str):
    """Return the point of a sweep at which a run of another strategy is named.

    Args: the entry that names it, by a variant or by the variable of the own sweep; the other's points by their ids;
    the own strategy and the point of its sweep; where it is named. Raises UserError for a point that there is not.
    """
    wanted = variant(strategy, point) if named.variant in strategy.sweep else named.variant
    if wanted not in values:
        raise UserError(f"{place}: {named.strategy} {_no_point(wanted, values)}")
    return values[wanted]


def _no_point(wanted: str, values: dict[str, int | None]) -> str:
    """Return what is wrong with a variant that a strategy has not, and what would be right."""
    known = ", ".join(values)
    if known == "base":
        return f"has no sweep, so no variant {wanted}; leave out variant:"
    if wanted == "base":
        return f"has a run for each of {known}; name one as variant:"
    same = f", or add sweep: {{{wanted}: [...]}} for the same point" if wanted.isalpha() else ""
    return f"has no variant {wanted}; there are {known}; name one as variant:{same}"


def variant_at(strategy: StrategyConfig, layers: int, depth: float) -> str:
    """Return the id of the point of a sweep over layers that is nearest to a share of an encoder's L layers."""
    nearest = floor(depth * layers + 0.5)
    return variant(strategy, min(points(strategy, layers), key=lambda point: abs((point or 0) - nearest)))


def pair_views(task: TaskConfig, pairs: str) -> tuple[str, ...]:
    """Return the views that a strategy reads a task in: its own, that of a bi-encoder, or both."""
    if task.type not in PAIR_TYPES:
        return (task.view,)
    return {"separate": (task.separate,), "best": (task.view, task.separate)}.get(pairs, (task.view,))
