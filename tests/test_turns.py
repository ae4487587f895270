"""A device is claimed while a job computes and no longer: a step imports, opens and writes outside of its turn."""

import json
import subprocess
import sys

import pytest

from conftest import HOME
from thaw.core.digests import canonical
from tiny_corpus import Bench, tiny_corpus

HEAVY = ("transformers", "peft", "pandas", "pyarrow", "scipy", "sklearn", "safetensors", "tokenizers", "datasets")

# Runs a step, and writes which modules were imported, and which files of the step opened, during its turn.
WATCHED = """
import contextlib, json, runpy, sys
from thaw.compute_cost import stopwatch as cost

claim, during, opened, turn, turns = cost.claim_device, [], [], [], []
def note(event, given):
    if turn and event == "open" and isinstance(given[0], str):
        opened.append(given[0])
sys.addaudithook(note)

@contextlib.contextmanager
def watched(*arguments):
    with claim(*arguments) as device:
        before = set(sys.modules)
        turn.append(1)
        yield device
        turn.clear()
        turns.append(1)
        known = {name.partition(".")[0] for name in before} - {"transformers"}
        during.extend(name for name in sorted(set(sys.modules) - before) if name.partition(".")[0] not in known)

cost.claim_device = watched
answer, step, *sys.argv[1:] = sys.argv[1:]
runpy.run_module(f"thaw.steps.{step}", run_name="__main__")
json.dump({"imported": during, "opened": opened, "turns": len(turns)}, open(answer, "w"))
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("turns")
    return Bench(folder, "bert", tiny_corpus(folder / "data", "regression"), "regression")  # whose metric imports scipy


STEPS = {
    "train": ({"train": ["head", {"top": "k"}], "epochs": 1}, ()),
    "train with inserts": ({"train": ["head"], "insert": {"kind": "lora"}, "epochs": 1}, ()),
    "fit_heads": ({"train": ["head"], "epochs": 1}, ("--seeds", "1", "2")),
}
CASES = ["train", pytest.param("train with inserts", marks=pytest.mark.slow), "fit_heads"]


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_imported_opened_or_written_during_a_turn(case, bench, tmp_path):
    phase, more = STEPS[case]
    folders = ["--data", bench.corpus.folder, "--encoder", bench.encoder, "--features", bench.features]
    arguments = ["--spec", canonical(bench.spec(phase)), *folders, "--out", tmp_path / "run", *more]
    command = [sys.executable, "-c", WATCHED, tmp_path / "answer", case.split()[0], *arguments]
    environment = {"PYTHONPATH": str(HOME / "scripts"), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "answer").read_text())
    assert found["turns"] == 1 and list((tmp_path / "run").rglob("metrics.json"))
    assert [name for name in found["imported"] if name.partition(".")[0] in HEAVY] == []
    outside = [str(bench.corpus.folder), str(bench.features / "tokens"), str(tmp_path / "run")]
    assert [path for path in found["opened"] if path.startswith(tuple(outside))] == []
