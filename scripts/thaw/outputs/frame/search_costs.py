"""What the search cost that chose a run's settings: all its trials."""

from pathlib import Path

from thaw.core import layout
from thaw.core.files import read_json


def search_seconds(needs, results) -> float | None:
    """Return the seconds of training of all trials of the searches that a run needs, 0 without one.

    None where a search or a trial has left no record of its cost. Args: needs, as `CollectedResult` has
    them; the results folder.
    """
    searches = {need.folder: need for need in needs if need.role == "settings"}
    files = [path for need in searches.values() for path in _costs(need, Path(results))]
    if not all(path.is_file() for path in files):
        return None
    return sum((float(read_json(path)["seconds"]["train"]) for path in files), 0.0)


def _costs(need, results: Path) -> list[Path]:
    """Return the cost.json of a search: of the one job that trains all trials, or of each run that is a trial."""
    folder = results / need.folder
    if need.step == "search_heads" or not (folder / "chosen.json").is_file():
        return [folder / "cost.json"]
    trials = [
        need.names | {"variant": layout.of_trial(need.names["variant"], number), "seed": seed}
        for number, trial in enumerate(read_json(folder / "chosen.json")["trials"], 1)
        for seed in trial["seeds"]
    ]
    return [results / layout.folder("train", names) / "cost.json" for names in trials]
