"""Keys and folders of jobs, and which job a path belongs to. No torch.

The templates are those of thaw.core.layout, which steps and outputs read too.
"""

from pathlib import PurePath

from thaw.core import layout


def store_of(tokens: str) -> str:
    """Return the key of the store whose tokens a card lists; its results folder may be a copy."""
    names = layout.names_in_folder("features", PurePath(*PurePath(tokens).parts[-5:-1]))
    return layout.key("features", names)


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
