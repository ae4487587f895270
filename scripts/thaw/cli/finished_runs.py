"""What the runs that are there say, while others of their experiment are still to be trained."""

import io
from pathlib import Path

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.decision.record import TaskAnswer
from thaw.declarations.output_kind import Use
from thaw.declarations.outputs import kinds_for
from thaw.planning.plan import Plan

LEAST_GAIN = 0.1  # points: a further seed that may bring less on average is not trained


def current_answers(plan: Plan, name: str, logs: str = "logs") -> list[TaskAnswer]:
    """Return the answers of an experiment by what is there, as its table of recommendations would have them.

    None where no run is there. Args: the experiment; the folder of logs, which says why a result is missing.
    """
    import pandas

    from thaw.outputs.frame import collection, task_arms
    from thaw.outputs.frame.output_data import OutputData
    from thaw.outputs.frame.runs_frame import COLUMNS, read_runs

    try:
        rows = collection.rows(plan.status.collect_what_is_there(name), plan.results, logs)
    except UserError:  # no run has a result yet
        return []
    table = io.StringIO(pandas.DataFrame(rows, columns=COLUMNS).to_csv(index=False))
    spec = _spec(plan, name)
    data = OutputData(Path(plan.results), read_runs(table), first=spec.get("first_draws"))
    return task_arms.answers(data, spec)


def decided(made: list[TaskAnswer]) -> dict[str, str]:
    """Return by folder of a cell why it needs no further seed: what that may bring is not worth training it."""
    return {
        layout.cell(cell): f"further seeds may gain {arm.gain:.1f} points"
        for answer in made
        for arm in answer.decision.arms
        if arm.gain < LEAST_GAIN and (cell := answer.cell_of(arm.name))
    }


def _spec(plan: Plan, name: str) -> dict:
    """Return what is read of the spec of the experiment's table of recommendations; without one that of its report."""
    kinds, report = kinds_for(Use.ADVICE), plan.job("report", name).spec
    ids = [output["id"] for output in report["outputs"] if output["kind"] in kinds]
    return plan.job("table", f"{name}/{ids[0]}").spec if ids else {key: report[key] for key in ("labels", "order")}
