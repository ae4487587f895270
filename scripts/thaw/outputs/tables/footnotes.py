"""Footnotes of a table: what its numbers are, and what a reader must know before comparing them."""

from thaw.declarations.task_types import METRICS_OF_TYPE
from thaw.outputs import wording
from thaw.outputs.frame import aggregate


def notes(found, runs, columns, spec: dict, role: str) -> list[str]:
    """Return the sentences under a table, none of them where it has nothing to say.

    Args: found, the table's summary; runs as `read_runs` gives them; columns of the table; spec of step `table`; the
    role of the scores.
    """
    labels, fitted = spec["labels"], found[found["fitted"]]
    shown = runs[runs["main"].astype(bool) & (runs["role"] == role)]
    lines = [_numbers(columns, fitted, role)]
    lines.append("Best of each column in bold" + (", within its group" if _groups(found) > 1 else "") + ".")
    lines += [*_synthetic(columns), *_shared(fitted, labels), *_splits(shown, labels), *_carved(shown, labels)]
    lines += _overlap(runs, labels) if role == "test" else []
    lines += [*_truncated(shown, labels), *_pairs(found, labels), *_empty(found), *_undefined(found)]
    paper = shown.loc[shown["protocol"] == "paper", "task"]
    lines += [f"Selected and reported on one split: {_tasks(paper, labels)}."] if len(paper) else []
    names = labels.get("encoders", {})
    lines += [f"{names.get(id, id)}: {note}" for id, note in spec.get("notes", {}).items() if note]
    flags = dict.fromkeys(flag for entry in fitted["flags"] for flag in entry.split(";") if flag)
    lines += [f"† A run {wording.listing([wording.flag_label(flag) for flag in flags])}."] if flags else []
    lines += [f"{wording.MISSING} A run is missing; the report says which, and why."] if found["missing"].any() else []
    return lines


def _groups(found) -> int:
    """Return how many groups of encoder, head and subset a summary has."""
    return len(found.loc[found["fitted"], aggregate.GROUP].drop_duplicates())


def _tasks(tasks, labels: dict) -> str:
    """Return the names of some tasks, each once."""
    return wording.listing(wording.task_name(labels.get("tasks", {}), task) for task in dict.fromkeys(tasks))


def _numbers(columns, fitted, role: str) -> str:
    """Return the sentences about metrics, split, means, deviations and the number of seeds."""
    metrics = wording.listing(dict.fromkeys(column.metric for column in columns))
    text = f"{metrics}, × 100, on {'the test splits of other tasks' if role == 'transfer' else role}."
    low, high = int(fitted["seeds"].min()), int(fitted["seeds"].max())
    size = f"{low}" if low == high else f"{low} to {high}"
    seeds = f"Mean ± standard deviation (n − 1) over {size} seeds."
    if high == 1:
        seeds = "One seed, so that no deviation can be given."
    return f"{text[0].upper()}{text[1:]} {seeds}"


def _synthetic(columns) -> list[str]:
    """Return the sentence about what Thaw wrote itself."""
    names = dict.fromkeys(column.label for column in columns if column.synthetic)
    return [f"{wording.SYNTHETIC}: {wording.listing(names)} written by Thaw's own grammar, not natural text."] * bool(
        names
    )


def _shared(fitted, labels: dict) -> list[str]:
    """Return the sentence about fits that do not depend on the seed."""
    if fitted["seeds"].max() < 2 or not fitted["shared"].any():
        return []
    known = labels.get("strategies", {})
    names = dict.fromkeys(known.get(id, id) for id in fitted.loc[fitted["shared"], "strategy"])
    return [f"{wording.listing(names)}: one convex fit shared by all seeds, hence no deviation."]


def _splits(shown, labels: dict) -> list[str]:
    """Return the sentence about tasks whose test scores are on a split of another name, such as GLUE's dev."""
    other = shown[(shown["role"] == "test") & (shown["split"] != "test")]
    parts = [
        f"{_tasks([task], labels)} on {wording.listing(dict.fromkeys(rows['split']))}"
        for task, rows in other.groupby("task", sort=False)
    ]
    return [f"The split that serves as test is not called so: {'; '.join(parts)}."] if parts else []


def _carved(shown, labels: dict) -> list[str]:
    """Return the sentence about tasks whose validation is a part of train."""
    tasks = shown.loc[shown["carved"].fillna(False).astype(bool), "task"]
    return [f"Validation carved from train: {_tasks(tasks, labels)}."] if len(tasks) else []


def _overlap(runs, labels: dict) -> list[str]:
    """Return the sentence about test rows that share a sentence with train, if there are any."""
    unseen = runs[(runs["role"] == "unseen") & runs["main"].astype(bool)]
    parts = []
    for (task, split), rows in unseen.groupby(["task", "split"], sort=False):
        name = split.removesuffix("_unseen")
        whole = runs[(runs["task"] == task) & (runs["split"] == name)]
        where = wording.column_name(labels.get("tasks", {}), task, name, name != "test")
        parts.append(f"{where} {wording.number(100 * (1 - rows['n'].iloc[0] / whole['n'].max()))} %")
    if not parts:
        return []
    return [f"Test rows that share a sentence with train: {', '.join(parts)}; the report scores the others apart."]


def _truncated(shown, labels: dict) -> list[str]:
    """Return the sentence about texts that are longer than their view, if there are any."""
    cut = shown[shown["truncated"] > 0]
    parts = [
        f"{wording.column_name(labels.get('tasks', {}), task, split, split != 'test')} "
        f"{wording.number(100 * (rows['truncated'] / rows['n']).max())} %"
        for (task, split), rows in cut.groupby(["task", "split"], sort=False)
    ]
    return [f"Texts cut at the longest length that their view allows: {', '.join(parts)}."] if parts else []


def _pairs(found, labels: dict) -> list[str]:
    """Return the sentence about pair tasks that lack a frozen row reading both texts apart, or the untrained cosine.

    On similarity the view decides more than the strategy: a table with the joint view alone hides that.
    """
    lines, pairs = [], found[found["pairs"] != ""]
    frozen = pairs[pairs["fitted"] & (pairs["thawed"] == 0) & (pairs["pairs"] == "separate") & (pairs["seeds"] > 0)]
    cosine = pairs[pairs["baseline"] & (pairs["strategy"] == "cosine")]
    for what, has in (("frozen row that reads both texts apart", frozen), ("untrained cosine", cosine)):
        tasks = [task for task in dict.fromkeys(pairs["task"]) if task not in set(has["task"])]
        lines += [f"No {what} stands here for {_tasks(tasks, labels)}."] if tasks else []
    lines = [" ".join([*lines, "On similarity the view of a pair decides more than the strategy."])] if lines else []
    classes = cosine[~cosine["metric"].isin(METRICS_OF_TYPE["pair_regression"])]
    name = wording.BASELINE_LABELS["cosine"]
    return lines + [f"{name}: on classes, the cut points on that one number are fitted."] * bool(len(classes))


def _empty(found) -> list[str]:
    """Return the sentence about rows that only tasks on pairs can have, where the table has other tasks too."""
    others = set(found["task"]) - set(found.loc[found["pairs"] != "", "task"])
    tasks = found[~found["kind"].isin(aggregate.BESIDE)].groupby(aggregate.ROW, dropna=False)["task"].agg(set)
    empty = bool(others) and any(others.isdisjoint(scored) for scored in tasks)
    return ["Empty: the row reads pairs of texts, and the task has none."] * empty


def _undefined(found) -> list[str]:
    """Return the sentence about scores that are not defined, if there are any."""
    if not found["undefined"].any():
        return []
    return [f"{wording.DASH}: a score that is not defined; a mean is taken over the seeds that have one."]
