"""Paths of a plan: where each job's results are in the results folder, and which job a path belongs to. No torch.

The templates are those of thaw.core.layout, which steps and outputs read too; nothing else writes or reads a path.
"""

from collections.abc import Iterable
from pathlib import PurePath

from thaw.core import layout


class Paths:
    """The paths below one results folder."""

    def __init__(self, results: str):
        self.results = results

    def below(self, *parts: str) -> str:
        return "/".join([self.results, *parts])

    def file(self, step: str, key: str, **more) -> str:
        """Return the file by which a job is known to be done. Args: names that its key lacks: seed."""
        return self.below(layout.file(step, layout.names_in_key(step, key) | more))

    def log(self, step: str, key: str) -> str:
        """Return where a job writes what it prints, below the folder of logs."""
        return layout.log(step, layout.names_in_key(step, key))

    def store(self, key: str) -> str:
        return self.below(layout.folder("features", layout.names_in_key("features", key)))

    def parts(self, key: str, parts: Iterable[int | str]) -> list[str]:
        """Return the cards of some parts of a store: boundaries by number, and vectors of all layers by name."""
        return [layout.stored_part(self.store(key), part) for part in parts]

    def store_of(self, tokens: str) -> str:
        """Return the key of the store whose tokens a card lists; its results folder may be a copy."""
        names = layout.names_in_folder("features", PurePath(*PurePath(tokens).parts[-5:-1]))
        return layout.key("features", names)

    def result(self, folder: str, name: str = "metrics.json") -> str:
        """Return a file of a result. Args: its folder below the results folder."""
        return self.below(folder, name)


def corpus_of(store: str) -> str:
    return layout.names_in_key("features", store)["corpus"]


def encoder_of(store: str) -> str:
    """Return the catalogue's encoder behind a store, by its key."""
    return layout.encoder_of(layout.names_in_key("features", store)["weights"])


def adapted_key(run: str, task: str) -> str:
    """Return the key of the hidden states that a run's encoder gives on a task. Args: the folder of the run."""
    return layout.key("features_adapted", layout.names_in_folder("train", run) | {"probed": task})


def result_folder(step: str, key: str) -> str:
    """Return the folder of a job's results below the results folder."""
    return layout.folder(step, layout.names_in_key(step, key))
