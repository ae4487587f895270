"""A folder that appears whole or not at all."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from thaw.core.errors import UserError


def require_new(target: Path, hint: str = "name a folder that is new or empty") -> None:
    """Raise UserError where a file, or a folder with something in it, is there. Args: hint, what would be right."""
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise UserError(f"{target} is there already; {hint}")


@contextlib.contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Give a temporary folder next to the target; it takes the target's place on success, and goes on any error."""
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield folder
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        if target.is_dir():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
            os.replace(target, old)  # a folder with files can not be replaced in one step
            os.replace(folder, target)
            shutil.rmtree(old)
        else:
            os.replace(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
