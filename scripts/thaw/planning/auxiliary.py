"""What a run reads of its auxiliary tasks. No torch."""

from thaw.core.errors import UserError
from thaw.planning import compatibility
from thaw.planning.run_grid import RunPlanner, task_spec
from thaw.planning.run_plan import RunPlan, pair_views
from thaw.planning.upstream_jobs import UpstreamJobs
from thaw.schema.entry import spec_of


def auxiliary_tasks(planner: RunPlanner, upstream: UpstreamJobs, run: RunPlan) -> tuple[list[dict], list[str]]:
    """Return what a spec says of the auxiliary tasks of a run, and their stores, which are among the jobs.

    Raises UserError where there is none but the run's own task, or where the run's head does not serve one.
    """
    place = f"{planner.catalogue.place('strategies', run.strategy)}: auxiliary"
    of_phases = [phase.auxiliary.tasks for phase, _ in planner.phases(run) if phase.auxiliary]
    named = dict.fromkeys(task for tasks in of_phases for task in tasks)
    if any(set(tasks) <= {run.task} for tasks in of_phases):
        raise UserError(f"{place}: there is no task but {run.task} itself; name another one under tasks:")
    entries, stores = [], []
    for name in (name for name in named if name != run.task):
        other = upstream.task(name, place)
        (view,) = pair_views(other, run.pairs)
        compatibility.check_head(planner.catalogue, run.head, name, planner.strategy(run), (view,), place)
        if (of_type := planner.head_of(run.head, name)) is None:
            raise UserError(f"{place}: head {run.head} has none for tasks of the type of {name}; leave {name} out")
        head = compatibility.read_by(planner.strategy(run), of_type[1], of_type[0], place)
        if head.layers != planner.head_under(run).layers:
            raise UserError(f"{place}: head {of_type[0]} of {name} reads other layers than that of {run.task}")
        key = upstream.store(run.weights, other.corpus, view)
        entry = {"task": task_spec(name, other), "head": spec_of(head), "data": upstream.data(other.corpus)[0]}
        entries.append(entry | {"features": [upstream.table.job("features", key).digest]})
        stores.append(key)
    return entries, stores
