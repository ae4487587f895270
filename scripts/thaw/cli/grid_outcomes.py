"""What the rule of `thaw advise` lost on config/experiments/grid.yaml, and which runs that says anything about."""

import csv
from dataclasses import dataclass

from thaw.core.home import HOME
from thaw.outputs import wording
from thaw.planning.configuration import read_config
from thaw.planning.run_plan import RunPlan
from thaw.schema.catalogue import Catalogue, shipped

RULES = HOME / "config/rules.csv"  # what rules lost there; scripts/record.py writes it
GRID, TABLE = HOME / "config/experiments/grid.yaml", "grid_rules"
RULE, EVERYTHING = "Linear probes, full fine-tuning", "All strategies"  # as that table names them
NOT_MEASURED = (
    "What the rule loses with this encoder, head and these strategies was not measured; on the grid (MiniLM, a "
    "thousand rows): docs/results/grid.md"
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


def was_measured(catalogue: Catalogue, groups: list[list[RunPlan]]) -> bool:
    """Return whether all candidates are of the grid's encoder and head and of the strategies of its rule.

    An entry of the user's own under the name of one of the grid's is another one. Args: the experiment's catalogue; the
    candidates of each task.
    """
    grid, plain = read_config([str(GRID)]), Catalogue(shipped(HOME))
    rules = plain.get("outputs", TABLE, "thaw advise").rules
    (rule,) = [rule for rule in rules if rule.label == RULE]
    known = {"encoders": grid["encoders"], "heads": grid["heads"], "strategies": rule.among}
    for runs in groups:
        used = {
            "encoders": {run.encoder for run in runs},
            "heads": {run.head for run in runs},
            "strategies": {run.strategy for run in runs},
        }
        if used["strategies"] != set(rule.among):
            return False
        for block, names in used.items():
            if any(name not in known[block] or _own(catalogue, plain, block, name) for name in names):
                return False
    return True


def _own(catalogue: Catalogue, plain: Catalogue, block: str, name: str) -> bool:
    return catalogue.get(block, name, block) != plain.get(block, name, block)


def lines(measured: bool) -> list[str]:
    """Return what is to be expected of the rule, in print, where that was measured; else that it was not."""
    if not measured:
        return [NOT_MEASURED]
    outcomes = expected()
    return [f"On the grid ({outcomes[RULE].measured}):", *(f"  {label}: {it}" for label, it in outcomes.items())]
