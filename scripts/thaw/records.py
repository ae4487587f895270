"""What a result looks like on disk: canonical specs, digests, and files that appear whole or not at all."""

import contextlib
import difflib
import hashlib
import json
import math
import os
import tempfile
from pathlib import Path


class UserError(Exception):
    """A mistake that the user can mend: one sentence that says what is wrong, where, and what would be right."""


def near(word: str, known) -> str:
    """Return `; did you mean 'x'?`, or else the list of what exists."""
    close = difflib.get_close_matches(str(word), [str(k) for k in known], n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; there are {', '.join(sorted(map(str, known)))}"


def canonical(obj) -> str:
    """Return the canonical JSON of a spec: sorted keys, no spaces; NaN and infinities raise UserError."""
    try:
        return json.dumps(obj, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except ValueError as error:
        raise UserError(f"a spec may hold finite numbers only: {error}") from error


def digest(obj) -> str:
    """Return the first 16 hex digits of the sha256 of an object's canonical JSON."""
    return hashlib.sha256(canonical(obj).encode()).hexdigest()[:16]


def file_sha256(path) -> str:
    """Return the sha256 of a file's content, read in blocks of 1 MiB."""
    checksum = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            checksum.update(block)
    return checksum.hexdigest()


@contextlib.contextmanager
def replacing(path):
    """Give a temporary path beside `path`; move it there on success, delete it on any error."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def intact(path, mend: str):
    """Turn whatever a library raises over a file that was made here into one sentence; `mend` says what to delete."""
    try:
        yield
    except (UserError, MemoryError, ImportError):
        raise
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"{path} is damaged ({reason}); delete {mend} and run the workflow again") from error


def write_text(path, text: str) -> None:
    """Write a text file in one step, UTF-8 with plain line feeds."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path, obj) -> None:
    """Write readable JSON in one step, keys sorted, so that equal content means equal bytes."""
    write_text(path, json.dumps(obj, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path):
    """Read a JSON file; a missing or broken one is a UserError that names it."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: run the step that makes it") from error
    except json.JSONDecodeError as error:
        message = f"{path}:{error.lineno}: not valid JSON ({error.msg}); delete the file so that it is made again"
        raise UserError(message) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not JSON in UTF-8 text; delete the file so that it is made again") from error


def write_parquet(path, frame) -> None:
    """Write a pandas frame as Parquet in one step, without its index."""
    with replacing(path) as temporary:
        frame.to_parquet(temporary, index=False)


def finite(value):
    """Return a float, or None for NaN, infinities and None: what JSON can hold."""
    return float(value) if value is not None and math.isfinite(value) else None
