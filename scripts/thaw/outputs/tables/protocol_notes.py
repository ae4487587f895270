"""How a paper's protocol and ours differ: the footnotes of a reproduced table, and a table of the settings."""

from thaw.outputs.render.typed_table import Group, Table, text_row
from thaw.words import wording

MARKS = {"encoder": "ᵃ", "split": "ᵇ", "unknown_split": "ᶜ", "rows": "ᵈ"}
SAID = {
    "encoder": "A different encoder than the paper's, with numbers of layers in proportion",
    "split": "A different split than the paper's",
    "unknown_split": "It is not known whether the split is the paper's",
    "rows": "Fewer rows to train on or to score than all",
}
PROVENANCES = {
    "table_image": "Published numbers were read from an image of the table",
    "full_text": "Published numbers were read from the paper's text",
    "text": "Published numbers are those stated in the text",
    "author_code": "Published numbers were computed from the authors' result files",
    "author_notebook": "Published numbers are from the authors' notebooks",
    "author_page": "Published numbers are from the page of the authors' code",
    "dataset_copy": "Published numbers are from a data set that holds the table cell by cell",
    "secondary": "Published numbers are from a secondary source",
    "missing": "The paper's numbers are not available",
}


def notes(comparison: dict, reproduced: dict, spec: dict) -> list[str]:
    """Return the notes of a paper's table. Args: `beside` of its spec, reproduced by (row, column), the spec."""
    cells = [cell for row in comparison["rows"] for cell in row["cells"]]
    lines = [
        f"{comparison['cite']}, arXiv:{comparison['arxiv']}, {comparison['source']}. Difference: "
        f"reproduced minus published. In brackets the 95 % CI ({wording.CI})."
    ]
    lines.append(f"{PROVENANCES[comparison['provenance']]}; {wording.DASH}: not known, or not run.")
    lines += [f"{comparison['note'][0].upper()}{comparison['note'][1:]}."] if "note" in comparison else []
    beyond = dict.fromkeys(row["favours"]["beyond"] for row in comparison["rows"] if "favours" in row)
    favours = [f"The paper interprets only differences of more than {wording.number(size)} points." for size in beyond]
    lines += _rule(comparison) + favours + _marks(cells, spec) + _seeds(comparison, reproduced)
    lines += [f"{row['label']}: {row['note']}." for row in comparison["rows"] if row.get("note")]
    lines += _reasons(comparison)
    others = wording.listing(f"{source} ({reason})" for source, reason in comparison["not_computed"])
    return lines + [f"Not reproduced: {others}."] * bool(others)


def near_chance(tasks, spec: dict) -> list[str]:
    """Return the sentence about tasks for which no least number of layers is given. Args: their ids; the spec."""
    names = wording.listing(wording.task_name(spec["labels"], task) for task in tasks)
    return [f"No k where the full model is not clearly above chance: {names}."] * bool(names)


def _rule(comparison: dict) -> list[str]:
    """Return the sentences about how the paper aggregates seeds, if not by the mean, and how layers are counted."""
    rule = "runs that score 0 or at most 0.9 of the best run are dropped before the mean"
    said = f"The paper's rule: {rule}; the 95 % CI is of the mean of all runs, the difference uses the rule."
    least = "Number of layers: the k from which on every larger k reaches the share; by the paper's rule, the first k."
    counted = any("least" in row for row in comparison["rows"])
    return [said] * (comparison["aggregation"] == "lee2019") + [least] * counted


def _marks(cells: list[dict], spec: dict) -> list[str]:
    """Return what the marks mean, each with the encoders, the tasks or the rows of its cells; or that none is there."""
    lines = []
    for mark, sign in MARKS.items():
        marked = [cell for cell in cells if mark in cell.get("marks", [])]
        tasks = wording.listing(
            dict.fromkeys(wording.task_name(spec["labels"], c["at"][0]) for c in marked if "at" in c)
        )
        named = [c["at"][1] if "at" in c else c["quantity"]["encoder"] for c in marked]
        encoders = wording.listing(dict.fromkeys(wording.label(spec["labels"], "encoders", one) for one in named))
        lines += [f"{sign} {SAID[mark]}: {encoders if mark == 'encoder' else tasks}."] if marked else []
    same = any("at" in cell for cell in cells) and not lines
    return lines or ["Encoders, splits and numbers of rows are the paper's."] * same


def _seeds(comparison: dict, reproduced: dict) -> list[str]:
    if not reproduced:
        return []
    numbers = sorted({one.seeds for one in reproduced.values()})
    said = wording.plural(numbers[0], "seed") if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} seeds"
    theirs = comparison.get("seeds")
    lines = [f"Reproduced with {said}; published with {theirs or 'an unstated number'}."]
    return lines + wording.few_seeds(numbers[0])


def _reasons(comparison: dict) -> list[str]:
    """Return why numbers were not reproduced, grouping rows that lack the same columns."""
    lacking: dict = {}
    for row in comparison["rows"]:
        for column, cell in zip(comparison["columns"], row["cells"], strict=True):
            if "reason" in cell:
                lacking.setdefault((row["label"], cell["reason"]), []).append(column["label"])
    alike: dict[str, dict[tuple, list[str]]] = {}
    for (label, reason), columns in lacking.items():
        alike.setdefault(reason, {}).setdefault(tuple(columns), []).append(label)
    lines = {
        reason: [_lacking(comparison, *entry) for entry in rows_by_columns.items()]
        for reason, rows_by_columns in alike.items()
    }
    return [f"Not reproduced, {reason}: {wording.listing(names)}." for reason, names in lines.items()]


def _lacking(comparison: dict, columns: tuple, rows: list[str]) -> str:
    """Return the name of the cells that some rows lack: whole rows, whole columns, or columns of some rows."""
    if len(columns) == len(comparison["columns"]):
        return wording.listing(rows)
    return (
        wording.listing(columns)
        if len(rows) == len(comparison["rows"])
        else f"{wording.listing(rows)} ({', '.join(columns)})"
    )


MARK = "ᵃ"
NOTES = [
    f"{MARK} Read from the catalogues, so it is what the runs have.",
    "As here without a mark: in words, which were written by hand and which nothing compares with the runs.",
    "Not stated: by no source that was available.",
]


def build(data, spec: dict) -> Table:
    """Return what the paper did, what is done here, and why they differ, a line for each setting."""
    rows = []
    for what, paper, here, why, read in spec["protocol"]:
        record = {"what": what, "paper": paper, "here": here, "why": why}
        record["here_from"] = "catalogues" if read else "words"
        rows.append(text_row(what, [cell or wording.DASH for cell in (paper, here + MARK * read, why)], record))
    titles, look = ["As the paper", "As here", "Why"], {"of": "Setting", "sentences": True}
    return Table.of_spec(spec, titles, [Group("", rows)], NOTES, **look)
