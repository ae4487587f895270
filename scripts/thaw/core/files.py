"""What a result looks like on disk: canonical specs, digests, and files that appear whole or not at all."""

import contextlib
import errno
import fcntl
import json
import math
import os
import stat
from pathlib import Path
from uuid import uuid4

from thaw.core.errors import UserError
from thaw.core.runtime import log


@contextlib.contextmanager
def atomic_write(path):
    """Give a temporary path next to `path`; rename it to `path` on success, delete it on any error."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The name is known before the file is there: SIGTERM may come at any instruction.
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}{path.suffix}")
    try:
        temporary.touch(0o600, exist_ok=False)
        yield temporary
        temporary.chmod(0o644)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def private_folder(path: Path) -> None:
    """Make a folder of this user alone; one that is there and is another's, or open to others, is an OSError."""
    path.mkdir(mode=0o700, exist_ok=True)
    seen = path.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or seen.st_mode & 0o077:
        raise PermissionError(errno.EPERM, "not a folder of this user alone", str(path))


def drop_unfinished(paths) -> None:
    """Delete what killed processes left of files while they wrote them; no other process may be writing them now."""
    for path in map(Path, paths):
        for left in path.parent.glob(f".{path.name}.*"):
            left.unlink(missing_ok=True)


def write_text(path, text: str) -> None:
    """Write a text file in one step, UTF-8 with plain line feeds."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path, obj) -> None:
    """Write readable JSON in one step, keys sorted, so that equal content means equal bytes."""
    write_text(path, json.dumps(obj, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path):
    """Read a JSON file; a missing or broken one is a UserError that names it."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing; run the workflow again, which makes it") from error
    except json.JSONDecodeError as error:
        message = f"{path}:{error.lineno}: not valid JSON ({error.msg}); delete the file so that it is made again"
        raise UserError(message) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not JSON in UTF-8 text; delete the file so that it is made again") from error


def write_parquet(path, frame) -> None:
    """Write a pandas frame as Parquet in one step, without its index."""
    with atomic_write(path) as temporary:
        frame.to_parquet(temporary, index=False)


def finite(value):
    """Return a float, or None for NaN, infinities and None: what JSON can hold."""
    return float(value) if value is not None and math.isfinite(value) else None


# Data types as safetensors names them, in the order of its enum Dtype: a file has the last one first, then by name.
DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fn": "F8_E4M3",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "complex64": "C64",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
}


def save_tensors(path: Path, tensors: dict, note: dict[str, str] | None = None) -> None:
    """Write tensors by name, and a note about them, as safetensors, in one step; equal content gives equal bytes.

    The library would hold all of them as bytes at once, and writes a note's entries in another order in each process.
    Here one after the other is brought to the CPU and written. Tensors may share their memory.
    """
    import torch

    dtypes = {name: str(tensor.dtype).removeprefix("torch.") for name, tensor in tensors.items()}
    rank = {dtype: -place for place, dtype in enumerate(DTYPES)}
    order = sorted(tensors, key=lambda name: (rank[dtypes[name]], name))
    header: dict[str, dict] = {"__metadata__": dict(sorted(note.items()))} if note else {}
    end = 0
    for name in order:
        place = [end, end := end + tensors[name].nbytes]
        header[name] = {"dtype": DTYPES[dtypes[name]], "shape": list(tensors[name].shape), "data_offsets": place}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text = text.ljust(-(-len(text) // 8) * 8)  # numbers begin at a multiple of 8 bytes
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(tensors[name].detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())


def check_digest(path: Path, expected: str) -> None:
    """Raise UserError where a file was made for another spec than its reader was planned for."""
    actual = read_json(path)["digest"]
    if actual != expected:
        raise UserError(f"{path} has digest {actual}, but this job was planned for {expected}; run the workflow again")


WITHOUT_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP}  # of Lustre mounted without them, and of some NFS


@contextlib.contextmanager
def locked(folder: Path):
    """Hold a folder's lock within a context; where another process holds it, say so and wait."""
    with open(folder / ".lock", "a") as file:
        if not try_lock(file):
            log(f"waiting for another process that writes to {folder}")
            _flock(file, fcntl.LOCK_EX)
        yield


def try_lock(file) -> bool:
    """Lock an open file until it is closed, for this process alone; return whether it was free."""
    try:
        _flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(file) -> None:
    _flock(file, fcntl.LOCK_UN)


def _flock(file, how: int) -> None:
    """Lock an open file; a file system that has no locks is a UserError that names it."""
    try:
        fcntl.flock(file, how)
    except OSError as error:
        if error.errno in WITHOUT_LOCKS:
            raise UserError(
                f"{Path(file.name).parent}: its file system has no locks (flock: {error.strerror}); mount it with them "
                "(Lustre: -o flock), or use a folder on another"
            ) from error
        raise
