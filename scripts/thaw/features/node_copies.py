"""Copies of payloads on a node's own disk, for results on a file system that many nodes read.

A copy is named by its content and renamed when it is whole, so that who finds it needs no lock. None is deleted here.
"""

import hashlib
import os
import shutil
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import atomic_write, drop_unfinished, locked, private_folder
from thaw.core.runtime import log

FOLDER = "THAW_NODE_DISK"  # names the folder; a job fills in what its node alone knows, as $SLURM_JOB_ID or $TMPDIR
BLOCK = 2**16  # bytes: a block of zeros stays a hole


def nearest(path: Path, card: dict) -> Path:
    """Return a payload's copy on this node's disk, made where there is none; the payload itself where none can be."""
    given = os.path.expandvars(os.environ.get(FOLDER, ""))
    if not given:
        return path
    copy = Path(given, f"thaw-{os.getuid()}", f"{card['sha256']}.safetensors")
    try:
        if "$" in given:
            raise OSError(f"no such variable in {FOLDER}={given}")
        if not copy.is_absolute():
            raise OSError(f"{FOLDER}={given} does not begin with /")
        private_folder(copy.parent)
        if not copy.is_file():
            with locked(copy.parent):
                if not copy.is_file():  # another job may have made it meanwhile
                    _write(copy, path, card)
    except (OSError, UserError) as error:  # the latter of a disk without locks
        log(f"{path} is read where it is, without a copy on this node: {error}")
        return path
    return copy


def _write(copy: Path, path: Path, card: dict) -> None:
    """Copy a payload; too little room, or another content than its card describes, is an OSError."""
    drop_unfinished([copy])
    disk = shutil.disk_usage(copy.parent)
    if disk.free < card["bytes"] + disk.total // 10:
        raise OSError(f"less than a tenth of the disk of {copy.parent} would stay free")
    log(f"copying {path} to {copy}")
    digest = hashlib.sha256()
    with atomic_write(copy) as temporary, open(path, "rb") as source, open(temporary, "wb") as target:
        while block := source.read(BLOCK):
            digest.update(block)
            if block.strip(b"\0"):
                target.write(block)
            else:
                target.seek(len(block), os.SEEK_CUR)
        target.truncate()
        target.flush()
        os.fsync(target.fileno())  # before the name is there, which vouches for the content
        if digest.hexdigest() != card["sha256"]:
            raise OSError(f"{path} changed while it was copied")
