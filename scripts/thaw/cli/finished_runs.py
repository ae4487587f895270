"""What the runs that are there say, while others of their experiment are still to be trained."""

import io
import math
from pathlib import Path

from thaw.core.errors import UserError
from thaw.decision import prior
from thaw.decision.arms import arm_name
from thaw.decision.record import TaskAnswer
from thaw.decision.stops import gain_of_unseen
from thaw.declarations.output_kind import Use
from thaw.declarations.outputs import kinds_for
from thaw.declarations.task_types import PAIR_TYPES
from thaw.planning.plan import Plan
from thaw.planning.run_plan import RunPlan


def current_answers(plan: Plan, name: str, logs: str = "logs") -> list[TaskAnswer]:
    """Return the answers of an experiment by what is there, as its table of recommendations would have them.

    None where no run is there. Args: the experiment; the folder of logs, which says why a result is missing.
    """
    import pandas

    from thaw.outputs.frame import collection, task_arms
    from thaw.outputs.frame.output_data import OutputData
    from thaw.outputs.frame.runs_frame import COLUMNS, read_runs

    try:
        rows = collection.rows(plan.status.collect_what_is_there(), plan.results, logs)
    except UserError:  # no run has a result yet
        return []
    table = io.StringIO(pandas.DataFrame(rows, columns=COLUMNS).to_csv(index=False))
    spec = advice_spec(plan, name)
    data = OutputData(Path(plan.results), read_runs(table), first=spec.get("first_draws"))
    return task_arms.answers(data, spec)


def gain_of(plan: Plan, run: RunPlan, made: list[TaskAnswer]) -> float:
    """Return the points that the run of a strategy that was not tried may gain on average.

    It is infinite for a head on the frozen encoder, by which nobody loses, and where nothing is known. So without a
    prior for the encoder and the type of task every strategy runs once. Args: the answers by what is there.
    """
    group = (run.task, run.subset, run.encoder, run.head)
    answer = next((one for one in made if (one.task, one.subset, one.encoder, one.head) == group), None)
    if answer is None or run.step == "fit_heads":
        return math.inf
    task_type = plan.catalogue.get("tasks", run.task, "tasks").type
    if not prior.is_measured(run.encoder, task_type):
        return math.inf
    trains_layers, name = plan.job(run.step, run.key).trains_layers, arm_name(run.strategy, run.variant)
    gain = prior.expected(run.encoder, task_type, name, trains_layers)
    return gain_of_unseen(answer.decision, gain, run.read_as if task_type in PAIR_TYPES else "")


def advice_spec(plan: Plan, name: str) -> dict:
    """Return what is read of the spec of the experiment's table of recommendations; without one that of its report."""
    kinds, report = kinds_for(Use.ADVICE), plan.job("report", name).spec
    ids = [output["id"] for output in report["outputs"] if output["kind"] in kinds]
    return plan.job("table", f"{name}/{ids[0]}").spec if ids else {key: report[key] for key in ("labels", "order")}
