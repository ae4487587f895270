"""What a run was made from, which its spec names by digests."""

from pathlib import Path

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json


def result_with(results: Path, step: str, digest: str, what: str) -> Path:
    """Return the file of a step's result that carries a digest; none is a UserError. Args: what, for its message."""
    pattern = layout.pattern(step)
    for file in sorted(results.glob(pattern)):
        if read_json(file).get("digest") == digest:
            return file
    raise UserError(f"{results}/{pattern}: none has digest {digest}, the {what} of this run; run the workflow again")
