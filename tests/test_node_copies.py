"""Payloads that are copied to a node's own disk once and read there, with the same bits; else read where they are."""

import errno
import fcntl
import multiprocessing
import os
from functools import partial
from pathlib import Path

import pytest
import torch

from test_store import write_card, write_store
from thaw.core.digests import file_sha256
from thaw.features.node_copies import FOLDER, nearest
from thaw.features.store import FeatureStore
from tiny_corpus import Bench, small_bert

bench = pytest.fixture(scope="module")(small_bert)


@pytest.fixture
def shared(tmp_path) -> Path:
    """A store on what stands for the shared disk, with one boundary; `node` stands for a disk of a node's own."""
    (tmp_path / "node/4711").mkdir(parents=True)
    folder = tmp_path / "shared"
    folder.mkdir()
    write_store(folder, {"train": [3, 5, 2], "test": [4]}, 16, "bf16")
    write_card(folder, "bf16", 16, bytes=(folder / "b2.safetensors").stat().st_size)
    return folder


def read(folder: Path) -> tuple[Path, torch.Tensor]:
    """Open a store as a job does; return which file it reads, and all that it reads of train."""
    store = FeatureStore(folder)
    store.require([2])
    rows = range(len(store.lengths("train")))
    return Path(store.payload(2).tensors["train"].filename), store.states(2, "train").at(store.places("train", rows))


def test_a_copy_is_made_once_and_read_with_the_same_bits(shared, tmp_path, monkeypatch, capsys):
    there, expected = read(shared)
    monkeypatch.setenv("OF_THE_JOB", "4711")
    monkeypatch.setenv(FOLDER, f"{tmp_path}/node/$OF_THE_JOB")
    found = [read(shared) for _ in range(2)]
    copy = tmp_path / f"node/4711/thaw-{os.getuid()}/{file_sha256(there)}.safetensors"
    assert there == shared / "b2.safetensors" and [file for file, _ in found] == [copy, copy]
    assert all(torch.equal(states, expected) for _, states in found)
    assert copy.read_bytes() == there.read_bytes() and capsys.readouterr().err.count("copying") == 1


def test_a_payload_that_changed_is_copied_anew_and_leftovers_of_a_killed_job_go(shared, tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path / "node"))
    first, _ = read(shared)
    write_store(shared, {"train": [3, 5, 2], "test": [4]}, 16, "bf16")
    write_card(shared, "bf16", 16, bytes=1000)
    left = first.with_name(f".{file_sha256(shared / 'b2.safetensors')}.safetensors.0123abcd.safetensors")
    left.write_bytes(b"half")
    second, states = read(shared)
    monkeypatch.delenv(FOLDER)
    assert first != second and first.is_file() and torch.equal(states, read(shared)[1]) and not left.exists()


def test_jobs_that_start_at_once_copy_once(shared, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv(FOLDER, str(tmp_path / "node"))
    forks = multiprocessing.get_context("fork")
    starts = forks.Barrier(4)

    def job() -> None:
        starts.wait()
        file, states = read(shared)
        assert file.is_relative_to(tmp_path / "node") and states.shape == (10, 16)

    jobs = [forks.Process(target=job) for _ in range(4)]
    for one in jobs:
        one.start()
    for one in jobs:
        one.join()
    assert [one.exitcode for one in jobs] == [0] * 4 and capfd.readouterr().err.count("copying") == 1
    assert len(list(tmp_path.glob("node/*/*.safetensors"))) == 1


def unset(folder: Path) -> str:
    return f"{folder}/$NOBODY_SET_THIS"


def a_file(folder: Path) -> str:
    folder.write_text("")
    return str(folder)


def missing(folder: Path) -> str:
    return str(folder)


def not_absolute(folder: Path) -> str:
    return f"~{folder}"


def without_locks(folder: Path) -> str:
    folder.mkdir()
    return str(folder)


def _flock(real, refused: str, file, how: int) -> None:
    """Lock as `real` does, but nothing below a folder whose disk has no locks."""
    if str(file.name).startswith(refused):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    real(file, how)


def open_to_others(folder: Path) -> str:
    (folder / f"thaw-{os.getuid()}").mkdir(parents=True)
    (folder / f"thaw-{os.getuid()}").chmod(0o777)
    return str(folder)


@pytest.mark.parametrize("place", [unset, a_file, missing, not_absolute, without_locks, open_to_others])
def test_without_a_folder_for_copies_the_payload_is_read_where_it_is(place, shared, tmp_path, monkeypatch, capsys):
    there, expected = read(shared)
    monkeypatch.setenv(FOLDER, place(tmp_path / "elsewhere"))
    if place is without_locks:
        monkeypatch.setattr(fcntl, "flock", partial(_flock, fcntl.flock, str(tmp_path / "elsewhere")))
    file, states = read(shared)
    assert file == there and torch.equal(states, expected)
    lines = [line for line in capsys.readouterr().err.splitlines() if "read where it is, without a copy" in line]
    assert len(lines) == 1 and str(tmp_path / "elsewhere") in lines[0]


def test_a_payload_that_changes_while_it_is_copied_leaves_no_copy(shared, tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path / "node"))
    path = shared / "b2.safetensors"
    assert nearest(path, {"sha256": "0" * 64, "bytes": 1}) == path and not list(tmp_path.glob("node/*/*safetensors"))


def test_rows_that_nobody_reads_take_no_disk_in_a_copy(tmp_path, monkeypatch):
    (tmp_path / "node").mkdir()
    monkeypatch.setenv(FOLDER, str(tmp_path / "node"))
    path = tmp_path / "b2.safetensors"
    with open(path, "wb") as file:
        file.truncate(2**24)
        file.seek(2**23)
        file.write(b"states")
    copy = nearest(path, {"sha256": file_sha256(path), "bytes": 6})
    assert copy != path and copy.read_bytes() == path.read_bytes() and copy.stat().st_blocks * 512 < 2**20


def test_a_training_from_copies_leaves_the_same_files(bench: Bench, tmp_path, monkeypatch):
    spec = bench.spec({"train": ("head", {"top": 1})})
    plain = bench.step("train", spec, tmp_path / "plain")
    (tmp_path / "node").mkdir()
    monkeypatch.setenv(FOLDER, str(tmp_path / "node"))
    copied = bench.step("train", spec, tmp_path / "copied")
    assert list(tmp_path.glob("node/*/*.safetensors"))
    for name in ("metrics.json", "history.csv", "predictions.parquet", "head.safetensors"):
        assert (plain / name).read_bytes() == (copied / name).read_bytes(), name
