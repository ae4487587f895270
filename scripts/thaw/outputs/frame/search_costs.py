"""What the search cost that chose a run's settings: all its trials, and a run's share of them."""

from collections import Counter
from pathlib import Path

from thaw.core import layout
from thaw.core.files import read_json
from thaw.outputs.frame.price import Spent, of_training


def searches_of(needs) -> dict[str, object]:
    """Return the searches that a run needs, by folder. Args: needs, as `CollectedResult` has them."""
    return {need.folder: need for need in needs if need.role == "settings"}


def search_costs(needs, results, readers: Counter) -> tuple[float, Spent] | None:
    """Return a run's share of all trials of the searches that it needs, by the clock, and as its price has it.

    None where a search or a trial has left no record of its cost. Args: needs, as `CollectedResult` has
    them; the results folder; how many runs need each search, by its folder.
    """
    clock, seconds, flops = 0.0, 0.0, 0.0
    for folder, need in searches_of(needs).items():
        for path in _costs(need, Path(results)):
            if not path.is_file():
                return None
            record = read_json(path)
            spent = of_training(record, path)
            clock += record["seconds"]["train"] / readers[folder]
            seconds, flops = seconds + spent.seconds / readers[folder], flops + spent.flops / readers[folder]
    return clock, Spent(seconds, flops)


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
