"""A table of published claims, and whether they hold in this study.

Each claim is tested on each task, split and subset by itself: a subset is another size or draw of the training rows,
never another seed.
"""

from thaw.outputs import wording
from thaw.outputs.frame.paired_differences import Contrast, combined
from thaw.outputs.frame.result_links import run_anchor
from thaw.outputs.frame.runs_frame import of_cell
from thaw.outputs.frame.undefined import undefined_note
from thaw.outputs.tables import claims_by_task as by_task
from thaw.outputs.tables.table_model import Group, Row, TextTable, text_row, text_table
from thaw.statistics.verdicts import NOT_TESTABLE, Verdict, overall, verdicts

HEADER = (
    "finding claim paper encoder task subset split metric margin contrast low high p seeds answer more_seeds "
    "rows_needed reason effect"
)
NO_SEED = "no seed has all scores"


def build(data, spec: dict) -> TextTable:
    """Return the verdicts. Args: spec with `findings` of `thaw.planning.papers.claim_runs.claims_for_spec`."""
    names, entries = spec["labels"], spec["findings"]
    tests = [
        (index, test | {"subset": subset})
        for index, entry in enumerate(entries)
        for test in entry.get("tests", [])
        for subset in dict.fromkeys(data.runs.loc[data.runs["kind"] == "run", "subset"])
    ]
    by_entry: dict[int, list[tuple[dict, Verdict | str]]] = {}
    kept = []
    for index, test in tests:
        contrast = contrast_of(data, entries[index]["encoder"], test)
        weak = underfit(data.runs, entries[index]["encoder"], test, names) if contrast else ""
        if weak:
            by_entry.setdefault(index, []).append((test, weak))
        elif contrast:
            kept.append((index, test, contrast))
        elif _has_split(data.runs, test):
            by_entry.setdefault(index, []).append((test, NO_SEED))
    margins = [_margin(entries[index]) for index, _, _ in kept]
    decided = verdicts([one.by_seed for *_, one in kept], [one.resampled for *_, one in kept], margins)
    for (index, test, _), verdict in zip(kept, decided, strict=True):
        by_entry.setdefault(index, []).append((test, verdict))
    rows = [_row(entry, by_entry.get(index, []), names) for index, entry in enumerate(entries)]
    shown = [by_task.on_shown_splits(by_entry.get(index, []), spec) for index in range(len(entries))]
    lines = [line for entry, own in zip(entries, shown, strict=True) for line in _lines(entry, own)]
    encoders = dict.fromkeys(entry["encoder"] for entry in entries)
    groups = [
        Group(
            wording.label(names, "encoders", encoder) if len(encoders) > 1 else "",
            [],
            [row for row, entry in zip(rows, entries, strict=True) if entry["encoder"] == encoder],
        )
        for encoder in encoders
    ]
    titles, notes = ("Paper", "Answer", "By task"), _notes()
    notes += undefined_note(data.runs, names, "Tests leave these runs out")
    if spec.get("by_task"):
        tested = [by_entry.get(index, []) for index in range(len(entries))]
        tasks = dict.fromkeys([*spec["order"].get("tasks", []), *data.runs["task"]])
        titles, cells = by_task.columns(tested, list(tasks), spec)
        for row, more in zip(rows, cells, strict=True):
            row.cells[2:] = more
        titles, notes = ("Paper", "Answer", *titles), [by_task.note(spec), *notes]
    return text_table(spec, titles, groups, notes, HEADER, lines, of="Claim", sentences=True)


def contrast_of(data, encoder: str, test: dict) -> Contrast | None:
    """Return a test's contrast in points over the seeds that have all its scores; None where there is no such seed."""
    runs = data.runs
    kept = (runs["kind"] == "run") & (runs["metric"] == test["metric"]) & (runs["split"] == test["split"])
    rows = runs[kept & runs["value"].notna()]
    cells = [(times, (test["task"], test["subset"], encoder, *point)) for times, *point in test["terms"]]
    return combined([(times, of_cell(rows, cell)) for times, cell in cells], data.predictions)


def _has_split(runs, test: dict) -> bool:
    """Tell whether runs of the test's subset have its split, which may be one that only other subsets set aside."""
    return bool(
        ((runs["task"] == test["task"]) & (runs["subset"] == test["subset"]) & (runs["split"] == test["split"])).any()
    )


def underfit(runs, encoder: str, test: dict, labels: dict) -> str:
    """Return which strategies of a test are underfit in half of their runs or more; empty where none is.

    Such a contrast compares lengths of training. A linear probe is one of the functions that each strategy with its
    head can learn, so that this is said of any term, not of the full model alone.
    """
    weak = []
    for _, *point in test["terms"]:
        rows = of_cell(runs, (test["task"], test["subset"], encoder, *point))
        flags = rows.loc[(rows["split"] == test["split"]) & (rows["metric"] == test["metric"]), "flags"]
        if 2 * flags.str.split(";").map(lambda names: "underfit" in names).sum() >= len(flags):
            weak.append(wording.strategy_name(labels, *point[1:]))
    return f"underfit: {wording.listing(dict.fromkeys(weak))}" if weak else ""


def _margin(entry: dict) -> dict:
    return {key: entry[key] for key in ("above", "within") if key in entry}


def _row(entry: dict, tested: list[tuple[dict, Verdict | str]], labels: dict) -> Row:
    answer = "".join(
        answer_overall([verdict.answer if isinstance(verdict, Verdict) else NOT_TESTABLE for _, verdict in tested])
    )
    tests = [test for test, _ in tested]
    tasks = [f"{_place(test, tests, labels)}: {_said(verdict)}" for test, verdict in tested]
    detail = "; ".join(tasks) or entry.get("reason", NO_SEED)
    row = text_row(entry["claim"], [entry["paper"], answer, detail])
    row.cells[-1].parts = tasks
    row.cells[-1].runs = [
        (f"{_place(test, tests, labels)}: {wording.strategy_name(labels, *point[1:])}", run_anchor(cell))
        for test in tests
        for _, *point in test["terms"]
        for cell in [(test["task"], test["subset"], entry["encoder"], *point)]
    ]
    return row


def answer_overall(answers: list[str]) -> tuple[str, str]:
    """Return the answer to a claim, and in print on how many it was tested where that is not on all.

    Args: its answers on tasks, splits and subsets, NOT_TESTABLE too.
    """
    tested = [answer for answer in answers if answer != NOT_TESTABLE]
    return overall(tested), f", tested on {len(tested)} of {len(answers)}" * (0 < len(tested) < len(answers))


def _place(test: dict, tests: list[dict], labels: dict) -> str:
    """Return the name of a test's task in print, with its split and subset where the claim has several."""
    several = len({other["split"] for other in tests if other["task"] == test["task"]}) > 1
    name = wording.column_name(labels, test["task"], test["split"], several)
    subsets = {other["subset"] for other in tests}
    return f"{name}, {wording.label(labels, 'subsets', test['subset'])}" if len(subsets) > 1 else name


def _said(verdict: Verdict | str) -> str:
    """Return an answer with difference, interval, effect and p; of what is not tested the reason."""
    if isinstance(verdict, str):
        return f"{NOT_TESTABLE}, {verdict}"
    ci = f"{wording.number(verdict.contrast)} {wording.interval(verdict.ci.low, verdict.ci.high)}"
    effect = "" if verdict.effect is None else f", d_z {wording.number(verdict.effect)}"
    lacks = f"; {wording.lacking(verdict.needed)}" if verdict.needed else ""
    return f"{verdict.answer} ({ci}{effect}, p {wording.number(verdict.p, 2)}{lacks})"


def _lines(entry: dict, tested: list[tuple[dict, Verdict | str]]) -> list[list]:
    common = [entry["id"], entry["claim"], entry["paper"], entry["encoder"]]
    margin = " ".join(f"{key} {value}" for key, value in _margin(entry).items())
    if not tested:
        why = entry.get("reason", "no scores")
        return [[*common, *[""] * 4, margin, *[""] * 5, NOT_TESTABLE, "", "", why, ""]]
    lines = []
    for test, verdict in tested:
        where = [test["task"], test["subset"], test["split"], test["metric"], margin]
        if isinstance(verdict, str):
            lines.append([*common, *where, *[""] * 5, NOT_TESTABLE, "", "", verdict, ""])
            continue
        numbers = [verdict.contrast, verdict.ci.low, verdict.ci.high, verdict.p]
        lacks = [verdict.needed.seeds, verdict.needed.rows or ""] if verdict.needed else ["", ""]
        effect = "" if verdict.effect is None else f"{verdict.effect:.4f}"
        plain = [f"{number:.4f}" for number in numbers]
        lines.append([*common, *where, *plain, verdict.seeds, verdict.answer, *lacks, "", effect])
    return lines


def _notes() -> list[str]:
    return [
        "In brackets: the mean difference over seeds in points (claimed higher minus claimed lower; for a share, the "
        f"first minus that share of the second) with its 95 % CI ({wording.CI}); d_z, the mean distance to the margin "
        "in standard deviations of the paired differences; p of a sign-flip test over seeds, adjusted for all tests of "
        "the table by step-down max-T.",
        "A claim holds if it holds on all tasks, splits and subsets on which it can be tested, and fails if it fails "
        "on one; the answer has their number where it cannot be tested on all. Both need p at most 0.05, six seeds or "
        "more, and an interval on one side of the margin, of 95 % for all tests of the table together; else it is "
        "undecided. What would decide it is the least, and assumes the same mean and standard deviations.",
        "All answers are about these runs: a claim that fails with another encoder, fewer rows or another split than "
        "the paper's does not contradict the paper.",
        "Not testable where no seed has all scores, or where half of a strategy's runs or more are underfit: on their "
        "own training rows more than a point below the linear probe of the same head or, with less than 99 on them, "
        "still improving when they ended.",
    ]
