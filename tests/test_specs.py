"""No change of structure makes a finished result again: the specs of all shipped experiments are what they were.

tests/specs.json holds, for each experiment and step from `prepare` to `probe`, how many jobs there are and one digest
of all their specs, planned with an empty results folder; and what their outputs read is what they run. If results must
change or an experiment has grown, `python tests/test_specs.py` records what is planned now; say why in the commit.
"""

import sys
from pathlib import Path

import pytest

from thaw.core import layout
from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.outputs.frame.collection import selected
from thaw.planning.configuration import load_plan, read_config

HOME = Path(__file__).parents[1]
RECORD = HOME / "tests/specs.json"
DATA = HOME.parent / "shared/data"
PRINTED = {"collect", "table", "figure", "report"}  # steps that only show results
EXPERIMENTS = ["config/config.yaml"] + [
    path.relative_to(HOME).as_posix() for path in sorted((HOME / "config/experiments").glob("*.yaml"))
]


def planned(experiment: str, data: bool) -> dict | None:
    """Return {step: [number of jobs, digest of all their specs]} of an experiment, or None where it has no plan.

    Args: the experiment's file; whether the real data sets are there.
    """
    try:
        config = read_config([str(HOME / experiment)], {"data_dir": str(DATA)} if data else {})
        plan = load_plan(config, HOME, results="no_results_yet")
    except UserError:  # its data are not here
        return None
    check_read(plan.experiment, plan)
    specs = {step: {key: job.digest for key, job in jobs.items()} for step, jobs in plan.jobs.items()}
    return {step: [len(jobs), digest(jobs)] for step, jobs in specs.items() if jobs and step not in PRINTED}


def check_read(experiment, plan) -> None:
    """Check that outputs read what is run: of each point of a strategy all runs that `only` allows, and no others."""
    spec = plan.job("collect", experiment.experiment).spec
    results = [one for one in selected(spec) if one.step == "train"]
    read = {tuple(map(str, one.names.values())): one.row["kind"] for one in results}
    made = {tuple(str(run.names[part]) for part in layout.RUN): run for run in plan.runs}
    assert read.keys() <= made.keys(), f"outputs of {experiment.experiment} read runs that nothing makes"
    shown = {key for key, kind in read.items() if kind == "run"}
    points = {(made[key].encoder, made[key].strategy, made[key].variant) for key in shown}
    allowed = {
        key
        for key, run in made.items()
        if (run.encoder, run.strategy, run.variant) in points
        and run.head in experiment.heads  # a baseline's run has one of its own
        and run.subset in experiment.subsets
        and run.seed in experiment.seeds
        and experiment.meet(run.task, run.encoder, run.head, run.strategy)
    }
    assert shown == allowed, experiment.experiment


def recorded() -> dict:
    """Return what all experiments plan now, in the form of tests/specs.json."""
    return {f"data={data}": {name: planned(name, data) for name in EXPERIMENTS} for data in (False, True)}


# Experiments whose data no Hub has: EWT by genre, and datasets that are published elsewhere.
LOCAL = {"domains_ewt", "domains_ewt_tuned", "label_noise", "unseen", "unseen_sizes", "unseen_updates", "word_vectors"}


def test_all_others_plan_on_a_machine_without_data():
    plans = read_json(RECORD)["data=False"]
    assert {Path(name).stem for name, plan in plans.items() if plan is None} == LOCAL


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("data", [False, True])
def test_specs_are_what_they_were(experiment, data, request):
    if data:
        request.getfixturevalue("shared_data")
    golden = read_json(RECORD)[f"data={data}"]
    assert planned(experiment, data) == golden[experiment]


if __name__ == "__main__":
    sys.exit(write_json(RECORD, recorded()))
