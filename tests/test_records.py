"""What lies on disk: canonical specs and digests, files that appear whole or not at all, errors that say where."""

import hashlib
import json
import math
import os
import signal
import subprocess
import sys
from subprocess import PIPE

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save

import forked
from conftest import HOME
from thaw.core.digests import canonical, digest, file_sha256
from thaw.core.errors import UserError, suggestion, wrap_corruption
from thaw.core.files import (
    DTYPES,
    atomic_write,
    finite,
    read_json,
    save_tensors,
    write_json,
    write_parquet,
    write_text,
)

CODE = {"PYTHONPATH": str(HOME / "scripts")}


def test_a_spec_has_one_form_and_one_digest():
    spec = {"b": [1, 0.5, None], "a": {"ü": True}}
    text = '{"a":{"\\u00fc":true},"b":[1,0.5,null]}'
    assert canonical(spec) == text
    assert digest(spec) == digest(dict(reversed(spec.items()))) == hashlib.sha256(text.encode()).hexdigest()[:16]
    for number in (math.nan, math.inf):
        with pytest.raises(UserError, match="^a spec may hold finite numbers only: .+"):
            canonical({"a": number})


def test_near_words_are_offered_else_all():
    assert suggestion("frozn", ["full", "frozen"]) == "; did you mean 'frozen'?"
    assert suggestion(7, [70, 71, 9]) == "; did you mean '70'?", "of equally near names the first"
    assert suggestion("xyz", ["full", "frozen"]) == "; there are frozen, full"


def test_a_checksum_is_of_the_whole_file(tmp_path):
    content = bytes(range(256)) * 4096 + b"and more"
    (tmp_path / "file").write_bytes(content)
    assert file_sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "deeper" / "table.csv"
    with atomic_write(path) as temporary:
        temporary.write_text("old")
        assert temporary.parent == path.parent and not path.exists()
        assert temporary.name.startswith(".table.csv.") and temporary.suffix == ".csv"
    assert path.read_text() == "old" and path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(ZeroDivisionError), atomic_write(str(path)) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new" and [found.name for found in path.parent.iterdir()] == ["table.csv"]


def test_what_a_library_says_of_a_damaged_file_is_one_sentence():
    with pytest.raises(UserError) as told, wrap_corruption("a.parquet", "folder x"):
        raise ValueError("page 3\nof 9")
    assert str(told.value) == "a.parquet is damaged (page 3); delete folder x and run the workflow again"
    with pytest.raises(UserError, match=r"damaged \(KeyError\); delete"), wrap_corruption("a", "b"):
        raise KeyError
    for other in (UserError("mine"), MemoryError("mine"), ImportError("mine")):
        with pytest.raises(type(other), match="^mine$"), wrap_corruption("a", "b"):
            raise other


def test_text_and_json_are_the_same_bytes_everywhere(tmp_path):
    write_text(tmp_path / "a.txt", "é\nb\n")
    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xa9\nb\n"
    write_json(tmp_path / "a.json", {"b": "é", "a": [1]})
    assert (tmp_path / "a.json").read_bytes() == '{\n "a": [\n  1\n ],\n "b": "é"\n}\n'.encode()
    assert read_json(tmp_path / "a.json") == {"a": [1], "b": "é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "b.json", math.nan)
    assert not (tmp_path / "b.json").exists()


def test_json_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(UserError, match=f"^{path} is missing; run the workflow again, which makes it$"):
        read_json(path)
    path.write_text('{"a": 1,\n b}')
    with pytest.raises(UserError, match=f"^{path}:2: not valid JSON .Expecting.*; delete the file so that it is made"):
        read_json(path)
    for content in (json.dumps("é", ensure_ascii=False).encode("latin-1"), b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(UserError, match=f"^{path}: not JSON in UTF-8 text; delete the file so that it is made"):
            read_json(path)


def test_a_frame_is_written_without_its_index(tmp_path):
    write_parquet(tmp_path / "a.parquet", pd.DataFrame({"x": [1, 2]}, index=[7, 8]))
    found = pd.read_parquet(tmp_path / "a.parquet")
    assert found.columns.tolist() == ["x"] and found.index.tolist() == [0, 1]


def test_only_finite_numbers_reach_json():
    assert finite(3) == 3.0 and isinstance(finite(3), float)
    assert [finite(value) for value in (None, math.nan, math.inf, -math.inf)] == [None] * 4


def test_tensors_with_a_note_have_its_entries_in_one_order(tmp_path):
    """The library has another one at each call."""
    save_tensors(tmp_path / "file", {"b": torch.ones(3), "a": torch.zeros(2)}, {name: name for name in "zyxwv"})
    in_order = '"__metadata__":{"v":"v","w":"w","x":"x","y":"y","z":"z"}'
    assert in_order.encode() in (tmp_path / "file").read_bytes()
    assert load_file(tmp_path / "file")["b"].tolist() == [1, 1, 1]


def test_tensors_are_the_bytes_that_the_library_writes(tmp_path):
    known = [getattr(torch, name) for name in DTYPES]
    made = {str(dtype): torch.arange(6).reshape(2, 3).to(dtype) for dtype in known}
    made |= {"scalar": torch.tensor(3.0), "nothing": torch.empty(0, 4), "ö": torch.ones(2), "a": torch.ones(2)}
    save_tensors(tmp_path / "file", made, {"note": "é"})
    assert (tmp_path / "file").read_bytes() == save(made, {"note": "é"})
    shared = torch.randn(4, 4)
    save_tensors(tmp_path / "shared", {"whole": shared, "turned": shared.T, "part": shared[1:]})
    found = load_file(tmp_path / "shared")
    assert torch.equal(found["turned"], shared.T) and torch.equal(found["part"], shared[1:])


def test_tensors_are_written_without_another_copy_of_them(tmp_path):
    """A large model's state is written each minute: as bytes of all its tensors it was three times in memory."""
    code = (
        "import resource, sys, torch; from pathlib import Path; from thaw.core.files import save_tensors\n"
        "tensors = {str(n): torch.zeros(1_000_000) + n for n in range(50)}\n"
        "save_tensors(Path(sys.argv[1]) / 'small', {'0': tensors['0']})\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "before = peak(); save_tensors(Path(sys.argv[1]) / 'large', tensors); print(peak() - before)"
    )
    (tmp_path / "saves.py").write_text(code)
    done = forked.run([tmp_path / "saves.py", tmp_path])
    assert (tmp_path / "large").stat().st_size > 190 * 2**20 and float(done.stdout) < 20


ENDED = """
import sys, torch
from pathlib import Path
from thaw.core.files import save_tensors
from thaw.core.runtime import run_step

def main():
    tensors = {str(n): torch.zeros(1_000_000) for n in range(20)}
    while True:
        save_tensors(Path(sys.argv[1]) / "large", tensors)

run_step(main)
"""


FORKS = """
import time
from pathlib import Path
from thaw.core.processes import Processes
from thaw.core.runtime import run_step

def work(share):
    Path(f"fork{share}").touch()
    time.sleep(60)

run_step(lambda: Processes(1, 2).run(work, 2))
"""


def test_a_step_says_once_that_it_was_ended_whatever_forks_it_has(tmp_path):
    """A cluster, and the server of a job, send SIGTERM to all of its processes."""
    words = [sys.executable, "-c", FORKS]
    step = subprocess.Popen(words, stderr=PIPE, text=True, env=CODE, cwd=tmp_path, process_group=0)
    while len(list(tmp_path.glob("fork*"))) < 2:
        assert step.poll() is None
    os.killpg(step.pid, signal.SIGTERM)
    assert step.communicate(timeout=60)[1] == "error: interrupted by SIGTERM; nothing half-written was left\n"
    assert step.returncode == 128 + signal.SIGTERM


def test_a_step_that_a_cluster_ends_leaves_nothing_half_written(tmp_path):
    """SLURM sends SIGTERM at the end of the time that was asked for."""
    (tmp_path / "step.py").write_text(ENDED)
    (said := tmp_path / "said").touch()
    (made := tmp_path / "made").mkdir()
    step = forked.start([tmp_path / "step.py", made], [os.devnull, os.devnull, said])
    while not (made / "large").exists() or not list(made.glob(".large.*")):  # in the midst of a second write
        assert step.is_alive()
    step.terminate()
    step.join(60)
    assert step.exitcode == 128 + signal.SIGTERM
    assert said.read_text().startswith("error: interrupted by SIGTERM; nothing half-written")
    assert [path.name for path in made.iterdir()] == ["large"]
