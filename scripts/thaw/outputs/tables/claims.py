"""A table of findings: what papers claim, and whether it holds here."""

from thaw.outputs import wording
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table
from thaw.statistics.verdicts import NOT_TESTABLE, Verdict, overall, verdicts

HEADER = "finding claim paper encoder task split metric margin contrast p seeds answer more_seeds reason effect"


def build(data, spec: dict) -> TextTable:
    """Return the answers. Args: spec with `findings` of `thaw.planning.papers.claim_runs.shown`."""
    names, entries = spec["labels"], spec["findings"]
    tests = [(place, test) for place, entry in enumerate(entries) for test in entry.get("tests", [])]
    contrasts = [_contrast(data.runs, entries[place]["encoder"], test) for place, test in tests]
    kept = [(place, test, values) for (place, test), values in zip(tests, contrasts, strict=True) if values]
    margins = [_margin(entries[place]) for place, _, _ in kept]
    answers = verdicts([values for *_, values in kept], margins)
    by_entry: dict[int, list[tuple[dict, Verdict]]] = {}
    for (place, test, _), verdict in zip(kept, answers, strict=True):
        by_entry.setdefault(place, []).append((test, verdict))
    rows = [_row(entry, by_entry.get(place, []), names) for place, entry in enumerate(entries)]
    lines = [line for place, entry in enumerate(entries) for line in _lines(entry, by_entry.get(place, []))]
    encoders = dict.fromkeys(entry["encoder"] for entry in entries)
    groups = [
        Group(
            names["encoders"].get(encoder, encoder) if len(encoders) > 1 else "",
            [],
            [row for row, entry in zip(rows, entries, strict=True) if entry["encoder"] == encoder],
        )
        for encoder in encoders
    ]
    titles = ("Whose", "Answer", "By task")
    return text_table(spec, titles, groups, _notes(), HEADER, lines, of="Claim", sentences=True)


def _contrast(runs, encoder: str, test: dict) -> list[float]:
    """Return a test's contrast in points for each seed that has all its scores."""
    rows = runs[(runs["kind"] == "run") & (runs["task"] == test["task"]) & (runs["encoder"] == encoder)]
    rows = rows[(rows["split"] == test["split"]) & (rows["metric"] == test["metric"]) & rows["value"].notna()]
    total = None
    for times, head, strategy, variant in test["terms"]:
        part = rows[(rows["head"] == head) & (rows["strategy"] == strategy) & (rows["variant"] == variant)]
        scores = part.set_index("seed")["value"] * 100 * times
        total = scores if total is None else (total + scores).dropna()
    return total.tolist()


def _margin(entry: dict) -> dict:
    return {key: entry[key] for key in ("above", "within") if key in entry}


def _row(entry: dict, found: list[tuple[dict, Verdict]], labels: dict) -> Row:
    """Return the line of a claim."""
    answer = overall([verdict.answer for _, verdict in found])
    several = {test["task"] for test, _ in found if sum(other["task"] == test["task"] for other, _ in found) > 1}
    tasks = [
        f"{wording.column_name(labels['tasks'], one['task'], one['split'], one['task'] in several)}: {_said(verdict)}"
        for one, verdict in found
    ]
    detail = "; ".join(tasks) or entry.get("reason", "no seed has all its scores")
    return Row({}, entry["claim"], [TextCell(entry["paper"]), TextCell(answer), TextCell(detail)])


def _said(verdict: Verdict) -> str:
    """Return an answer in print."""
    more = f", {wording.plural(verdict.more, 'more seed')}" if verdict.more else ""
    effect = "" if verdict.effect is None else f", d {wording.number(verdict.effect)}"
    return f"{verdict.answer} ({wording.number(verdict.contrast)}{effect}, p {wording.number(verdict.p, 2)}{more})"


def _lines(entry: dict, found: list[tuple[dict, Verdict]]) -> list[list]:
    """Return a claim's lines for programs."""
    common = [entry["id"], entry["claim"], entry["paper"], entry["encoder"]]
    margin = " ".join(f"{key} {value}" for key, value in _margin(entry).items())
    if not found:
        return [[*common, "", "", "", margin, "", "", "", NOT_TESTABLE, "", entry.get("reason", "no scores"), ""]]
    return [
        [*common, test["task"], test["split"], test["metric"], margin, f"{v.contrast:.4f}", f"{v.p:.4f}", v.seeds]
        + [v.answer, v.more or "", "", "" if v.effect is None else f"{v.effect:.4f}"]
        for test, v in found
    ]


def _notes() -> list[str]:
    return [
        "In brackets: the mean contrast over seeds in points (what is claimed to be higher less the other; of a share "
        "the first less that share of the second), d, the mean way to the margin in its own "
        "deviations, and p of a sign-flip test over seeds, by Holm over the table.",
        "Over all tasks a claim fails where it fails on one and holds where it holds on all. Undecided: p above 0.05, "
        "or fewer than six seeds; beside it how many more would do, if mean and deviation stayed.",
    ]
