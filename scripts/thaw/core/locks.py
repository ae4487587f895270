"""Locks on files, which end with the process that holds them."""

import contextlib
import errno
import fcntl
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.runtime import log

WITHOUT_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP}  # of Lustre mounted without them, and of some NFS


@contextlib.contextmanager
def locked(folder: Path):
    """Hold a folder's lock within a context; where another process holds it, say so and wait."""
    with open(folder / ".lock", "a") as file:
        if not try_lock(file):
            log(f"waiting for another process that writes to {folder}")
            _flock(file, fcntl.LOCK_EX)
        yield


def try_lock(file, shared: bool = False) -> bool:
    """Lock an open file until it is closed, for this process alone or shared; return whether it was free."""
    try:
        _flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(file) -> None:
    """Give a lock back."""
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
