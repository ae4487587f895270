"""A data set on the Hugging Face Hub at a first look: its splits, and the columns of its training split.

Only `thaw new` needs it, for the first draft of a catalogue entry; `datasets` keeps what it downloads for `prepare`.
"""

from collections.abc import Mapping

from thaw.core.errors import UserError
from thaw.data.file_profile import FileProfile
from thaw.data.sources import SCRIPT_BRANCH, named_values

# split in Thaw -> its usual names on the Hub, the first that is there
SPLITS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev", "development", "validation_matched"),
    "test": ("test", "testing"),
}


def profile_hub(id: str, config: str | None, revision: str | None) -> tuple[FileProfile, dict[str, str]]:
    """Return what the training split of a data set holds, and {split in Thaw: split on the Hub}.

    Raises UserError where the data set cannot be loaded or has no split for training.
    """
    data = _loaded(id, config, revision)
    splits = {ours: next((name for name in names if name in data), None) for ours, names in SPLITS.items()}
    if splits["train"] is None:
        raise UserError(f"hub:{id}: no split is called train; there are {', '.join(data)}: write the entry by hand")
    train = data[splits["train"]]
    columns = {name: named_values(train[name], train.features[name]) for name in train.column_names}
    keys = {"id": id, **({"config": config} if config else {}), **({"revision": revision} if revision else {})}
    return FileProfile(keys, columns), {ours: name for ours, name in splits.items() if name}


def without_labels(
    id: str, config: str | None, revision: str | None, splits: dict[str, str], targets: list
) -> list[str]:
    """Return the splits in which a target is withheld, as in GLUE's tests: they cannot be scored."""
    data = _loaded(id, config, revision)
    withheld = []
    for ours, theirs in splits.items():
        split = data[theirs]
        there = set(targets) <= set(split.column_names)
        if not there or any(None in named_values(split[name], split.features[name]) for name in targets):
            withheld.append(ours)
    return withheld


def _loaded(id: str, config: str | None, revision: str | None) -> Mapping:
    """Return the data set's splits by name."""
    from datasets import load_dataset

    try:
        return load_dataset(id, config, revision=revision)
    except Exception as error:  # of many kinds, from several libraries
        reason = " ".join(str(error).split())[:300]
        if "script" in reason:
            reason = f"it is made by a program, which Thaw does not run; try --revision {SCRIPT_BRANCH}"
        raise UserError(f"hub:{id}: could not be loaded ({reason}); check id, --config and network") from error
