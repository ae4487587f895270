"""Files from public addresses: checked, whole or not at all, and gone on with after a cut."""

import http.client
import os
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

from thaw.core import hub
from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.files import atomic_write, try_lock
from thaw.core.runtime import log

WAIT = 30  # seconds for an answer, and for the next block of a file
BLOCK = 2**20
COMPLETE = 416  # the answer to a request for what comes after the end


def download(address: str, path: Path, sha256: str | None) -> str:
    """Bring the file of an address to a path, and return its sha256. Raises UserError where it cannot be had.

    What came before a cut stays beside the path as `.<name>.part`, and the next call goes on from there. Without a
    sha256 nothing would show that the rest is of another file, so that the file is begun again.
    """
    if hub.is_off():
        raise UserError(f"{hub.OFFLINE} is set, and {path} comes from {address}; unset it, or put the file there")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with open(part, "ab") as file:
        if not try_lock(file):
            raise UserError(f"{path}: another process is downloading it; wait for that one")
        if not sha256:
            file.truncate(0)
        try:
            _append(address, file)
        except (OSError, ValueError, http.client.HTTPException) as error:
            again = "the same command goes on from there" if sha256 else "the same command begins it again"
            came = f"after {part.stat().st_size:,} bytes ({error}); {again}"
            raise UserError(f"{path}: the download from {address} ended {came}") from error
        found = file_sha256(part)
        if sha256 and found != sha256:
            part.unlink()
            other = "it is another file: put the stated one in its place, or correct sha256"
            raise UserError(f"{path}: {address} has sha256 {found}, and {sha256} is stated; {other}")
        part.replace(path)
    return found


def _append(address: str, file) -> None:
    """Append what an open file lacks of an address' file. Raises OSError where less comes than was announced."""
    have = os.fstat(file.fileno()).st_size
    request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=WAIT) as answer:
            if answer.status != http.HTTPStatus.PARTIAL_CONTENT:
                file.truncate(0)
            length = answer.headers["Content-Length"]
            log(f"{address}: {int(length or 0) / 2**20:.1f} MiB to come")
            came = 0
            while block := answer.read(BLOCK):
                file.write(block)
                came += len(block)
            file.flush()
            if length and came < int(length):
                raise OSError(f"{came:,} of {int(length):,} bytes came")
    except urllib.error.HTTPError as error:
        if error.code != COMPLETE:
            raise


def unpack(archive: Path, members: dict[Path, str]) -> None:
    """Write members of a zip or tar archive to paths, each whole or not at all. Args: name of the member by path."""
    is_zip = zipfile.is_zipfile(archive)
    try:
        with zipfile.ZipFile(archive) if is_zip else tarfile.open(archive) as opened:
            member: Any = getattr(opened, "open" if is_zip else "extractfile")
            for path, name in members.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                with member(name) as source, atomic_write(path) as temporary, open(temporary, "wb") as target:
                    shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        again = "the same command begins it again"
        raise UserError(f"{archive}: is no whole zip or tar archive ({error}); {again}") from error
    except (KeyError, TypeError) as error:  # a folder of a tar archive is None
        raise UserError(f"{archive}: has no such file ({error.args[0]}); correct `to:`") from error
