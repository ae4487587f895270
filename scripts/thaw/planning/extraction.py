"""Whether what is selected fits span extraction, which reads windows over a context and gives two of its tokens."""

from thaw.core.errors import UserError
from thaw.declarations.task_types import EXTRACTION_TYPES
from thaw.schema.catalogue import Catalogue
from thaw.schema.experiment import RUN_BASELINES, ExperimentConfig
from thaw.schema.strategy import StrategyConfig


def _check_windows(catalogue: Catalogue, name: str, views: tuple[str, ...]) -> None:
    """Find out whether the views that a task is read in are windows where it extracts spans, and else are none."""
    extracts = catalogue.get("tasks", name, "tasks").type in EXTRACTION_TYPES
    for view in views:
        windows = catalogue.get("views", view, "views").stride is not None
        if windows != extracts:
            place = catalogue.place("tasks", name, "view")
            if windows:
                raise UserError(f"{place}: view {view} has a stride, which is for span extraction; name another view")
            raise UserError(f"{place}: span extraction reads windows, and view {view} has no stride; say view: windows")


def check_extraction(catalogue: Catalogue, strategy: StrategyConfig, task: str, views: tuple, place: str) -> None:
    """Find out whether a task is read in the views that it needs, and span extraction by a strategy that can train it.

    It gives no vector and no logits of whole texts. Args: place, file and line of the strategy.
    """
    _check_windows(catalogue, task, views)
    if catalogue.get("tasks", task, "tasks").type not in EXTRACTION_TYPES:
        return
    right = "say only: for it, or take a strategy without"
    if strategy.teacher:
        raise UserError(f"{place}: teacher: compares texts or words, and {task} is span extraction; {right} a teacher")
    if strategy.fits_to_convergence:
        raise UserError(
            f"{place}: lbfgs fits a linear head on vectors of texts or words, and {task} is span extraction; use "
            "frozen_sgd"
        )


def check_baseline(catalogue: Catalogue, experiment: ExperimentConfig, name: str) -> None:
    """Find out whether a baseline that is a run has a head for all tasks."""
    head, _, twin = RUN_BASELINES[name]
    for task in experiment.tasks if twin else ():
        if catalogue.get("tasks", task, "tasks").type in EXTRACTION_TYPES:
            raise UserError(
                f"{experiment.place('baselines', item=name)}: {name} has a {head} head, and {task} is span extraction; "
                f"name {experiment.encoders[0]}{twin} under encoders: in its place"
            )
