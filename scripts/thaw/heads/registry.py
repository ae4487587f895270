"""Which class a head's `kind` in the catalogue stands for."""

from thaw import settings
from thaw.heads.base import Head
from thaw.heads.linear import LinearHead

HEADS: dict[str, type[Head]] = {"linear": LinearHead}


def build(entry: settings.Head, width: int, outputs: int, task_type: str) -> Head:
    """Return a new head for states of this width; its numbers come from torch's global generator."""
    return HEADS[entry.kind](entry, width, outputs, task_type)
