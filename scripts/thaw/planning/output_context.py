"""What the plan of an output reads: an experiment with all that was planned for it."""

from dataclasses import dataclass
from functools import cached_property

from thaw.planning.jobs import Job
from thaw.planning.run_grid import RunPlanner
from thaw.planning.run_plan import RunPlan, named_points
from thaw.schema.catalogue import Catalogue
from thaw.schema.experiment import ExperimentConfig


@dataclass(frozen=True)
class OutputContext:
    """An experiment, the catalogues, its runs, from which kind of source each corpus comes, its probes' jobs.

    selected: the runs that it shows, and those that are there because these need them. merged: by step, merge and
    latency, the digests of the results of merges by key.
    """

    experiment: ExperimentConfig
    catalogue: Catalogue
    planner: RunPlanner
    selected: list[RunPlan]
    origins: dict[str, str]
    probed: list[Job]
    merged: dict[str, dict[str, str]]

    @cached_property
    def cells(self) -> dict[tuple[str, str, str, str], list[RunPlan]]:
        """The runs that are shown, without trials and what others start from, by (task, subset, encoder, head)."""
        by_cell: dict[tuple, list[RunPlan]] = {}
        for run in self.selected:
            if self.planner.is_shown(run):
                by_cell.setdefault((run.task, run.subset, run.encoder, run.head), []).append(run)
        return by_cell

    @cached_property
    def runs(self) -> list[RunPlan]:
        """The runs that tables and figures show, and none that only others need."""
        return [run for runs in self.cells.values() for run in runs]

    def is_frozen(self, run: RunPlan) -> bool:
        """Return whether a run trains its head alone."""
        return self.planner.thawed(run) == (0, False)

    def students(self, run: RunPlan) -> tuple[int | None, str]:
        """Return the layers of a run's student, None for no student, and the strategy of its teacher, if it has one."""
        strategy, shape = self.planner.strategy(run), self.planner.shape(run)
        if shape is None and strategy.teacher is None:
            return None, ""
        layers = len(shape.layers) if shape else self.planner.layers(run.encoder)
        return layers, strategy.teaching.strategy if strategy.teaching else ""

    @property
    def strategies(self) -> list[str]:
        """The strategies that the experiment names."""
        return [named_points(item)[0] for item in self.experiment.strategies]
