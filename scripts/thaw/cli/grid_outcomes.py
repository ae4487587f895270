"""What the rule of `thaw advise` lost on config/experiments/grid.yaml, and which runs that says anything about."""

import csv
from dataclasses import dataclass

from thaw.core.home import HOME
from thaw.outputs import wording
from thaw.planning.config_files import read_config
from thaw.planning.cost_estimate import store_of, training_size
from thaw.planning.plan import Plan
from thaw.planning.run_plan import RunPlan
from thaw.schema.catalogue import Catalogue, shipped

RULES = HOME / "config/rules.csv"  # what rules lost there; scripts/record.py writes it
GRID, TABLE = HOME / "config/experiments/grid.yaml", "grid_rules"
RULE, EVERYTHING = "Linear probes, full fine-tuning", "All strategies"  # as that table names them
NOT_MEASURED = (
    "What the rule loses with this encoder, head, strategies and number of rows was not measured; on the grid (MiniLM, "
    "a thousand rows): docs/results/grid.md"
)


@dataclass(frozen=True)
class Outcome:
    """What a rule lost in points by task, what it cost on average in full trainings, and on what it was measured."""

    lost: list[float]
    cost: float
    measured: str

    def __str__(self) -> str:
        mean = sum(self.lost) / len(self.lost)
        mean, most = wording.number(mean), wording.number(max(self.lost))
        return f"{mean} points below the best strategy on average, at most {most}; {self.cost:.1f} full trainings"


def expected() -> dict[str, Outcome]:
    """Return what the rule lost on the grid, and what training all strategies lost there."""
    with open(RULES, encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    outcomes = {}
    for label in (RULE, EVERYTHING):
        mine = [line for line in lines if line["rule"] == label and line["regret"]]
        cost = sum(float(line["cost"]) for line in mine) / len(mine)
        measured = f"{len(mine)} tasks, a thousand rows, {mine[0]['encoder']}, {mine[0]['seeds']} draws"
        outcomes[label] = Outcome([float(line["regret"]) for line in mine], cost, measured)
    return outcomes


def was_measured(plan: Plan, groups: list[list[RunPlan]]) -> bool:
    """Return whether all candidates have the grid's encoder, head and strategies, and half to twice as many rows.

    The rows are those of a subset, its validation rows among them, as on the grid; without a subset those of train, of
    which validation is another split. An entry of the user's own under the
    name of one of the grid's is another one. Args: the plan; by task the candidates, of one encoder, head and subset.
    """
    grid, plain = read_config([str(GRID)]), Catalogue(shipped(HOME))
    (rule,) = [rule for rule in plain.get("outputs", TABLE, "thaw advise").rules if rule.label == RULE]
    (rows,) = {plain.get("subsets", name, "thaw advise").rows for name in grid["subsets"]}
    for runs in groups:
        encoder, head, strategies = runs[0].encoder, runs[0].head, {run.strategy for run in runs}
        if encoder not in grid["encoders"] or head not in grid["heads"] or strategies != set(rule.among):
            return False
        named = [("encoders", encoder), ("heads", head), *(("strategies", name) for name in rule.among)]
        if any(plan.catalogue.get(block, name, block) != plain.get(block, name, block) for block, name in named):
            return False
        if not rows / 2 <= _rows(plan, runs[0]) <= 2 * rows:
            return False
    return True


def _rows(plan: Plan, run: RunPlan) -> float:
    """Return the rows of a run's subset; of all train rows as many as were counted, else are estimated."""
    rows = plan.catalogue.get("subsets", run.subset, "subsets").rows
    return rows or training_size(plan, store_of(plan, plan.job(run.step, run.key)))[0]


def lines(measured: bool) -> list[str]:
    """Return what is to be expected of the rule, in print, where that was measured; else that it was not."""
    if not measured:
        return [NOT_MEASURED]
    outcomes = expected()
    about = f"{outcomes[RULE].measured}; half to twice as many rows count as measured"
    return [f"On the grid ({about}):", *(f"  {label}: {it}" for label, it in outcomes.items())]
