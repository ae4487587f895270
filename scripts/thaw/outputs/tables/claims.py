"""A table of published claims: the difference that each is about, on each task, split and subset by itself.

A subset is another size or draw of the training rows, never another seed.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from thaw.decision.contrasts import HIGHER, LOWER, OPEN, WITHIN, Difference
from thaw.declarations.splits import RESERVED
from thaw.outputs.frame.paired_differences import FLAGS, combined, flags_of, jointly, printed
from thaw.outputs.frame.result_links import run_anchor
from thaw.outputs.frame.runs_frame import of_cell
from thaw.outputs.render.typed_table import Cell, Group, Table, text_row
from thaw.outputs.tables.footnotes import undefined_note
from thaw.words import wording

NO_SEED = "no seed has all scores"


@dataclass(frozen=True)
class Tested:
    """A test of a claim and what came of it; where no seed has all scores there is no difference and no answer."""

    test: dict
    answer: str = ""
    difference: Difference | None = None
    seeds: int = 0
    flags: tuple[str, ...] = ()


def build(data, spec: dict) -> Table:
    """Return the answers. Args: spec with `findings` of `thaw.planning.output_requirements.claims_for_spec`."""
    names, entries, on_reserved = spec["labels"], spec["findings"], spec.get("by_task") == RESERVED
    subsets = dict.fromkeys(data.runs.loc[data.runs["kind"] == "run", "subset"])
    results = shown = tested(data, entries, subsets)
    titles, cells = ["By task"], [[_detail(*pair, names)] for pair in zip(entries, results, strict=True)]
    if spec.get("by_task"):
        shown = [[one for one in own if (one.test["split"] == RESERVED) == on_reserved] for own in results]
        titles, cells = _by_task(shown, [*spec["order"].get("tasks", []), *data.runs["task"]], names)
    groups: dict[str, Group] = {}
    for entry, own, listed, more in zip(entries, results, shown, cells, strict=True):
        name = wording.label(names, "encoders", entry["encoder"])
        answers = count(one.answer for one in own) or wording.DASH
        row = text_row(entry["claim"], [entry["paper"], answers], *_records(entry, listed))
        row.cells += more
        groups.setdefault(entry["encoder"], Group(name, [])).rows.append(row)
    if len(groups) == 1:
        next(iter(groups.values())).name = ""
    every = [one for own in results for one in own]
    notes = notes_of(every) + undefined_note(data.runs, names, "Differences leave these runs out")
    if spec.get("by_task"):
        where = "reserved rows" if on_reserved else "test splits"
        notes.insert(0, f"Answer: on all splits; by task on {where}. Empty: not claimed of the task.")
    return Table.of_spec(spec, ["Paper", "Answer", *titles], list(groups.values()), notes, of="Claim", sentences=True)


def tested(data, entries: list[dict], subsets: Iterable[str]) -> list[list[Tested]]:
    """Return by claim its tests on some subsets, with one interval for all of them together.

    A test on a split that no run of the subset has is left out.
    """
    runs = data.runs[data.runs["kind"] == "run"]
    places = list(runs[["task", "subset", "split"]].drop_duplicates().itertuples(index=False, name=None))
    results: list[list[Tested]] = [[] for _ in entries]
    cases = []
    for index, entry in enumerate(entries):
        for test in (test | {"subset": subset} for test in entry.get("tests", []) for subset in subsets):
            if (test["task"], test["subset"], test["split"]) in places:
                sides = _sides(runs, entry["encoder"], test)
                scored = [(times, rows[rows["value"].notna()]) for times, rows in sides]
                mean = combined(scored, data.predictions)
                cases.append((index, test, mean, tuple(flags_of([rows for _, rows in sides]))))
    differences = iter(jointly([mean for _, _, mean, _ in cases if mean]))
    for index, test, mean, flags in cases:
        one = Tested(test)
        if mean:
            entry, difference = entries[index], next(differences)
            low, high = (-entry["within"], entry["within"]) if "within" in entry else (entry["above"], entry["above"])
            answer = difference.compared_with(low, high)
            one = Tested(test, answer, difference, mean.spread.seeds, flags)
        results[index].append(one)
    return results


def _sides(runs, encoder: str, test: dict) -> list[tuple[float, Any]]:
    """Return the weight and the rows of each term of a test."""
    rows = runs[(runs["metric"] == test["metric"]) & (runs["split"] == test["split"])]
    place = (test["task"], test["subset"], encoder)
    return [(times, of_cell(rows, (*place, *point))) for times, *point in test["terms"]]


def count(answers: Iterable[str]) -> str:
    """Return how often each answer was given: 5 higher, 2 lower, 2 open. An empty one is none."""
    numbers = Counter(answers)
    return ", ".join(f"{numbers[word]} {word}" for word in (WITHIN, HIGHER, LOWER, OPEN) if numbers[word])


def said(one: Tested) -> str:
    """Return the answer of a test with its difference and flags."""
    if one.difference is None:
        return NO_SEED
    return ", ".join([f"{one.answer} {printed(one.difference)}", *one.flags])


def _detail(entry: dict, own: list[Tested], labels: dict) -> Cell:
    """Return what a claim's tests say, task by task, with the runs behind it."""
    tests = [one.test for one in own]
    parts = [f"{_place(one.test, tests, labels)}: {said(one)}" for one in own]
    cell = Cell(written="; ".join(parts) or entry.get("reason", NO_SEED), parts=parts)
    cell.behind = [
        (f"{_place(test, tests, labels)}: {wording.strategy_name(labels, *point[1:])}", run_anchor(place))
        for test in tests
        for _, *point in test["terms"]
        for place in [(test["task"], test["subset"], entry["encoder"], *point)]
    ]
    return cell


def _place(test: dict, tests: list[dict], labels: dict) -> str:
    """Return the name of a test's task in print, with its split and subset where the claim has several."""
    several = len({other["split"] for other in tests if other["task"] == test["task"]}) > 1
    name = wording.column_name(labels, test["task"], test["split"], several)
    subsets = {other["subset"] for other in tests}
    return f"{name}, {wording.label(labels, 'subsets', test['subset'])}" if len(subsets) > 1 else name


def _by_task(results: list[list[Tested]], order: list[str], labels: dict) -> tuple[list[str], list[list[Cell]]]:
    """Return the titles of the tasks that some claim is tested on, and the cells of each claim under them."""
    tasks = sorted({one.test["task"] for own in results for one in own}, key=order.index)
    cells = [[_of_task([one for one in own if one.test["task"] == task]) for task in tasks] for own in results]
    return [wording.task_name(labels, task) for task in tasks], cells


def _of_task(own: list[Tested]) -> Cell:
    several = len({one.test["split"] for one in own}) > 1
    parts = [(f"{one.test['split'].replace('_', ' ')}: " if several else "") + said(one) for one in own]
    return Cell(written="; ".join(parts), parts=parts if several else [])


def _records(entry: dict, own: list[Tested]) -> list[dict]:
    """Return what the CSV says of a claim: a line for each test, or one that says why there is none."""
    margin = " ".join(f"{key} {entry[key]}" for key in ("above", "within") if key in entry)
    records = []
    tests: list[Tested | None] = [*own] or [None]
    for one in tests:
        test, difference = (one.test, one.difference) if one else ({}, None)
        record = {"finding": entry["id"], **{name: entry[name] for name in ("claim", "paper", "encoder")}}
        record |= {name: test.get(name, "") for name in ("task", "subset", "split", "metric")} | {"margin": margin}
        record |= {name: getattr(difference, name, None) for name in ("value", "low", "high")}
        record |= {"answer": one.answer if one else "", "seeds": one.seeds if one else None}
        why = ("" if difference else NO_SEED) if one else entry.get("reason", "no scores")
        records.append(record | {"flags": ";".join(one.flags) if one else "", "reason": why})
    return records


def notes_of(every: list[Tested]) -> list[str]:
    drawn = [one for one in every if one.difference]
    flags = dict.fromkeys(flag for one in drawn for flag in one.flags)
    return [
        "Of each task the mean difference over seeds in points, the side that is claimed to be higher less the other; "
        f"for a share, the first less that share of the second. {wording.joint_ci(len(drawn))}",
        "Higher or lower: the interval is above or below the margin of the claim, which is 0 unless the claim names "
        "another; within: it is inside of the margin; open: it holds the margin. A claim is about the paper's encoder, "
        "rows and splits, the answer about these runs.",
        *(FLAGS[flag] for flag in flags),
        *wording.few_seeds(min((one.seeds for one in drawn), default=3)),
    ]
