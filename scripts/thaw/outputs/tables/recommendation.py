"""Recommendations: per task the cheapest strategy that is non-inferior to the best, and what papers recommend."""

from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.runs_frame import CELL, of_cell
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table
from thaw.statistics.non_inferiority import NOT_WORSE, UNDECIDED, WORSE, Candidate, Judged, cheapest, judged
from thaw.statistics.significance import FEWEST_SEEDS

TITLES = ("Recommended", "Score", "Best on validation", "Difference", "Cost", "Undecided", "Papers")
HEADER = (
    "task split subset encoder head strategy variant score validation difference low high answer more_seeds seeds "
    "seconds_alone seconds_shared memory_mb trained_parameters inference_flops on_front advised papers"
)
MOST = 3  # undecided strategies named in a cell; the CSV has all
ALONE, SHARED, INFERENCE = "seconds_alone", "seconds_shared", "inference_flops"
ALIKE = 0.01  # share by which the operations of a prediction may differ without being named
WAITING = f"{wording.NOT_RUN}: budget"


def build(data, spec: dict) -> TextTable:
    """Return the recommendation for every task, encoder, head and subset.

    Args: spec with `margin` in points and `papers` as `thaw.planning.recommendations.paper_rules` makes them.
    """
    labels, runs = spec["labels"], data.runs
    summary = aggregate.summarise(runs, "test", spec["order"])
    columns, names = aggregate.columns(summary, labels), aggregate.group_names(summary, labels)
    groups, lines, few, every_cost = [], [], False, []
    for group, name in names.items():
        rows = []
        for column in columns:
            candidates = _candidates(aggregate.runs_of(summary, group), runs, column, data.predictions)
            if candidates:
                every = judged(candidates, spec["margin"])
                papers = _papers(spec["papers"], column.task, group[1], every)
                rows.append(Row({}, column.title, [TextCell(text) for text in _cells(every, papers, labels)]))
                lines += _lines(every, papers, column, group)
                few |= len(candidates[0].scores) < FEWEST_SEEDS
                every_cost.append(_prediction(every, labels))
        groups.append(Group(name, [], rows))
    notes = _notes(spec["margin"], few, any(every_cost)) + _unrun(runs, labels)
    return text_table(spec, TITLES, groups, notes, HEADER, lines, of="Task", sentences=True)


def _candidates(summary, runs, column, predictions: PredictionFiles) -> list[Candidate]:
    """Return the strategies of a group on a task and split, with the seeds that all of them share.

    A strategy that lacks a seed is left out, unless only the time budget stopped it.
    """
    chosen = summary[(summary["task"] == column.task) & (summary["split"] == column.split)]
    scores = runs[(runs["kind"] == "run") & runs["main"].astype(bool) & runs["value"].notna()]
    kept = []
    for row in chosen.itertuples():
        mine = of_cell(scores, [getattr(row, name) for name in CELL]).sort_values("seed")
        tested, validated = mine[mine["split"] == column.split], mine[mine["role"] == "validation"]
        gone = row.missing and not _waits(runs, row)
        if not (gone or row.undefined or len(tested) != len(validated) or tested.empty):
            kept.append((row, tested, validated))
    shared = set.intersection(*(set(tested["seed"]) for _, tested, _ in kept)) if kept else set()
    counted = all(row.inference > 0 for row, *_ in kept)  # not so in results from before predictions were counted
    return [_candidate(*found, shared, predictions, counted) for found in kept if shared]


def _waits(runs, row) -> bool:
    """Tell whether only the time budget kept a cell from having all seeds."""
    reasons = of_cell(runs, [getattr(row, name) for name in CELL])["missing"]
    return bool(reasons[reasons != ""].str.startswith(WAITING).all())


def _candidate(row, tested, validated, seeds: set, predictions: PredictionFiles, counted: bool) -> Candidate:
    """Return a strategy with its scores of some seeds.

    Args: its rows on test and on validation; whether all strategies know what a prediction costs.
    """
    tested, validated = (part[part["seed"].isin(seeds)] for part in (tested, validated))
    draws = 100 * predictions.draws(tested, tested["metric"].iloc[0], tested["split"].iloc[0])
    alone = row.seconds - row.extraction + row.extraction_whole
    costs = {ALONE: alone, SHARED: row.seconds, "memory_mb": row.memory, "trained_parameters": row.parameters}
    costs |= {INFERENCE: row.inference} if counted else {}
    values = [100 * value for value in tested["value"]]
    return Candidate(row, 100 * validated["value"].mean(), values, draws, costs)


def _papers(papers: list[dict], task: str, encoder: str, every: list[Judged]) -> list[tuple[dict, Judged]]:
    """Return the rules of papers about a task and encoder, each with the strategy that it recommends."""
    by_point = {(one.candidate.row.strategy, one.candidate.row.variant): one for one in every}
    wanted = [rule for rule in papers if (rule["task"], rule["encoder"]) == (task, encoder)]
    points = [(rule, by_point.get((rule["strategy"], rule["variant"]))) for rule in wanted]
    return [(rule, one) for rule, one in points if one]


def _cells(every: list[Judged], papers: list[tuple[dict, Judged]], labels: dict) -> list[str]:
    taken, shared = cheapest(every, ALONE), cheapest(every, SHARED)
    best = max((one.candidate for one in every), key=lambda candidate: candidate.validation)
    difference, low, high = (wording.number(getattr(taken.difference, part)) for part in ("value", "low", "high"))
    costs = taken.candidate.costs
    cost = f"{wording.seconds(costs[ALONE])} alone, {wording.seconds(costs[SHARED])} with features shared"
    cost += f"; the best {wording.seconds(best.costs[ALONE])} alone"
    recommended = _name(taken, labels)
    if shared is not taken:
        recommended += f"; with features shared {_name(shared, labels)}"
    return [
        recommended,
        wording.number(taken.candidate.score),
        f"{aggregate.row_name(best.row, labels)} ({wording.number(best.score)})",
        wording.DASH if taken.candidate is best else f"{difference} [{low}, {high}]",
        "; ".join(part for part in (cost, _prediction(every, labels)) if part),
        _undecided(every, taken, labels),
        "; ".join(f"{rule['paper']}: {rule['says']} ({_agreement(one, taken)})" for rule, one in papers)
        or wording.DASH,
    ]


def _prediction(every: list[Judged], labels: dict) -> str:
    """Return what a prediction costs with the recommended strategy, in % of full fine-tuning's, where that differs.

    A dash where one of the two is a result from before predictions were counted, nothing where all of them are.
    """
    whole = next((one for one in every if one.candidate.row.embeddings), None)
    if whole is None or not any(one.candidate.row.inference > 0 for one in every):
        return ""
    share = cheapest(every, ALONE).candidate.row.inference / whole.candidate.row.inference
    if abs(share - 1) < ALIKE:
        return ""
    return f"inference {wording.number(100 * share) if share == share else wording.DASH} % of {_name(whole, labels)}"


def _name(one: Judged, labels: dict) -> str:
    return aggregate.row_name(one.candidate.row, labels)


def _undecided(every: list[Judged], taken: Judged, labels: dict) -> str:
    """Return the cheaper undecided strategies, each with the number of extra seeds needed."""
    cheaper = sorted(every, key=lambda one: one.candidate.costs[ALONE])
    cheaper = [one for one in cheaper[: cheaper.index(taken)] if one.answer == UNDECIDED]
    names = []
    for one in cheaper[:MOST]:
        more = wording.plural(one.more, "more seed") if one.more else "no number of seeds decides it"
        names.append(f"{_name(one, labels)} ({wording.number(one.difference.value)}; {more})")
    rest = len(cheaper) - len(names)
    return "; ".join(names + [f"and {rest} others"] * (rest > 0)) or wording.DASH


def _agreement(one: Judged, taken: Judged) -> str:
    """Return how a paper's choice compares with the recommended strategy."""
    if one is taken:
        return "the same"
    difference = wording.number(one.difference.value)
    if one.answer == NOT_WORSE:
        return "non-inferior, but more expensive"
    return f"{'contradicted' if one.answer == WORSE else 'undecided'}, {difference}"


def _lines(every: list[Judged], papers: list[tuple[dict, Judged]], column, group: tuple) -> list[list]:
    taken, lines = cheapest(every, ALONE), []
    for one in every:
        row, difference = one.candidate.row, one.difference
        cell = [column.task, column.split, *group, row.strategy, row.variant]
        numbers = [one.candidate.score, one.candidate.validation, difference.value, difference.low, difference.high]
        verdict = [one.answer, one.more or "", len(one.candidate.scores)]
        costs = [f"{cost:.6g}" for name, cost in one.candidate.costs.items() if name != INFERENCE]
        costs.append(f"{row.inference:.6g}" if row.inference > 0 else "")
        whose = ";".join(rule["paper"] for rule, other in papers if other is one)
        lines.append([*cell, *(f"{number:.4f}" for number in numbers), *verdict, *costs])
        lines[-1] += [int(one.on_front), int(one is taken), whose]
    return lines


def _notes(margin: float, few: bool, differs: bool) -> list[str]:
    points = f"{margin:g} {'point' if margin == 1 else 'points'}"
    notes = [
        "Recommended: the cheapest strategy that is non-inferior to the best (selected on validation) within a margin "
        f"of {points}: the 95 % CI of its difference on test is above −{margin:g} (hierarchical bootstrap over seeds "
        "and examples).",
        "Undecided: cheaper strategies whose 95 % CI contains the margin, with the number of extra seeds needed if "
        "mean and standard deviation stay the same.",
        "Cost: seconds of training, including the runs that it starts from; alone: with the whole feature extraction, "
        "shared: with an equal share of it.",
    ]
    if differs:
        notes.append(
            "Inference: operations of one prediction, in % of those after full fine-tuning, where they differ by 1 % "
            "or more: an encoder ends at the highest layer that its head reads, and a side network is added."
        )
    if few:
        notes.append(
            f"Fewer than {wording.plural(FEWEST_SEEDS, 'seed')}: the 95 % CI mainly reflects the sampling of the "
            "test set, and the recommendation is provisional."
        )
    return notes


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
