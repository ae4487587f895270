"""An export from first to last: built beside its place, checked, and moved there whole."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from thaw.exporting import forms
from thaw.exporting.card import card
from thaw.exporting.checking import check
from thaw.exporting.source import find
from thaw.records import UserError, write_json, write_text
from thaw.runtime import log


def export(run: Path, target: Path) -> dict:
    """Write a run's model into a folder that is new or empty, and return its check.

    A model that answers otherwise than its run did is a UserError, and leaves nothing behind.
    """
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise UserError(f"{target} is there already; name a folder that is new or empty")
    source = find(run)
    with _beside(target) as folder:
        form = forms.write(source, folder)
        write_text(folder / "README.md", card(source, form))
        log(f"written in the form {form}; reading the test splits again, from text, in a fresh process")
        found = check(source, folder)
        if not found["passed"]:
            raise UserError(f"the export does not answer as its run did, so {target} was not written\n{told(found)}")
        write_json(folder / "check.json", found)
    return found


def told(found: dict) -> str:
    """Return the outcome of a check in words, some lines for each split."""
    lines = []
    for split, part in found["splits"].items():
        changed, allowed = part["changed"], found["may_change"]
        lines.append(
            f"{split}: {changed} of {part['answers']} answers are others than recorded (at most {allowed:.0%})"
        )
        lines.append(
            f"  largest difference from the run's own tensors in Thaw, both in fp32: {part['largest_difference']:.1e} "
            f"(at most {found['tolerance']:g})"
        )
        for name, value in part["scores"].items():
            lines.append(f"  {name}: {_shown(value['run'])} in the run, {_shown(value['export'])} in the export")
    return "\n".join(lines)


def _shown(score: float | None) -> str:
    """Return a score in print."""
    return "undefined" if score is None else f"{score:.4f}"


@contextlib.contextmanager
def _beside(target: Path):
    """Give a new folder beside the target; move it there on success, delete it on any error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield folder
        folder.chmod(0o755)
        for file in folder.iterdir():
            file.chmod(0o644)
        os.replace(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
