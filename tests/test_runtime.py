"""Jobs take turns on a device, tried with real files and processes; a reader that stops reading is no error."""

import subprocess
import sys
import tempfile
import time

from thaw.core.runtime import _first_lock, _free, _lock_file

HOLD = """
import sys, time
from pathlib import Path
from thaw.core.runtime import _first_lock, _lock_file

diary, enough, *names = sys.argv[1:]
files = [_lock_file(name) for name in names]
with open(diary, "a") as notes:
    place = _first_lock(files)
    print("in", place, file=notes, flush=True)
    end = time.monotonic() + 20
    while Path(diary).read_text().count("in") < int(enough) and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.2)
    print("out", place, file=notes, flush=True)
"""


def diary(home, folder, processes: int, names: list[str], enough: int) -> list[str]:
    """Let processes lock one of some devices until `enough` of them have had one; return what they noted."""
    command = [sys.executable, "-c", HOLD, str(folder / "diary"), str(enough), *names]
    environment = {"PYTHONPATH": str(home / "scripts"), "TMPDIR": str(folder)}
    running = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for _ in range(processes)]
    assert [process.wait(timeout=60) for process in running] == [0] * processes
    return (folder / "diary").read_text().splitlines()


def test_jobs_take_turns_on_one_device(home, tmp_path):
    assert diary(home, tmp_path, 3, ["only"], enough=1) == ["in 0", "out 0"] * 3


def test_two_devices_serve_two_jobs_at_once(home, tmp_path):
    notes = diary(home, tmp_path, 2, ["first", "second"], enough=2)
    assert sorted(notes[:2]) == ["in 0", "in 1"] and sorted(notes[2:]) == ["out 0", "out 1"]


def test_a_lock_ends_with_its_process(home, tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path / "diary"), "9", "only"]
    environment = {"PYTHONPATH": str(home / "scripts"), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment) as process:
        for _ in range(500):
            if (tmp_path / "diary").exists() and (tmp_path / "diary").read_text():
                break
            time.sleep(0.02)
        process.kill()
    (tmp_path / "diary").unlink()
    assert diary(home, tmp_path, 1, ["only"], enough=1) == ["in 0", "out 0"]


def test_who_trains_heads_alone_takes_a_free_device_and_waits_for_none(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with _lock_file("first") as trains, _lock_file("first") as first, _lock_file("second") as second:
        assert [_free([first, second]), _first_lock([trains])] == [0, 0]
        assert _free([first, second]) == 1 and _free([first]) == 0, "beside it where there is no other"
        assert _first_lock([second]) == 0, "and a training may begin there at any time"


def test_a_reader_that_has_seen_enough_is_no_error(home):
    line = f"{sys.executable} {home}/scripts/plan.py --runs | head -1"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("experiment demo") and done.stderr == ""
