"""RunPlans as cells of the grid (task x subset x encoder x head x strategy x variant x seed), their names and views."""

from dataclasses import dataclass, field
from math import floor

from thaw.planning.initial_weights import InitialWeights
from thaw.schema.corpora import TaskConfig
from thaw.schema.strategy import StrategyConfig


@dataclass(frozen=True)
class RunPlan:
    """One cell of the grid.

    `views` are those that it reads, two where validation chooses between them; `pairs` says how it came to them.
    `weights` are those of the encoder that it begins with. `value` is the number behind a variant such as k03, `after`
    the run it starts from. A trial of a search has its number and its settings; a run that takes its settings from a
    search has all trials, and the search's cell.
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
    after: "RunPlan | None" = None
    trial: int = 0
    settings: dict = field(default_factory=dict, compare=False)
    trials: tuple["RunPlan", ...] = ()
    search: str = ""

    @property
    def cell(self) -> str:
        """The folder of the variant, without the seed."""
        names = (self.task, self.subset, self.encoder, self.head, self.strategy, self.variant)
        return "runs/" + "/".join(names)

    @property
    def folder(self) -> str:
        """The folder of the run's files, below results."""
        return f"{self.cell}/seed{self.seed}"

    @property
    def key(self) -> str:
        """The key of the run's job: fit_heads makes all seeds of a variant at once."""
        return self.cell if self.step == "fit_heads" else self.folder


def variant(strategy: StrategyConfig, value: int | None, trial: int = 0) -> str:
    """Return the id of a point of a strategy's sweep, such as k03, or of a trial, such as trial2; else base."""
    point = [] if value is None else [f"{next(iter(strategy.sweep))}{value:02d}"]
    return "_".join(point + [f"trial{trial}"] * bool(trial)) or "base"


def named_points(item: str | dict[str, list[int]]) -> tuple[str, list[int] | None]:
    """Return the strategy that an item of a selection names, and the points of its sweep, None for all."""
    return (item, None) if isinstance(item, str) else next(iter(item.items()))


def points(strategy: StrategyConfig, layers: int) -> list:
    """Return the points of a strategy's sweep on an encoder of L layers; [None] where there is no sweep."""
    values = next(iter(strategy.sweep.values()), [None])
    return list(range(layers + 1)) if values == "layers" else values


def variant_at(strategy: StrategyConfig, layers: int, depth: float) -> str:
    """Return the id of the point of a sweep over layers that is nearest to a share of an encoder's L layers."""
    due = floor(depth * layers + 0.5)
    return variant(strategy, min(points(strategy, layers), key=lambda point: abs(point - due)))


def is_pair(task: TaskConfig) -> bool:
    """Return whether a task is on pairs of texts."""
    return task.type.startswith("pair_")


def pair_views(task: TaskConfig, pairs: str) -> tuple[str, ...]:
    """Return the views that a strategy reads a task in: its own, the one that reads pairs apart, or both."""
    if not is_pair(task):
        return (task.view,)
    return {"separate": (task.separate,), "best": (task.view, task.separate)}.get(pairs, (task.view,))
