"""The one price of a run, which tables, figures and the decision read: what training and choosing took, in seconds.

It counts the training, the runs that it starts from, its share of the search that chose its settings, and its share of
the encoder's passes over the rows that training and choosing read. Test rows are never among them. Seconds are those of
the processor on a CPU, those by the clock on a device, and those by the clock where a run did not note the processor's.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from thaw.core import layout
from thaw.core.files import read_json
from thaw.outputs.frame.runs_frame import value
from thaw.words import wording

FITTED = "lbfgs"  # the optimizer of heads that are fitted to convergence
LEAST = 0.5  # share of a run's seconds in which a processor worked for it: about 1 on idle cores, more with threads
SHORT = 5.0  # seconds below which starting and reading are most of a run


class Spent(NamedTuple):
    """Seconds as above, and floating-point operations."""

    seconds: float
    flops: float


def of_training(record: dict, path) -> Spent:
    """Return what a training took. Args: its cost.json, and the path.

    A run notes the processor's seconds of loading, training and evaluating together: training has its share by the
    clock.
    """
    seconds, worked = value(record, path, "seconds", "train"), record.get("processor_seconds")
    if worked is not None and value(record, path, "hardware", "device") == "cpu":
        clock = sum(spent for part, spent in record["seconds"].items() if part != "total")
        seconds *= worked / clock if clock else 1.0
    return Spent(float(seconds), float(value(record, path, "flops")))


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


def price(runs):
    """Return the price of each row of runs.csv, in seconds; NaN for what trains nothing.

    Where runs waited for a busy machine, all are priced by their operations. Fitted heads, whose operations are many
    small ones, have a rate of their own. Args: all runs of an experiment, as `read_runs` gives them.
    """
    if not waiting(runs):
        return runs["price_seconds"]
    fitted = runs["optimizer"] == FITTED
    return _flops(runs) / fitted.map({is_fitted: rate(runs[fitted == is_fitted]) for is_fitted in (True, False)})


def rate(runs) -> float:
    """Return the operations per second of the price over some runs, each counted once; NaN where none has any."""
    once = runs.assign(work=_flops(runs)).drop_duplicates("folder").dropna(subset=["work", "price_seconds"])
    return once["work"].sum() / once["price_seconds"].sum() if len(once) else float("nan")


def waiting(runs) -> tuple[int, int] | None:
    """Return how many runs on the CPU waited for half of their seconds or more, and of how many; None without any.

    Short runs and those that did not note the processor's seconds are not judged.
    """
    noted = runs[(runs["device"] == "cpu") & runs["processor_seconds"].notna() & (runs["total_seconds"] >= SHORT)]
    noted = noted.drop_duplicates("folder")
    waited = int((noted["processor_seconds"] < LEAST * noted["total_seconds"]).sum())
    return (waited, len(noted)) if waited else None


def note(runs) -> list[str]:
    """Return the sentences about prices on a machine that was busy; none where it was not."""
    waited, fitted = waiting(runs), runs["optimizer"] == FITTED
    if not waited:
        return []
    return [
        f"The machine was busy: in {waited[0]} of {waited[1]} runs the processor worked for less than half of the "
        "seconds. Prices are therefore counted operations, those of feature extraction among them, at the rates of "
        f"fitted heads ({wording.short(rate(runs[fitted]))}FLOP/s) and of other runs here "
        f"({wording.short(rate(runs[~fitted]))}FLOP/s)."
    ]


def _flops(runs):
    return runs["flops"] + runs["after_flops"] + runs["search_flops"].fillna(0.0) + runs["extraction_flops"]
