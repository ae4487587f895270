"""Runs whose score is undefined: a correlation, say, of predictions that are all equal."""

from thaw.outputs import wording
from thaw.outputs.frame.runs_frame import RUN


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
