"""Recommendations: per task the cheapest strategy that is non-inferior to the best, and what papers recommend.

The choice is made on validation alone. Test is opened for what was chosen.
"""

from dataclasses import dataclass
from functools import cached_property

from thaw.declarations.decision import FEWEST_OF_INTERVAL, FEWEST_SEEDS
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.busy_machine import BUSY_SECONDS, COSTS_IN_FLOPS, busy_note
from thaw.outputs.frame.candidates import ALONE, INFERENCE, SHARED, Choice, StrategyCandidate, choice
from thaw.outputs.frame.paired_differences import plain, printed
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.frame.runs_frame import CELL
from thaw.outputs.frame.undefined import undefined_note
from thaw.outputs.tables.table_model import Group, Row, TextTable, text_row, text_table
from thaw.statistics.non_inferiority import NOT_WORSE, UNDECIDED, WORSE, Judged, cheapest, highest, judged
from thaw.statistics.significance import TOO_FEW_SEEDS

TITLES = ("Recommended", "Test score", "Highest on validation", "Difference", "Cost", "Undecided", "Papers")
HEADER = (
    "task split subset encoder head strategy variant validation difference low high answer more_seeds rows_needed "
    "seeds seconds_alone seconds_shared memory_mb trained_parameters inference_flops on_front advised test test_low "
    "test_high papers highest test_difference test_difference_low test_difference_high margin reason training_flops "
    "busy"
)
ALIKE = 0.01  # share by which the operations of a prediction may differ without being named
MOST = 3  # undecided strategies named in a cell; the CSV has all


@dataclass(frozen=True)
class Recommendation:
    """What a line of the table is made of: the choice, its candidates as judged, papers' rules with what each takes.

    busy: whether seconds cannot be compared, see `busy_machine`.
    """

    given: Choice
    every: list[Judged]
    papers: list[tuple[dict, Judged]]
    column: aggregate.Column
    busy: bool = False

    @cached_property
    def best(self) -> StrategyCandidate:
        """The highest on validation."""
        return highest(self.given.candidates)

    @cached_property
    def taken(self) -> list[Judged]:
        """The strategies that are recommended: the first, and the one if it paid all extraction; [] where none is."""
        few = len(self.best.seeds) < FEWEST_OF_INTERVAL
        if few or self.given.refused:
            return []
        return [cheapest(self.every, SHARED), cheapest(self.every, ALONE)]

    def tested(self, candidate: StrategyCandidate, less: StrategyCandidate | None = None) -> str:
        """Return in print the test score of a candidate, or its difference to another one, with its 95 % CI."""
        made = self.given.on_test(candidate, self.column.split, less)
        return printed(made.ci) if made else "undefined"

    def tested_fields(self, candidate: StrategyCandidate, less: StrategyCandidate | None = None) -> list[str]:
        """Return the same as CSV fields, empty ones where a score is undefined."""
        made = self.given.on_test(candidate, self.column.split, less)
        return plain(made.ci) if made else [""] * 3


def build(data, spec: dict) -> TextTable:
    """Return the recommendation for every task, encoder, head and subset.

    Args: spec with `margin` in points and `papers` as `thaw.planning.recommendations.paper_rules` makes them.
    """
    labels, runs, margin = spec["labels"], data.runs, spec["margin"]
    summary = aggregate.summarise(runs, "test", spec["order"])
    columns, names = aggregate.columns(summary, labels), aggregate.group_names(summary, labels)
    groups, lines, fewest, predicting, busy = [], [], FEWEST_OF_INTERVAL, [], busy_note(runs)
    for group, name in names.items():
        rows = []
        for column in columns:
            mine = aggregate.runs_of(summary, group)
            given = choice(mine, runs, group, column.task, column.split, data.predictions)
            if given:
                every = judged(given.candidates, margin)
                papers = _papers(spec["papers"], column.task, group[1], every)
                answer = Recommendation(given, every, papers, column, bool(busy))
                rows.append(_row(answer, spec))
                lines += _lines(answer, group, margin)
                predicting.append(_prediction(answer, labels))
                fewest = min(fewest, len(answer.best.seeds))
        groups.append(Group(name, [], rows))
    titles = _without_dashes(groups)
    notes = _notes(margin, fewest, any(predicting), "Cost" in titles)
    notes += ([*busy, COSTS_IN_FLOPS] if busy and "Cost" in titles else []) + _unrun(runs, labels)
    notes += undefined_note(runs[runs["role"] == "validation"], labels, "They are no candidates there")
    return text_table(spec, titles, groups, notes, HEADER, lines, of="Task", sentences=True)


def _without_dashes(groups: list[Group]) -> list[str]:
    """Take the columns that have a dash in every row out of the rows, and return the titles of the others."""
    rows = [row for group in groups for row in group.rows]
    kept = [i for i in range(len(TITLES)) if any(row.cells[i].text != wording.DASH for row in rows)]
    for row in rows:
        row.cells = [row.cells[i] for i in kept]
    return [TITLES[i] for i in kept]


def _papers(papers: list[dict], task: str, encoder: str, every: list[Judged]) -> list[tuple[dict, Judged]]:
    """Return the rules of papers about a task and encoder, each with the strategy that it recommends."""
    by_point = {(one.candidate.row.strategy, one.candidate.row.variant): one for one in every}
    wanted = [rule for rule in papers if (rule["task"], rule["encoder"]) == (task, encoder)]
    points = [(rule, by_point.get((rule["strategy"], rule["variant"]))) for rule in wanted]
    return [(rule, one) for rule, one in points if one]


def _row(answer: Recommendation, spec: dict) -> Row:
    """Return the line of a task; what is recommended and the highest on validation lead to their runs."""
    row = text_row(answer.column.title, _cells(answer, spec))
    row.cells[TITLES.index("Highest on validation")].link = row_anchor(answer.best.row)
    if answer.taken:
        for title in ("Recommended", "Test score"):
            row.cells[TITLES.index(title)].link = row_anchor(answer.taken[0].candidate.row)
    return row


def _cells(answer: Recommendation, spec: dict) -> list[str]:
    labels, best = spec["labels"], answer.best
    tested = difference = cost = wording.DASH
    if answer.taken:
        taken = answer.taken[0].candidate
        tested = answer.tested(taken)
        if taken is not best:
            difference = f"{_bounds(answer.taken[0])} on validation; {answer.tested(taken, less=best)} on test"
        cost = _cost(taken, answer)
        if taken is not best:
            cost += f"; the highest {_cost(best, answer)}"
        cost += _prediction(answer, labels)
    said = [f"{rule['paper']}: {rule['says']} ({_agreement(rule, one, answer)})" for rule, one in answer.papers]
    return [
        _recommended(answer, spec),
        tested,
        f"{_name_of(best, labels)} ({wording.number(best.validation)})",
        difference,
        cost,
        _undecided(answer, labels),
        "; ".join(said) or wording.DASH,
    ]


def _cost(candidate: StrategyCandidate, answer: Recommendation) -> str:
    """Return what training a candidate costs: seconds, or FLOPs where seconds cannot be compared."""
    spent = wording.charged(candidate.costs[SHARED], candidate.costs[ALONE])
    return f"{wording.operations(candidate.row.flops)} ({BUSY_SECONDS}: {spent})" if answer.busy else spent


def _recommended(answer: Recommendation, spec: dict) -> str:
    """Return what is recommended in print, or why nothing is."""
    labels, best = spec["labels"], answer.best
    if answer.taken:
        taken, alone = answer.taken
        text = _name(taken, labels)
        if taken.answer != NOT_WORSE:
            text += f", the highest on validation (not shown to be within {spec['margin']:g} of the best)"
        return text if taken is alone else f"{text}; charged with the whole feature extraction {_name(alone, labels)}"
    if answer.given.refused:
        return f"None: {answer.given.refused}"
    return f"None with {wording.plural(len(best.seeds), 'seed')}; highest on validation: {_name_of(best, labels)}"


def _prediction(answer: Recommendation, labels: dict) -> str:
    """Return what a prediction costs with the recommended strategy, in % of full fine-tuning's, where that differs.

    A dash where one of the two is a result from before predictions were counted, nothing where all of them are.
    """
    whole = next((one for one in answer.every if one.candidate.row.embeddings), None)
    if whole is None or not answer.taken or not any(one.candidate.row.inference > 0 for one in answer.every):
        return ""
    share = answer.taken[0].candidate.row.inference / whole.candidate.row.inference
    if abs(share - 1) < ALIKE:
        return ""
    return f"; inference {wording.number(100 * share) if share == share else wording.DASH} % of {_name(whole, labels)}"


def _bounds(one: Judged) -> str:
    return wording.with_interval(one.difference.value, one.difference.low, one.difference.high)


def _name(one: Judged, labels: dict) -> str:
    return _name_of(one.candidate, labels)


def _name_of(candidate: StrategyCandidate, labels: dict) -> str:
    return aggregate.row_name(candidate.row, labels)


def _undecided(answer: Recommendation, labels: dict) -> str:
    """Return the undecided strategies that are cheaper than what is recommended, with what would decide them."""
    every, taken = answer.every, answer.taken
    cheaper = sorted(every, key=lambda one: one.candidate.costs[SHARED])
    cheaper = cheaper[: cheaper.index(taken[0])] if taken else cheaper
    open_ = [one for one in cheaper if one.answer == UNDECIDED]
    least = "at least " * (len(answer.best.seeds) < FEWEST_OF_INTERVAL)  # then it is all that is known
    lacks = [least + wording.lacking(one.needed, "validation set") if one.needed else wording.TOO_MANY for one in open_]
    if not taken and open_ and len(set(lacks)) == 1:
        return f"{len(open_)} of {len(every)} strategies ({lacks[0]})"
    names = [f"{_name(one, labels)} ({_bounds(one)}; {what})" for one, what in zip(open_[:MOST], lacks, strict=False)]
    more = f"; {len(open_) - MOST} more" if len(open_) > MOST else ""
    return "; ".join(names) + more or wording.DASH


def _agreement(rule: dict, one: Judged, answer: Recommendation) -> str:
    """Return how a paper's choice compares with the recommended strategy.

    It is contradicted only where a claim would fail: over six seeds, on real text, by an encoder like the paper's.
    """
    synthetic = answer.column.synthetic
    if one in answer.taken[:1]:
        return "the same"
    if one.answer == NOT_WORSE:
        return "non-inferior, but more expensive" if answer.taken else "non-inferior"
    away, seeds = wording.number(one.difference.value), len(one.candidate.seeds)
    if one.answer != WORSE:
        return f"undecided, {away}"
    if seeds >= FEWEST_SEEDS and rule["like"] and not synthetic:
        return f"contradicted, {away}"
    limits = [wording.plural(seeds, "seed")]
    limits += [wording.SYNTHETIC] * synthetic + ["another kind of encoder"] * (not rule["like"])
    return f"differs here ({', '.join(limits)}), {away}"


def _lines(answer: Recommendation, group: tuple, margin: float) -> list[list]:
    """Return a CSV line for each candidate strategy.

    Only what validation chose has a test score: what is recommended, and the highest on validation.
    """
    best, taken, lines = answer.best, answer.taken, []
    for one in answer.every:
        row, difference = one.candidate.row, one.difference
        cell = [answer.column.task, answer.column.split, *group, row.strategy, row.variant]
        numbers = [one.candidate.validation, difference.value, difference.low, difference.high]
        lacks = [one.needed.seeds, one.needed.rows or ""] if one.needed else ["", ""]
        costs = [f"{cost:.6g}" for name, cost in one.candidate.costs.items() if name != INFERENCE]
        costs.append(f"{row.inference:.6g}" if row.inference > 0 else "")
        is_best, is_taken = one.candidate is best, any(one is other for other in taken)
        tested, away = [""] * 3, [""] * 3
        if is_best or is_taken:
            tested = answer.tested_fields(one.candidate)
        if is_taken and not is_best:
            away = answer.tested_fields(one.candidate, less=best)
        whose = ";".join(rule["paper"] for rule, other in answer.papers if other is one)
        lines.append([*cell, *(f"{number:.4f}" for number in numbers), one.answer, *lacks, len(one.candidate.seeds)])
        advised = int(bool(taken) and one is taken[0])
        reason = "" if taken or not is_best else answer.given.refused or TOO_FEW_SEEDS
        lines[-1] += [*costs, int(one.on_front), advised, *tested, whose, int(is_best), *away, margin, reason]
        lines[-1] += [f"{row.flops:.6g}", int(answer.busy)]
    return lines


def _notes(margin: float, fewest: int, predicting: bool, costs: bool) -> list[str]:
    points = wording.points(margin)
    notes = [
        "Recommended: the cheapest strategy that is shown on validation to be within "
        f"{points} of the best, whichever that is: 95 % bounds that hold for all strategies together (multiple "
        f"comparisons with the best; {wording.CI_ON_VALIDATION}). Where that is shown of none, the highest on "
        "validation. The choice reads validation alone. Test scores, with their 95 % CI: of what is recommended and "
        "(CSV) of the highest on validation.",
        "None is recommended where a baseline that trains no encoder scores at least as much on validation as every "
        "strategy, or no strategy is shown to be above the majority class.",
        "Undecided: strategies whose bounds contain the margin, where one is recommended the cheaper ones alone, with "
        "the seeds or rows of validation that would decide them if mean and standard deviations stay the same.",
    ]
    if costs:
        notes.append(
            "Cost: seconds of training, medians over seeds, with the runs that it starts from, all trials of the "
            "search that chose its settings, and its share of the feature extraction; with the whole extraction where "
            f"that is {wording.MUCH:g} times as much or more."
        )
    if predicting:
        notes.append(
            "Inference: operations of one prediction, in % of those after full fine-tuning, where they differ by 1 % "
            "or more: an encoder ends at the highest layer that its head reads, and a side network is added."
        )
    return notes + wording.few_seeds(fewest, "Nothing is recommended from it.")


def _unrun(runs, labels: dict) -> list[str]:
    """Return the cells that the time budget left without all seeds, with the reason."""
    absent = runs[(runs["kind"] == "run") & runs["missing"].str.startswith(f"{wording.NOT_RUN}: ")]
    why = absent["missing"].str.removeprefix(f"{wording.NOT_RUN}: ").str.split(",").str[0]
    given = []
    for reason, rows in absent.groupby(why, sort=False):
        cells = rows.drop_duplicates(CELL)
        names = dict.fromkeys(
            f"{wording.task_name(labels, row.task)}: {aggregate.row_name(row, labels)}" for row in cells.itertuples()
        )
        given.append(f"{reason} ({wording.listing(names)})")
    return [f"Preliminary; not run, or not with all seeds: {'; '.join(given)}."] * bool(given)
