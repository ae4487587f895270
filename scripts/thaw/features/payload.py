"""A boundary's payload: a safetensors file that is written in place, row by row, and read through a memory map.

A process counts the mapped pages that it touched as its own, up to the whole file. They are given back now and then, so
that its memory does not grow with the corpus; the system keeps them cached as long as nobody needs the room.
Rows that no job has read yet are holes in the file: they take no disk where the file system knows of holes.

The safetensors library writes whole tensors from memory; a corpus' states do not fit there. Its format is simple (8
bytes length, a JSON header, then the tensors' bytes), so the header is written first, from sizes known beforehand.
Source: https://github.com/huggingface/safetensors, "Format".

N tokens of a split, d width.
"""

import contextlib
import json
import mmap
import os
import struct
import time
from pathlib import Path

import numpy as np
import torch

from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.files import write_json

YOUNG = 5.0  # seconds: a file may change twice within the resolution of its time stamps, two seconds on some systems


def checksum(path: Path) -> str:
    """Return the sha256 of a file's content: the noted one where the file is as it was, else computed and noted.

    A file that changed a moment ago is not noted, nor one that changes while it is read, nor in a folder that this user
    may not write to.
    """
    note, before = path.with_name(f".{path.name}.sha256.json"), _state(path)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # no note, or one that was damaged
        known = json.loads(note.read_text(encoding="utf-8"))
        if known["file"] == before:
            return known["sha256"]
    digest = file_sha256(path)
    if _state(path) == before and time.time() - max(before["mtime_ns"], before["ctime_ns"]) / 1e9 > YOUNG:
        with contextlib.suppress(OSError):
            write_json(note, {"file": before, "sha256": digest})
    return digest


def _state(path: Path) -> dict[str, int]:
    stat = os.stat(path)
    return {"inode": stat.st_ino, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns}


NUMPY: dict[str, np.dtype] = {  # numpy has no bf16: its 16 bits are carried as integers
    "bf16": np.dtype("<i2"),
    "fp32": np.dtype("<f4"),
}
NAMES = {"bf16": "BF16", "fp32": "F32"}
MAPPED = 2**26  # bytes that are written or read before their pages are given back


class Payload:
    """The tensors of a file, one array per split: [N, d], or with more dimensions between."""

    def __init__(self, tensors: dict[str, np.ndarray], dtype: str):
        self.tensors = tensors
        self.dtype = dtype
        self._touched = 0
        self._room = np.empty((0, 0))

    @classmethod
    def create(cls, path: Path, dtype: str, shapes: dict[str, tuple[int, ...]], whole: bool = True) -> "Payload":
        """Write a file of these shapes and return it open for writing, with all disk space claimed where it is whole.

        One that is not takes no space yet: `claim` the places that will be written.
        """
        header = _header(dtype, shapes)
        with open(path, "wb") as file:
            file.write(header)
            size = len(header) + _bytes(dtype, shapes)
            file.truncate(size)
            if whole:
                _claim(file, path, 0, size)
        return cls(_map(path, "r+", len(header), dtype, shapes), dtype)

    def claim(self, split: str, places: np.ndarray) -> int:
        """Claim the disk space of some places [n] of a split, and return its bytes."""
        tensor = self.tensors[split]
        if not len(places) or not isinstance(tensor, np.memmap) or tensor.filename is None:
            return 0
        places, each = np.sort(places), tensor.strides[0]
        with open(tensor.filename, "r+b") as file:
            for run in np.split(places, np.flatnonzero(np.diff(places) != 1) + 1):
                _claim(file, tensor.filename, tensor.offset + int(run[0]) * each, len(run) * each)
        return len(places) * each

    def copy(self, other: "Payload", split: str, places: np.ndarray) -> None:
        """Take the values at some places [n] of a split from another file of the same shapes."""
        if len(places):
            values = other.take(split, places)
            self.tensors[split][places] = values
            self._touch(values.nbytes)

    @classmethod
    def open(cls, path: Path, dtype: str, shapes: dict[str, tuple[int, ...]]) -> "Payload":
        """Return a file open for reading; another size or another header than these shapes ask for is a UserError."""
        header = _header(dtype, shapes)
        size, expected = path.stat().st_size, len(header) + _bytes(dtype, shapes)
        with open(path, "rb") as file:
            if size != expected or file.read(len(header)) != header:
                raise UserError(
                    f"{path} does not hold the tensors on its card ({size} bytes where {expected} are expected, or "
                    "another header); delete it, and it is made again"
                )
        return cls(_map(path, "r", len(header), dtype, shapes), dtype)

    def put(self, split: str, places: np.ndarray, states: torch.Tensor) -> None:
        """Store states of the CPU, float32 or rounded [n, d], at their places [n] in a split."""
        values = self.rounded(states).view(torch.int16) if self.dtype == "bf16" else states
        self.tensors[split][places] = values.numpy()
        self._touch(values.nbytes)

    def rounded(self, states: torch.Tensor) -> torch.Tensor:
        """Return states, float32 [n, d], in the type of the store, on their device."""
        return states.to(torch.bfloat16) if self.dtype == "bf16" else states

    def take(self, split: str, places: np.ndarray, *inner: list[int]) -> np.ndarray:
        """Return the values at some places [n] of a split, [n, d], as they are stored.

        Args: inner, the indices that are read of each dimension between; by default all, [n, ..., d].
        """
        tensor = self.tensors[split]
        # numpy gathers rows in less time than torch
        rows = tensor[np.ix_(places, *map(np.asarray, inner))] if inner else tensor.take(places, 0)
        self._touch(rows.nbytes)
        return rows

    def take_again(self, split: str, places: np.ndarray) -> np.ndarray:
        """Return what `take` does, [n, d], bf16 in memory that the next call writes over: `floats` copies it.

        Memory of a new batch's size is cleared page by page, which takes a tenth of the time of reading.
        """
        tensor = self.tensors[split]
        if self.dtype == "fp32" or tensor.ndim > 2:
            return self.take(split, places)
        if len(places) and not 0 <= places.min() <= places.max() < len(tensor):
            raise IndexError(f"places {places.min()} to {places.max()} of {len(tensor)}")
        if len(self._room) < len(places) or self._room.shape[1:] != tensor.shape[1:]:
            self._room = np.empty((len(places), *tensor.shape[1:]), tensor.dtype)
        rows = tensor.take(places, 0, self._room[: len(places)], "clip")  # mode raise writes there by way of a copy
        self._touch(rows.nbytes)
        return rows

    def flush(self) -> None:
        for tensor in self.tensors.values():
            if isinstance(tensor, np.memmap):
                tensor.flush()

    def _touch(self, size: int) -> None:
        """Count bytes that were written or read, and give the pages back when there are many."""
        self._touched += size
        if self._touched > MAPPED and hasattr(mmap, "MADV_DONTNEED"):
            for tensor in self.tensors.values():
                if isinstance(tensor, np.memmap):
                    # of a shared map of a file: nothing written is lost
                    tensor.base.madvise(mmap.MADV_DONTNEED)  # type: ignore[union-attr]
            self._touched = 0


def _claim(file, path, start: int, size: int) -> None:
    """Claim disk space, without which a full disk would end the job by a signal, unexplained."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), start, size)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} for {size / 2**20:,.0f} MiB", str(path)) from error


def floats(values: np.ndarray, dtype: str) -> torch.Tensor:
    tensor = torch.from_numpy(values)
    return tensor.view(torch.bfloat16).float() if dtype == "bf16" else tensor


def _header(dtype: str, shapes: dict) -> bytes:
    """Return length and JSON of the header, padded with spaces so that the data begin at a multiple of 8 bytes."""
    entries: dict = {}
    start = 0
    for name, shape in shapes.items():
        end = start + int(np.prod(shape)) * NUMPY[dtype].itemsize
        entries[name] = {"dtype": NAMES[dtype], "shape": [int(size) for size in shape], "data_offsets": [start, end]}
        start = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _bytes(dtype: str, shapes: dict) -> int:
    return sum(int(np.prod(shape)) for shape in shapes.values()) * NUMPY[dtype].itemsize


def _map(path: Path, mode: str, start: int, dtype: str, shapes: dict) -> dict[str, np.ndarray]:
    """Map each tensor; an empty one can not be mapped and is an array."""
    tensors = {}
    for name, shape in shapes.items():
        kind = NUMPY[dtype]
        empty = not np.prod(shape)
        tensors[name] = np.empty(shape, kind) if empty else np.memmap(path, kind, mode, start, shape)  # type: ignore[call-overload]
        start += int(np.prod(shape)) * kind.itemsize
    return tensors
