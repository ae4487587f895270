"""Footnotes of a table of scores: metrics, split, seeds, and what limits comparisons."""

from thaw.declarations.flags import flag_label
from thaw.declarations.splits import RESERVED
from thaw.declarations.task_types import METRICS_OF_TYPE
from thaw.outputs.frame import aggregate, output_data, price
from thaw.outputs.frame.runs_frame import RUN, in_role
from thaw.words import wording


def notes(summary, runs, columns, spec: dict, role: str, marks: list[str]) -> tuple[list[str], list[str]]:
    """Return the footnotes of a table of scores, and those of them that its LaTeX form has room for.

    Args: summary of the table's runs; runs as `read_runs` gives them; columns of the table; spec of step `table`; the
    role of the scores; what brackets mean and what marks do, [] where only bold is used.
    """
    labels, fitted = spec["labels"], summary[summary["fitted"]]
    shown = runs[runs["main"].astype(bool) & in_role(runs, role)]
    groups = summary.loc[summary["fitted"], aggregate.GROUP].drop_duplicates()
    within = ", within its group" if len(groups) > 1 else ""
    bold = [f"Bold: the highest mean on validation of each column{within}."]
    short = [_numbers(columns, fitted, role, spec.get("first_draws", {})), *(marks or bold), *_synthetic(columns)]
    short += [wording.COST_NOTE] * bool(spec.get("costs"))
    short += price.note(runs) if "seconds" in spec.get("costs", []) else []
    lines = [*short, *shared_fits(fitted, labels), *_splits(shown, labels), *_carved(shown, labels)]
    lines += _overlap(runs, labels) if role == "test" else []
    lines += [*_truncated(shown, labels), *_cosine(summary), *_empty(summary, spec), *_undefined(summary)]
    lines += same_split(shown, labels)
    lines += [f"{wording.label(labels, 'encoders', id)}: {note}" for id, note in spec.get("notes", {}).items() if note]
    warned = [f"{mark} Warning: {flag_label(flag)}." for flag, mark in warning_marks(summary).items()]
    lines, short = [*lines, *warned], [*short, *warned]
    absent = [f"{wording.MISSING} A run is missing; the report lists it with the reason."] * bool(
        summary["missing"].any()
    )
    return lines + absent, short + absent


def same_split(runs, labels: dict) -> list[str]:
    """Return the sentence about tasks that are reported on the split that everything was chosen on."""
    tasks = runs.loc[runs["protocol"] == "paper", "task"]
    return [f"Selected and reported on the same split: {_tasks(tasks, labels)}."] if len(tasks) else []


def warning_marks(summary) -> dict[str, str]:
    """Return the mark of each warning that runs of a summary have, by flag."""
    flags = summary.loc[summary["fitted"], "flags"]
    return wording.warning_marks(flag for entry in flags for flag in entry.split(";") if flag)


def _tasks(tasks, labels: dict) -> str:
    return wording.listing(wording.task_name(labels, task) for task in dict.fromkeys(tasks))


def _numbers(columns, fitted, role: str, first: dict[str, str]) -> str:
    """Return the sentences about metrics, split, means, standard deviations and the number of seeds."""
    metrics = wording.listing(dict.fromkeys(column.metric for column in columns))
    text = f"{metrics}, × 100, on {'the test splits of other tasks' if role == 'transfer' else role}."
    return f"{text[0].upper()}{text[1:]} {over_seeds(fitted, first)}"


def over_seeds(fitted, first: dict[str, str]) -> str:
    """Return the sentence about means and standard deviations of a frame with `seeds`. Args: first, see `draws`."""
    low, high = int(fitted["seeds"].min()), int(fitted["seeds"].max())
    said = wording.means_over(low, high, output_data.unit(first, high))
    return f"{said[0].upper()}{said[1:]}."


def _synthetic(columns) -> list[str]:
    names = dict.fromkeys(column.label for column in columns if column.synthetic)
    return [f"{wording.SYNTHETIC}: {wording.listing(names)} written by Thaw's own grammar, not natural text."] * bool(
        names
    )


def shared_fits(fitted, labels: dict) -> list[str]:
    """Return the sentence about fits that do not depend on the seed."""
    if fitted["seeds"].max() < 2 or not fitted["shared"].any():
        return []
    names = dict.fromkeys(wording.label(labels, "strategies", id) for id in fitted.loc[fitted["shared"], "strategy"])
    return [f"{wording.listing(names)}: one convex fit shared by all seeds, hence no standard deviation."]


def _splits(shown, labels: dict) -> list[str]:
    """Return the sentence about tasks whose test scores are on a split of another name, such as GLUE's dev."""
    other = shown[(shown["role"] == "test") & (shown["split"] != "test")]
    parts = [
        f"{_tasks([task], labels)} on {wording.listing(dict.fromkeys(rows['split']))}"
        for task, rows in other.groupby("task", sort=False)
    ]
    lines = [f"Scored on another split than test: {'; '.join(parts)}."] if parts else []
    if (shown["split"] == RESERVED).any():
        lines += ["Reserved: rows of train on which no run of a subset trains or chooses, the same for all draws."]
    return lines


def _carved(shown, labels: dict) -> list[str]:
    """Return the sentence about tasks whose validation is a part of train."""
    tasks = shown.loc[shown["carved"].fillna(False).astype(bool), "task"]
    return [f"Validation held out from train: {_tasks(tasks, labels)}."] if len(tasks) else []


def _overlap(runs, labels: dict) -> list[str]:
    unseen = runs[(runs["role"] == "unseen") & runs["main"].astype(bool)]
    parts = []
    for (task, split), rows in unseen.groupby(["task", "split"], sort=False):
        name = split.removesuffix("_unseen")
        whole = runs[(runs["task"] == task) & (runs["split"] == name)]
        where = wording.column_name(labels, task, name, name != "test")
        parts.append(f"{where} {wording.number(100 * (1 - rows['n'].iloc[0] / whole['n'].max()))} %")
    if not parts:
        return []
    return [f"Test rows that share a sentence with train: {', '.join(parts)}; the report scores the others separately."]


def _truncated(shown, labels: dict) -> list[str]:
    """Return the sentence about texts that are longer than their view, if there are any."""
    cut = shown[shown["truncated"] > 0]
    parts = [
        f"{wording.column_name(labels, task, split, split != 'test')} "
        f"{wording.number(100 * (rows['truncated'] / rows['n']).max())} %"
        for (task, split), rows in cut.groupby(["task", "split"], sort=False)
    ]
    return [f"Texts truncated at the maximum length: {', '.join(parts)}."] if parts else []


def _cosine(summary) -> list[str]:
    """Return the sentence about the cosine baseline on classes."""
    cosine = summary[summary["baseline"] & (summary["strategy"] == "cosine")]
    if cosine["metric"].isin(METRICS_OF_TYPE["pair_regression"]).all():
        return []
    return [f"{wording.BASELINE_LABELS['cosine']}: on classes, thresholds on the similarity are fitted to train."]


def _empty(summary, spec: dict) -> list[str]:
    """Return the sentences about rows that are not run on a task: for pairs only, or after a run on that task."""
    labels, sources = spec["labels"], spec.get("start_tasks", {})
    others = set(summary["task"]) - set(summary.loc[summary["pairs"] != "", "task"])
    tasks = summary[summary["kind"] != "ensemble"].groupby(aggregate.ROW, dropna=False)["task"].agg(set)
    rows = [
        (others - {sources.get(strategy)}, scored)
        for strategy, scored in zip(tasks.index.get_level_values("strategy"), tasks, strict=True)
    ]
    pairs_only = any(without_pairs and without_pairs.isdisjoint(scored) for without_pairs, scored in rows)
    lines = ["Blank: applies to sentence pairs only."] * pairs_only
    after = [wording.label(labels, "strategies", id) for id in sources if id in set(summary["strategy"])]
    return lines + [f"Blank: starts from a run on that task ({wording.listing(after)})."] * bool(after)


def _undefined(summary) -> list[str]:
    if not summary["undefined"].any():
        return []
    return [f"{wording.DASH}: undefined score; means are over the seeds with a defined score."]


def undefined_note(runs, labels: dict, left_out: str) -> list[str]:
    """Return the note that names strategies with undefined scores, by task, none where there are none.

    Args: runs as `read_runs` returns them; names in print; what is left out because of them, as "these seeds".
    """
    present = (runs["kind"] == "run") & runs["main"].astype(bool) & (runs["missing"] == "")
    rows = runs[present & runs["role"].isin(["validation", "test"]) & runs["value"].isna()]
    counts = rows.drop_duplicates(RUN).groupby(["strategy", "variant", "task"], sort=False).size()
    said = [
        f"{wording.strategy_name(labels, strategy, variant)} on {wording.task_name(labels, task)} "
        f"({wording.plural(int(count), 'run')})"
        for (strategy, variant, task), count in counts.items()
    ]
    if not said:
        return []
    return [f"Undefined scores, as of a model that predicts one value for all rows: {'; '.join(said)}. {left_out}."]
