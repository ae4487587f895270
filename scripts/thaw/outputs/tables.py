"""Tables: which rows, columns, cells and footnotes an output has. `formats` writes them."""

from dataclasses import dataclass, field

from thaw.outputs import summary, words


@dataclass
class Cell:
    """A mean over seeds (scores x 100); sd is None where it says nothing: one seed, or one fit for all seeds."""

    mean: float | None
    sd: float | None
    seeds: int
    best: bool = False
    flagged: bool = False

    @property
    def text(self) -> str:
        """The cell in print: `91.2 ± 0.4†`."""
        spread = "" if self.sd is None else f" ± {words.number(self.sd)}"
        return words.number(self.mean) + spread + ("†" if self.flagged else "")


@dataclass
class Row:
    """A strategy or a baseline with a cell per column (None where it was not run)."""

    key: dict
    name: str
    cells: list[Cell | None]


@dataclass
class Group:
    """Rows that share encoder, head and subset; the name is empty where there is a single group."""

    name: str
    rows: list[Row]


@dataclass
class Table:
    """A table before it is written: baselines above the rule, then the groups."""

    id: str
    caption: str
    columns: list[summary.Column]
    baselines: list[Row]
    groups: list[Group]
    notes: list[str] = field(default_factory=list)

    @property
    def synthetic(self) -> bool:
        """Whether any column stands on synthetic data."""
        return any(column.synthetic for column in self.columns)


def strategy_table(runs, spec: dict) -> Table:
    """Return the table of strategies (rows) by tasks (columns): the main metric's mean and deviation over seeds.

    The best mean of each column within each group is marked, ties as printed; baselines are left out of that.
    Args: runs as `read_runs` gives them; spec as step `table` gets it.
    """
    found, labels = summary.summarise(runs, spec), spec["labels"]
    columns = summary.columns(found, labels)
    several = found["subset"].nunique() > 1
    baselines = _rows(found[found["baseline"]], columns, labels, several)
    names = summary.group_names(found, labels)
    groups = []
    for (subset, encoder, head), name in names.items():
        mine = (found["subset"] == subset) & (found["encoder"] == encoder) & (found["head"] == head)
        rows = _rows(found[mine & ~found["baseline"]], columns, labels)
        _mark_best(rows)
        groups.append(Group(name, rows))
    return Table(spec["id"], spec["caption"], columns, baselines, groups, notes(found, runs, columns, spec))


def notes(found, runs, columns, spec: dict) -> list[str]:
    """Return the sentences under a table: what the numbers are, what is synthetic, shared, flagged or overlaps."""
    labels, fitted = spec["labels"], found[~found["baseline"]]
    lines = [f"{words.listing(_metrics(columns))}, × 100, on {spec.get('split', 'test')}. {_seeds(fitted)}"]
    lines[0] = lines[0][0].upper() + lines[0][1:]
    lines.append("Best of each column in bold" + (", within its group" if spec_groups(found) > 1 else "") + ".")
    synthetic = [column.label for column in columns if column.synthetic]
    if synthetic:
        lines.append(f"{words.SYNTHETIC}: {words.listing(synthetic)} written by Thaw's own grammar, not natural text.")
    shared = fitted[fitted["shared"]]
    if len(shared) and fitted["seeds"].max() > 1:
        names = dict.fromkeys(labels.get("strategies", {}).get(row, row) for row in shared["strategy"])
        lines.append(f"{words.listing(names)}: one convex fit shared by all seeds, hence no deviation.")
    lines += _overlap(runs, labels, spec)
    lines += _undefined(found)
    for task in dict.fromkeys(runs.loc[runs["protocol"] == "paper", "task"]):
        lines.append(f"{words.task_name(labels.get('tasks', {}), task)}: selected and reported on one split.")
    lines += [f"{_label(labels, 'encoders', id)}: {note}" for id, note in spec.get("notes", {}).items() if note]
    flags = dict.fromkeys(flag for entry in fitted["flags"] for flag in entry.split(";") if flag)
    if flags:
        lines.append(f"† A run {words.listing([words.flag_label(flag) for flag in flags])}.")
    return lines


def spec_groups(found) -> int:
    """Return how many groups of encoder, head and subset a summary has."""
    return len(found.loc[~found["baseline"], ["encoder", "head", "subset"]].drop_duplicates())


def cell(row) -> Cell:
    """Return the cell of a summary row."""
    undefined = row.mean != row.mean
    silent = row.sd != row.sd or row.shared or row.baseline
    mean, sd = (None if undefined else row.mean), (None if silent else row.sd)
    return Cell(mean, sd, int(row.seeds), flagged=bool(row.flags) and not row.baseline)


def _rows(part, columns, labels: dict, with_subset: bool = False) -> list[Row]:
    """Return table rows from summary rows, each key once, in order of first appearance."""
    rows: dict[tuple, Row] = {}
    places = {(column.task, column.split): place for place, column in enumerate(columns)}
    for entry in part.itertuples():
        key = {name: getattr(entry, name) for name in ("encoder", "head", "subset", "strategy", "variant")}
        name = summary.row_name(entry, labels, with_subset)
        row = rows.setdefault(tuple(key.values()), Row(key, name, [None] * len(columns)))
        row.cells[places[entry.task, entry.split]] = cell(entry)
    return list(rows.values())


def _mark_best(rows: list[Row]) -> None:
    """Mark in each column the cells whose printed mean is the highest."""
    for cells in zip(*(row.cells for row in rows), strict=True):
        present = [entry for entry in cells if entry and entry.mean is not None]
        top = max((round(entry.mean, 1) for entry in present), default=None)
        for entry in present:
            entry.best = round(entry.mean, 1) == top


def _label(labels: dict, kind: str, id: str) -> str:
    return labels.get(kind, {}).get(id, id)


def _metrics(columns) -> list[str]:
    """Return the metrics of the columns, each once."""
    return list(dict.fromkeys(column.metric for column in columns))


def _seeds(fitted) -> str:
    """Return the sentence about means, deviations and the number of seeds."""
    low, high = int(fitted["seeds"].min()), int(fitted["seeds"].max())
    if high == 1:
        return "One seed, so that no deviation can be given."
    size = f"{low}" if low == high else f"{low} to {high}"
    return f"Mean ± standard deviation (n − 1) over {size} seeds."


def _overlap(runs, labels: dict, spec: dict) -> list[str]:
    """Return the sentence about test rows that share a sentence with train, if there are any."""
    if spec.get("split", "test") != "test":
        return []
    unseen = runs[(runs["role"] == "unseen") & runs["main"].astype(bool)]
    parts = []
    for (task, split), rows in unseen.groupby(["task", "split"], sort=False):
        whole = runs[(runs["task"] == task) & (runs["split"] == split.removesuffix("_unseen"))]
        share = 100 * (1 - rows["n"].iloc[0] / whole["n"].iloc[0])
        parts.append(f"{words.task_name(labels.get('tasks', {}), task)} {words.number(share)} %")
    if not parts:
        return []
    return [f"Test rows that share a sentence with train: {', '.join(parts)}; the report scores the others apart."]


def _undefined(found) -> list[str]:
    """Return the sentence about scores that are not defined, if there are any."""
    if not found["undefined"].any():
        return []
    return [f"{words.DASH}: a score that is not defined; a mean is taken over the seeds that have one."]
