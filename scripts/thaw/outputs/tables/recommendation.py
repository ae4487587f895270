"""The recommendation of an experiment: by task its arms from cheap to dear, and the one to take."""

from thaw.decision.record import TaskAnswer
from thaw.outputs.frame import price
from thaw.outputs.frame.result_links import cell_anchor
from thaw.outputs.frame.task_arms import answers
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table
from thaw.words import answer_text as words
from thaw.words.numbers import number

TITLES = ("Score", "Difference", "Best", "Expected loss", "Price")
HEADER = (
    "task subset encoder head arm strategy variant encoder_used score difference low high answer chance "
    "expected_loss price listed taken flags rows seeds resolution"
)
NOTES = [
    "From cheap to dear; bold: what to take. Scores × 100.",
    "Difference: to what to take, with a 95 % interval over rows and seeds that holds for all arms together.",
    "Best: chance to be the best. Expected loss: points that an arm is expected to lose to the best.",
    "Price: of training, of the runs it starts from, of its search, and a share of the feature extraction.",
]


def build(data, spec: dict) -> TextTable:
    """Return the arms of each task and group of runs, with the answers as values.

    Args: spec with `within` and `price_weight`, see `decision.decide`.
    """
    made = answers(data, spec)
    groups = [Group(_title(answer), [], [_row(answer, arm) for arm in answer.decision.arms]) for answer in made]
    lines = [_line(answer, arm) for answer in made for arm in answer.decision.arms]
    said = [f"{answer.title}: {line}" for answer in made for line in [*words.reasons(answer), words.scale(answer)]]
    notes = [*said, *NOTES, *price.note(data.runs)]
    return text_table(spec, TITLES, groups, notes, HEADER, lines, of="Arm", answers=made)


def _title(answer: TaskAnswer) -> str:
    return f"{answer.title}, {answer.metric}. {words.headline(answer)}"


def _row(answer: TaskAnswer, arm) -> Row:
    taken, away = arm.name == answer.decision.taken, arm.difference
    cell = answer.cell_of(arm.name)
    link = cell_anchor(answer.task, {"kind": "run"} | cell) if cell else ""
    ends = "" if taken else f"[{number(away.low)}, {number(away.high)}]"
    cells = [
        TextCell(number(arm.estimate), arm.estimate, taken, link=link),
        TextCell("" if taken else number(away.value), away.value, interval=ends),
        TextCell(f"{100 * arm.chance:.0f} %", arm.chance),
        TextCell(number(arm.loss), arm.loss, taken),
        TextCell(words.price(arm.price), arm.price),
    ]
    return Row({}, answer.names[arm.name], cells)


def _line(answer: TaskAnswer, arm) -> list:
    decision, away = answer.decision, arm.difference
    place = [answer.task, answer.subset, answer.encoder, answer.head, arm.name, *answer.points.get(arm.name, ("", ""))]
    numbers = [f"{value:.4f}" for value in (arm.estimate, away.value, away.low, away.high)]
    judged = [f"{arm.chance:.4f}", f"{arm.loss:.4f}", f"{arm.price:.6g}"]
    judged += [int(arm.listed), int(arm.name == decision.taken)]
    data = [";".join(arm.flags), decision.rows, decision.seeds, f"{decision.resolution:.4f}"]
    return [*place, int(arm.encoder), *numbers, away.answer, *judged, *data]
