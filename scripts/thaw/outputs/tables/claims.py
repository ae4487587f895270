"""A table of published claims, and whether they hold in this study.

Each claim is tested on each task, split and subset by itself: a subset is another size or draw of the training rows,
never another seed.
"""

from thaw.outputs import wording
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table
from thaw.statistics.verdicts import NOT_TESTABLE, Verdict, overall, verdicts

HEADER = "finding claim paper encoder task subset split metric margin contrast p seeds answer more_seeds reason effect"


def build(data, spec: dict) -> TextTable:
    """Return the verdicts. Args: spec with `findings` of `thaw.planning.papers.claim_runs.claims_for_spec`."""
    names, entries = spec["labels"], spec["findings"]
    tests = [
        (index, test | {"subset": subset})
        for index, entry in enumerate(entries)
        for test in entry.get("tests", [])
        for subset in dict.fromkeys(data.runs.loc[data.runs["kind"] == "run", "subset"])
    ]
    contrasts = [_contrast(data.runs, entries[index]["encoder"], test) for index, test in tests]
    kept = [(index, test, values) for (index, test), values in zip(tests, contrasts, strict=True) if values]
    margins = [_margin(entries[index]) for index, _, _ in kept]
    results = verdicts([values for *_, values in kept], margins)
    by_entry: dict[int, list[tuple[dict, Verdict]]] = {}
    for (index, test, _), verdict in zip(kept, results, strict=True):
        by_entry.setdefault(index, []).append((test, verdict))
    rows = [_row(entry, by_entry.get(index, []), names) for index, entry in enumerate(entries)]
    lines = [line for index, entry in enumerate(entries) for line in _lines(entry, by_entry.get(index, []))]
    encoders = dict.fromkeys(entry["encoder"] for entry in entries)
    groups = [
        Group(
            names["encoders"].get(encoder, encoder) if len(encoders) > 1 else "",
            [],
            [row for row, entry in zip(rows, entries, strict=True) if entry["encoder"] == encoder],
        )
        for encoder in encoders
    ]
    titles = ("Paper", "Answer", "By task")
    return text_table(spec, titles, groups, _notes(), HEADER, lines, of="Claim", sentences=True)


def _contrast(runs, encoder: str, test: dict) -> list[float]:
    """Return a test's contrast in points for each seed that has all its scores."""
    rows = runs[(runs["kind"] == "run") & (runs["task"] == test["task"]) & (runs["encoder"] == encoder)]
    rows = rows[(rows["split"] == test["split"]) & (rows["subset"] == test["subset"]) & rows["value"].notna()]
    rows = rows[rows["metric"] == test["metric"]]
    total = None
    for times, head, strategy, variant in test["terms"]:
        part = rows[(rows["head"] == head) & (rows["strategy"] == strategy) & (rows["variant"] == variant)]
        scores = part.set_index("seed", verify_integrity=True)["value"] * 100 * times
        total = scores if total is None else (total + scores).dropna()
    return total.tolist()


def _margin(entry: dict) -> dict:
    return {key: entry[key] for key in ("above", "within") if key in entry}


def _row(entry: dict, tested: list[tuple[dict, Verdict]], labels: dict) -> Row:
    answer = overall([verdict.answer for _, verdict in tested])
    tests = [test for test, _ in tested]
    tasks = [f"{_place(test, tests, labels)}: {_said(verdict)}" for test, verdict in tested]
    detail = "; ".join(tasks) or entry.get("reason", "no seed has all scores")
    return Row({}, entry["claim"], [TextCell(entry["paper"]), TextCell(answer), TextCell(detail)])


def _place(test: dict, tests: list[dict], labels: dict) -> str:
    """Return the name of a test's task in print, with its split and subset where the claim has several."""
    several = len({other["split"] for other in tests if other["task"] == test["task"]}) > 1
    name = wording.column_name(labels["tasks"], test["task"], test["split"], several)
    subsets = {other["subset"] for other in tests}
    return f"{name}, {labels['subsets'].get(test['subset'], test['subset'])}" if len(subsets) > 1 else name


def _said(verdict: Verdict) -> str:
    """Return a verdict with difference, effect and p."""
    more = f", {wording.plural(verdict.more, 'more seed')}" if verdict.more else ""
    effect = "" if verdict.effect is None else f", d {wording.number(verdict.effect)}"
    return f"{verdict.answer} ({wording.number(verdict.contrast)}{effect}, p {wording.number(verdict.p, 2)}{more})"


def _lines(entry: dict, tested: list[tuple[dict, Verdict]]) -> list[list]:
    common = [entry["id"], entry["claim"], entry["paper"], entry["encoder"]]
    margin = " ".join(f"{key} {value}" for key, value in _margin(entry).items())
    if not tested:
        return [[*common, "", "", "", "", margin, "", "", "", NOT_TESTABLE, "", entry.get("reason", "no scores"), ""]]
    return [
        [
            *common,
            test["task"],
            test["subset"],
            test["split"],
            test["metric"],
            margin,
            f"{v.contrast:.4f}",
            f"{v.p:.4f}",
            v.seeds,
        ]
        + [v.answer, v.more or "", "", "" if v.effect is None else f"{v.effect:.4f}"]
        for test, v in tested
    ]


def _notes() -> list[str]:
    return [
        "In brackets: the mean difference over seeds in points (claimed higher minus claimed lower; for a share, the "
        "first minus that share of the second); d, Cohen's d of the distance to the margin; p of a sign-flip test "
        "over seeds, Holm-corrected over the table.",
        "A claim holds if it holds on all tasks and subsets and fails if it fails on one. Undecided: p above 0.05, or "
        "fewer than six seeds; the number of extra seeds needed assumes the same mean and standard deviation.",
    ]
