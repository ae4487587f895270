"""Footnotes of a paper's table: where its numbers are from, and what of ours is not as in the paper."""

from thaw.outputs import wording

MARKS = {"encoder": "ᵃ", "split": "ᵇ"}
SAID = {
    "encoder": "Another encoder stands in for the paper's, numbers of layers in proportion",
    "split": "Not on the split that the paper scored",
}
PROVENANCES = {
    "table_image": "Printed numbers were read from a picture of the table",
    "full_text": "Printed numbers were read from the paper's text",
    "text": "Printed numbers are those that the text states",
    "author_code": "The numbers beside ours were computed from the authors' own result files",
    "author_notebook": "The numbers beside ours stand in the authors' notebooks",
    "secondary": "The numbers beside ours come from somebody who had the paper",
    "missing": "The paper's numbers were not at hand",
}


def notes(beside: dict, ours: dict, spec: dict) -> list[str]:
    """Return the sentences under a paper's table. Args: `beside` of its spec, ours by (row, column), the spec."""
    cells = [cell for row in beside["rows"] for cell in row["cells"]]
    lines = [
        f"{beside['cite']}, arXiv:{beside['arxiv']}, {beside['source']}. Difference: ours less the printed number. In "
        "brackets the middle 95 % of a bootstrap over seeds and examples, entities by document."
    ]
    lines.append(f"{PROVENANCES[beside['provenance']]}; {wording.DASH}: not known, or not run.")
    lines += [f"{beside['note'][0].upper()}{beside['note'][1:]}."] if "note" in beside else []
    lines += _rule(beside) + _favours(beside) + _marks(cells, spec) + _seeds(beside, ours)
    lines += [f"{row['label']}: {row['note']}." for row in beside["rows"] if row.get("note")]
    lines += _reasons(beside)
    others = wording.listing(f"{source} ({reason})" for source, reason in beside["not_computed"])
    return lines + [f"Of this paper not computed: {others}."] * bool(others)


def near_chance(tasks, spec: dict) -> list[str]:
    """Return the sentence about tasks for which no least number of layers is given. Args: their ids; the spec."""
    names = wording.listing(wording.task_name(spec["labels"]["tasks"], task) for task in tasks)
    return [f"No k is given where the full model is not clearly above chance: {names}."] * bool(names)


def _rule(beside: dict) -> list[str]:
    """Return the sentence about the paper's way to put seeds together, where it is not the mean."""
    rule = "runs at 0, and those at most 0.9 of the best one, are dropped before the mean"
    said = f"The paper's rule: {rule}; the interval is that of the mean of all runs, the difference that of the rule."
    return [said] * (beside["aggregation"] == "lee2019")


def _favours(beside: dict) -> list[str]:
    """Return from where on the paper takes a difference to speak for one side."""
    sizes = dict.fromkeys(row["favours"]["beyond"] for row in beside["rows"] if "favours" in row)
    return [f"Beyond {wording.number(size)} points either way the paper takes a difference to speak." for size in sizes]


def _marks(cells: list[dict], spec: dict) -> list[str]:
    """Return what the marks mean, and whether nothing is marked."""
    lines = []
    for mark, sign in MARKS.items():
        found = [cell for cell in cells if mark in cell.get("marks", [])]
        tasks = wording.listing(dict.fromkeys(wording.task_name(spec["labels"]["tasks"], c["at"][0]) for c in found))
        encoders = wording.listing(dict.fromkeys(spec["labels"]["encoders"].get(c["at"][1], c["at"][1]) for c in found))
        lines += [f"{sign} {SAID[mark]}: {encoders if mark == 'encoder' else tasks}."] if found else []
    same = any("at" in cell for cell in cells) and not lines
    return lines or ["Encoders and splits are the paper's."] * same


def _seeds(beside: dict, ours: dict) -> list[str]:
    """Return the sentence about the number of seeds, ours and the paper's."""
    if not ours:
        return []
    numbers = sorted({one.seeds for one in ours.values()})
    said = wording.plural(numbers[0], "seed") if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} seeds"
    theirs = beside.get("seeds")
    return [f"Ours: {said}; the paper: {theirs if theirs else 'not said'}."]


def _reasons(beside: dict) -> list[str]:
    """Return why rows have no number of ours, rows that lack the same columns together."""
    found = {}
    for row in beside["rows"]:
        for column, cell in zip(beside["columns"], row["cells"], strict=True):
            if "reason" in cell:
                found.setdefault((row["label"], cell["reason"]), []).append(column["label"])
    alike: dict[str, dict[tuple, list[str]]] = {}
    for (label, reason), columns in found.items():
        alike.setdefault(reason, {}).setdefault(tuple(columns), []).append(label)
    lines = {reason: [_lacking(beside, *entry) for entry in places.items()] for reason, places in alike.items()}
    return [f"No number of ours, {reason}: {wording.listing(names)}." for reason, names in lines.items()]


def _lacking(beside: dict, columns: tuple, rows: list[str]) -> str:
    """Return the place of what some rows lack: whole rows, whole columns, or columns of some rows."""
    if len(columns) == len(beside["columns"]):
        return wording.listing(rows)
    return (
        wording.listing(columns)
        if len(rows) == len(beside["rows"])
        else f"{wording.listing(rows)} ({', '.join(columns)})"
    )
