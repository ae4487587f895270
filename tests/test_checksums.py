"""The noted sha256 of a file: computed once, and again after whatever may have changed the file."""

import json
import os
import shutil
import time

import pytest

from thaw.core.digests import file_sha256
from thaw.features import payload
from thaw.features.payload import checksum


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file that is old enough to be noted: files here count as such after a moment."""
    monkeypatch.setattr(payload, "YOUNG", 0.05)
    path = tmp_path / "b1.safetensors"
    path.write_bytes(b"states" * 100)
    time.sleep(0.1)
    return path


@pytest.fixture
def hashed(monkeypatch):
    """The names of the files that are hashed, in turn."""
    found = []
    monkeypatch.setattr(payload, "file_sha256", lambda path: found.append(path.name) or file_sha256(path))
    return found


def test_a_file_is_hashed_once(file, hashed):
    assert {checksum(file) for _ in range(3)} == {file_sha256(file)} and hashed == [file.name]


def rewritten(path):
    path.write_bytes(b"others" * 100)


def one_bit(path):
    with open(path, "r+b") as file:
        file.write(b"t")


def back_dated(path):
    """Change a file and set its time back, as cp -p, rsync -t or touch -r do."""
    before = path.stat()
    one_bit(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def copied_over(path):
    other = path.with_name("other")
    other.write_bytes(b"others" * 100)
    shutil.copystat(path, other)
    os.replace(other, path)


def restored_with_its_note(path):
    """Put a folder's copy in its place, notes included, and change the file there."""
    copy = shutil.copytree(path.parent, path.parent.with_name("copy"))
    shutil.rmtree(path.parent)
    shutil.move(copy, path.parent)
    back_dated(path)


@pytest.mark.parametrize("harm", [rewritten, one_bit, back_dated, copied_over, restored_with_its_note])
def test_a_file_that_changed_is_hashed_again(harm, file, hashed):
    first = checksum(file)
    harm(file)
    assert checksum(file) == file_sha256(file) != first and len(hashed) == 2


def test_a_note_that_was_damaged_or_is_of_another_form_is_made_again(file, hashed):
    true, note = checksum(file), file.with_name(".b1.safetensors.sha256.json")
    for text in ("", "{", "[]", "{}", json.dumps({"file": None, "sha256": "0"})):
        note.write_text(text)
        assert checksum(file) == true
    assert len(hashed) == 6 and json.loads(note.read_text())["sha256"] == true


def test_a_file_that_changed_a_moment_ago_is_not_noted(file, hashed, monkeypatch):
    monkeypatch.setattr(payload, "YOUNG", 1000.0)
    assert checksum(file) == checksum(file) and len(hashed) == 2 and [file] == list(file.parent.iterdir())


def test_a_folder_that_may_not_be_written_to_is_no_error(file, hashed, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(payload, "write_json", refused)
    assert checksum(file) == checksum(file) and len(hashed) == 2
