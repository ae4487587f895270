"""The recommendation of an experiment: by task its arms from cheap to dear, and the one to take."""

from dataclasses import fields

from thaw.compute_cost.deployment import Deployment
from thaw.decision.record import TaskAnswer
from thaw.evaluation.calibration import Calibration
from thaw.outputs.frame import price
from thaw.outputs.frame.result_links import cell_anchor
from thaw.outputs.frame.task_arms import answers
from thaw.outputs.render.typed_table import Cell, Group, Row, Table, said
from thaw.outputs.tables import footnotes
from thaw.words import answer_text as words

# Where chances came as printed in the replay: with more strategies or fewer rows those above one half are too high.
MOST_JUDGED, LEAST_ROWS = 8, 100
CALIBRATION = [field.name for field in fields(Calibration)]  # columns of the CSV
TITLES = ("Score", "Difference", "Best", "Expected loss", "Price")
UNITS = ("milliseconds", "megabytes", "million")  # of Deployment: columns where any arm has them, and of the CSV
NOTES = [
    "From cheap to dear; bold: what to take. Scores × 100.",
    "Difference: to what to take, with a 95 % interval over rows and seeds that holds for all arms together.",
    f"Best: chance to be the best, among at most {MOST_JUDGED} strategies and by at least {LEAST_ROWS} rows.",
    "Expected loss: points that an arm is expected to lose to the best.",
    "Price: of training, of the runs it starts from, of its search, and a share of the feature extraction.",
]


def build(data, spec: dict) -> Table:
    """Return the arms of each task and group of runs, with the answers as values.

    Args: spec with `within` and `price_weight`, see `decision.decide`.
    """
    made = answers(data, spec)
    served = [one for answer in made for one in answer.deployment.values()]
    units = [unit for unit in UNITS if any(getattr(one, unit) is not None for one in served)]
    groups = [
        Group(
            f"{answer.title}, {answer.metric}. {words.headline(answer)}",
            [_row(answer, arm, units) for arm in answer.decision.arms],
        )
        for answer in made
    ]
    lines = [f"{answer.title}: {line}" for answer in made for line in [*words.reasons(answer), words.scale(answer)]]
    lines += [
        *NOTES,
        *[words.UNITS[unit][1] for unit in units],
        *[words.NO_MILLION] * ("machine_hour" in spec and "million" not in units),
        *footnotes.same_split(data.runs, spec["labels"]),
        *price.note(data.runs),
    ]
    titles = (*TITLES, *(words.UNITS[unit][0].format(served[0].currency) for unit in units))
    return Table.of_spec(spec, titles, groups, lines, of="Arm", answers=made)


def _row(answer: TaskAnswer, arm, units: list[str]) -> Row:
    decision, away = answer.decision, arm.difference
    taken, cell = arm.name == decision.taken, answer.cell_of(arm.name)
    link = cell_anchor(answer.task, {"kind": "run"} | cell) if cell else ""
    judged = sum(one.encoder for one in decision.arms) <= MOST_JUDGED and decision.rows >= LEAST_ROWS
    cells: list[Cell | None] = [
        Cell(arm.estimate, best=taken, link=link),
        said("", away.value) if taken else Cell(away.value, low=away.low, high=away.high),
        Cell(100 * arm.chance, "%", digits=0) if judged else None,
        Cell(arm.loss, best=taken),
        said(words.price(arm.price), arm.price, unit="s"),
        *(_unit(answer.deployment.get(arm.name), unit) for unit in units),
    ]
    return Row(answer.names[arm.name], cells, [line(answer, arm)])


def _unit(deployment: Deployment | None, unit: str) -> Cell | None:
    value = getattr(deployment, unit, None)
    return None if value is None else said(f"{value:.3g}", value)


def line(answer: TaskAnswer, arm) -> dict:
    """Return what an answer says of an arm, as its line of CSV."""
    decision, away, calibration = answer.decision, arm.difference, answer.calibration.get(arm.name)
    deployment = answer.deployment.get(arm.name)
    strategy, variant = answer.points.get(arm.name, ("", ""))
    return {
        "task": answer.task,
        "subset": answer.subset,
        "encoder": answer.encoder,
        "head": answer.head,
        "arm": arm.name,
        "strategy": strategy,
        "variant": variant,
        "encoder_used": int(arm.encoder),
        "score": arm.estimate,
        "score_low": arm.low,
        "score_high": arm.high,
        "difference": away.value,
        "low": away.low,
        "high": away.high,
        "answer": away.answer,
        "chance": arm.chance,
        "expected_loss": arm.loss,
        "price": arm.price,
        "parameters": arm.parameters,
        "listed": int(arm.listed),
        "taken": int(arm.name == decision.taken),
        "flags": ";".join(arm.flags),
        "rows": decision.rows,
        "seeds": decision.seeds,
        "resolution": decision.resolution,
        **{name: getattr(calibration, name, "") for name in CALIBRATION},
        **{unit: "" if (value := getattr(deployment, unit, None)) is None else value for unit in UNITS},
    }
