"""Canonical JSON, and the digests under which specs, results and files are known."""

import hashlib
import json

from thaw.core.files import UserError


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
