"""Recommendations: per task the cheapest strategy that is non-inferior to the best, and what papers recommend.

The choice is made on validation alone. Test is opened for what was chosen.
"""

from thaw.declarations.decision import FEWEST_OF_INTERVAL, FEWEST_SEEDS
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.candidates import ALONE, INFERENCE, SHARED, Choice, choice
from thaw.outputs.frame.paired_differences import plain, printed
from thaw.outputs.frame.runs_frame import CELL
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table
from thaw.statistics.non_inferiority import NOT_WORSE, UNDECIDED, WORSE, Judged, cheapest, highest, judged

TITLES = ("Recommended", "Test score", "Highest on validation", "Difference", "Cost", "Undecided", "Papers")
HEADER = (
    "task split subset encoder head strategy variant validation difference low high answer more_seeds rows_needed "
    "seeds seconds_alone seconds_shared memory_mb trained_parameters inference_flops on_front advised test test_low "
    "test_high papers highest test_difference test_difference_low test_difference_high margin reason"
)
FEW_SEEDS = "too few seeds"
ALIKE = 0.01  # share by which the operations of a prediction may differ without being named
MOST = 3  # undecided strategies named in a cell; the CSV has all


def build(data, spec: dict) -> TextTable:
    """Return the recommendation for every task, encoder, head and subset.

    Args: spec with `margin` in points and `papers` as `thaw.planning.recommendations.paper_rules` makes them.
    """
    labels, runs, margin = spec["labels"], data.runs, spec["margin"]
    summary = aggregate.summarise(runs, "test", spec["order"])
    columns, names = aggregate.columns(summary, labels), aggregate.group_names(summary, labels)
    groups, lines, fewest, predicting = [], [], FEWEST_OF_INTERVAL, []
    for group, name in names.items():
        rows = []
        for column in columns:
            mine = aggregate.runs_of(summary, group)
            given = choice(mine, runs, group, column.task, column.split, data.predictions)
            if given:
                every = judged(given.candidates, margin)
                papers = _papers(spec["papers"], column.task, group[1], every)
                cells = _cells(given, every, papers, column, spec)
                rows.append(Row({}, column.title, [TextCell(text) for text in cells]))
                lines += _lines(given, every, papers, column, group, spec)
                predicting.append(_prediction(every, _taken(given, every), labels))
                fewest = min(fewest, len(given.candidates[0].seeds))
        groups.append(Group(name, [], rows))
    titles = _without_dashes(groups)
    notes = _notes(margin, fewest, any(predicting), "Cost" in titles) + _unrun(runs, labels)
    return text_table(spec, titles, groups, notes, HEADER, lines, of="Task", sentences=True)


def _without_dashes(groups: list[Group]) -> list[str]:
    """Take the columns that have a dash in every row out of the rows, and return the titles of the others."""
    rows = [row for group in groups for row in group.rows]
    kept = [i for i in range(len(TITLES)) if any(row.cells[i].text != wording.DASH for row in rows)]
    for row in rows:
        row.cells = [row.cells[i] for i in kept]
    return [TITLES[i] for i in kept]


def _taken(given: Choice, every: list[Judged]) -> list[Judged]:
    """Return the strategies that are recommended: alone, and with features shared; [] where none is."""
    few = len(given.candidates[0].seeds) < FEWEST_OF_INTERVAL
    if few or given.ahead or not given.above_majority:
        return []
    return [cheapest(every, ALONE), cheapest(every, SHARED)]


def _papers(papers: list[dict], task: str, encoder: str, every: list[Judged]) -> list[tuple[dict, Judged]]:
    """Return the rules of papers about a task and encoder, each with the strategy that it recommends."""
    by_point = {(one.candidate.row.strategy, one.candidate.row.variant): one for one in every}
    wanted = [rule for rule in papers if (rule["task"], rule["encoder"]) == (task, encoder)]
    points = [(rule, by_point.get((rule["strategy"], rule["variant"]))) for rule in wanted]
    return [(rule, one) for rule, one in points if one]


def _cells(given: Choice, every: list[Judged], papers: list, column, spec: dict) -> list[str]:
    labels, best, taken = spec["labels"], highest(given.candidates), _taken(given, every)
    tested = difference = cost = wording.DASH
    if taken:
        alone = taken[0].candidate
        made = given.on_test(alone, column.split)
        tested = printed(made.value, made.draws)
        if alone is not best:
            away = given.on_test(alone, column.split, less=best)
            difference = f"{_bounds(taken[0])} on validation; {printed(away.value, away.draws)} on test"
        cost = f"{wording.seconds(alone.costs[ALONE])} alone, "
        cost += f"{wording.seconds(alone.costs[SHARED])} with features shared; "
        cost += f"the highest {wording.seconds(best.costs[ALONE])} alone{_prediction(every, taken, labels)}"
    said = [f"{rule['paper']}: {rule['says']} ({_agreement(rule, one, taken, column)})" for rule, one in papers]
    return [
        _recommended(given, every, taken, spec),
        tested,
        f"{aggregate.row_name(best.row, labels)} ({wording.number(best.validation)})",
        difference,
        cost,
        _undecided(every, taken, labels),
        "; ".join(said) or wording.DASH,
    ]


def _recommended(given: Choice, every: list[Judged], taken: list[Judged], spec: dict) -> str:
    """Return what is recommended in print, or why nothing is."""
    labels, best = spec["labels"], highest(given.candidates)
    if taken:
        alone, shared = taken
        text = _name(alone, labels)
        if alone.answer != NOT_WORSE:
            text += f", the highest on validation (not shown to be within {spec['margin']:g} of the best)"
        return text if shared is alone else f"{text}; with features shared {_name(shared, labels)}"
    if reason := _reason(given):
        return f"None: {reason}"
    return f"None with {wording.plural(len(best.seeds), 'seed')}; highest on validation: {_name_of(best, labels)}"


def _reason(given: Choice) -> str:
    """Return why nothing can be recommended, whatever the number of seeds; empty where something can."""
    reasons = [f"{name} is ahead of every strategy ({wording.number(score)})" for name, score in given.ahead]
    if not given.above_majority:
        reasons.append(
            f"no strategy is shown to be above the majority class ({wording.number(given.majority.validation)})"
        )
    return f"on validation {' and '.join(reasons)}" if reasons else ""


def _prediction(every: list[Judged], taken: list[Judged], labels: dict) -> str:
    """Return what a prediction costs with the recommended strategy, in % of full fine-tuning's, where that differs.

    A dash where one of the two is a result from before predictions were counted, nothing where all of them are.
    """
    whole = next((one for one in every if one.candidate.row.embeddings), None)
    if whole is None or not taken or not any(one.candidate.row.inference > 0 for one in every):
        return ""
    share = taken[0].candidate.row.inference / whole.candidate.row.inference
    if abs(share - 1) < ALIKE:
        return ""
    return f"; inference {wording.number(100 * share) if share == share else wording.DASH} % of {_name(whole, labels)}"


def _bounds(one: Judged) -> str:
    away = one.difference
    return f"{wording.number(away.value)} {wording.interval(away.low, away.high)}"


def _name(one: Judged, labels: dict) -> str:
    return _name_of(one.candidate, labels)


def _name_of(candidate, labels: dict) -> str:
    return aggregate.row_name(candidate.row, labels)


def _undecided(every: list[Judged], taken: list[Judged], labels: dict) -> str:
    """Return the undecided strategies that are cheaper than what is recommended, with what would decide them."""
    cheaper = sorted(every, key=lambda one: one.candidate.costs[ALONE])
    cheaper = cheaper[: cheaper.index(taken[0])] if taken else cheaper
    open_ = [one for one in cheaper if one.answer == UNDECIDED]
    lacks = [
        wording.lacking(one.needed, "validation set") if one.needed else "nothing would decide it" for one in open_
    ]
    if not taken and open_ and len(set(lacks)) == 1:
        return f"{len(open_)} of {len(every)} strategies ({lacks[0]})"
    names = [f"{_name(one, labels)} ({_bounds(one)}; {what})" for one, what in zip(open_[:MOST], lacks, strict=False)]
    more = f"; {len(open_) - MOST} more" if len(open_) > MOST else ""
    return "; ".join(names) + more or wording.DASH


def _agreement(rule: dict, one: Judged, taken: list[Judged], column) -> str:
    """Return how a paper's choice compares with the recommended strategy.

    It is contradicted only where a claim would fail: over six seeds, on real text, by an encoder like the paper's.
    """
    if one in taken[:1]:
        return "the same"
    if one.answer == NOT_WORSE:
        return "non-inferior, but more expensive" if taken else "non-inferior"
    away, seeds = wording.number(one.difference.value), len(one.candidate.seeds)
    if one.answer != WORSE:
        return f"undecided, {away}"
    if seeds >= FEWEST_SEEDS and rule["like"] and not column.synthetic:
        return f"contradicted, {away}"
    limits = [wording.plural(seeds, "seed")]
    limits += [wording.SYNTHETIC] * column.synthetic + ["another kind of encoder"] * (not rule["like"])
    return f"differs here ({', '.join(limits)}), {away}"


def _lines(given: Choice, every: list[Judged], papers: list, column, group: tuple, spec: dict) -> list[list]:
    """Return a CSV line for each candidate strategy.

    Only what validation chose has a test score: what is recommended, and the highest on validation.
    """
    taken, best, lines = _taken(given, every), highest(given.candidates), []
    for one in every:
        row, difference = one.candidate.row, one.difference
        cell = [column.task, column.split, *group, row.strategy, row.variant]
        numbers = [one.candidate.validation, difference.value, difference.low, difference.high]
        lacks = [one.needed.seeds, one.needed.rows or ""] if one.needed else ["", ""]
        costs = [f"{cost:.6g}" for name, cost in one.candidate.costs.items() if name != INFERENCE]
        costs.append(f"{row.inference:.6g}" if row.inference > 0 else "")
        is_best, is_taken = one.candidate is best, any(one is other for other in taken)
        tested, away = [""] * 3, [""] * 3
        if is_best or is_taken:
            made = given.on_test(one.candidate, column.split)
            tested = plain(made.value, made.draws)
        if is_taken and not is_best:
            less = given.on_test(one.candidate, column.split, less=best)
            away = plain(less.value, less.draws)
        whose = ";".join(rule["paper"] for rule, other in papers if other is one)
        lines.append([*cell, *(f"{number:.4f}" for number in numbers), one.answer, *lacks, len(one.candidate.seeds)])
        advised = int(bool(taken) and one is taken[0])
        reason = "" if taken or not is_best else _reason(given) or FEW_SEEDS
        lines[-1] += [*costs, int(one.on_front), advised, *tested, whose, int(is_best), *away, spec["margin"], reason]
    return lines


def _notes(margin: float, fewest: int, predicting: bool, costs: bool) -> list[str]:
    points = wording.points(margin)
    notes = [
        "Recommended: the cheapest strategy that is shown on validation to be within "
        f"{points} of the best, whichever that is: 95 % bounds that hold for all strategies together (multiple "
        f"comparisons with the best; {wording.CI}). Where that is shown of none, the highest on validation. Test was "
        "opened after the choice, for what is recommended and (CSV) for the highest on validation, with its 95 % CI.",
        "None is recommended where a baseline that trains no encoder is ahead on validation, or no strategy is shown "
        "to be above the majority class.",
        "Undecided: cheaper strategies whose bounds contain the margin, with the seeds and rows that would decide them "
        "if mean and standard deviations stay the same.",
    ]
    if costs:
        notes.append(
            "Cost: seconds of training, including the runs that it starts from and all trials of the search that chose "
            "its settings; alone: with the whole feature extraction, shared: with a share of it. Seconds are as "
            "measured, whatever else the machine did."
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
            f"{wording.task_name(labels['tasks'], row.task)}: {aggregate.row_name(row, labels)}"
            for row in cells.itertuples()
        )
        given.append(f"{reason} ({wording.listing(names)})")
    return [f"Preliminary; not run, or not with all seeds: {'; '.join(given)}."] * bool(given)
