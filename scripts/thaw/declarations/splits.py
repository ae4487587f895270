"""What splits are for, and those that a subset makes of train: their rows are in train's files."""

HELD_OUT = "held_out"  # the share of a subset by which everything is chosen, instead of the dataset's validation split
RESERVED = "reserved"  # rows that no draw of a subset may take: one more test split
PARTS_OF_TRAIN = (HELD_OUT, RESERVED)


def stored_split(split: str, stored) -> str:
    """Return the split whose files hold the rows of a split. Args: stored, the splits that there are files of."""
    return "train" if split in PARTS_OF_TRAIN and split not in stored else split


def splits_of(task: dict, subset: dict) -> dict:
    """Return a task, as a spec has it, with the validation and test splits of runs on a subset, as a spec has it."""
    own = {"validation": HELD_OUT} if subset.get("validation") else {}
    return task | own | ({"test": [*task.get("test", ["test"]), RESERVED]} if subset.get("reserved") else {})


def shown_split(task: dict, split: str) -> str:
    """Return the split that an output shows of a task. Args: `split`, test (the task's first) or validation."""
    return task.get("test", ["test"])[0] if split == "test" else task.get("validation", "validation")


def role(split: str, task: dict) -> str:
    if split == RESERVED:
        return RESERVED
    if split in task.get("test", ["test"]):
        return "test"
    if "/" in split:
        return "transfer"
    if split.endswith("_unseen"):
        return "unseen"
    return "train" if split == "train" else "validation"
