"""The machine: whose turn it is, which card, a card that was promised and is hidden, MIG, and what a step costs.

The numbers in the names are those of the list of smoke tests.
"""

import json
import os
import subprocess
import sys
import time

import pytest
import torch
from cards import PATH, card, device

from test_device_runs import finished
from thaw.core import devices
from tiny_corpus import Bench, rows, tiny_corpus

pytestmark = pytest.mark.gpu

TURN = """
import json, os, sys, time
from thaw.core.runtime import set_threads
set_threads(1)
from thaw.core.devices import claim_device
import torch
print("waits", flush=True)
with claim_device() as device:
    begin = time.time()
    values = torch.ones(2048, 2048, device=device)
    while time.time() - begin < 1.0:
        values = (values @ values).clamp(max=1)
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    other = [torch.cuda.memory_allocated(number) for number in range(torch.cuda.device_count())]
    end = time.time()
print(json.dumps({"pid": os.getpid(), "begin": begin, "end": end, "device": device.index, "peak": peak, "all": other}))
"""


def python(code: str, **environment) -> subprocess.Popen:
    """Start a Python of its own, with what this one has but for words of which cards there are."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_VISIBLE", "SLURM_"))}
    known["PYTHONPATH"] = PATH
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code], env=known | environment, **pipes)


def told(running: subprocess.Popen) -> dict:
    """Return the last line that a process prints."""
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def smi(*query: str) -> list[str]:
    """Return what nvidia-smi says, line by line."""
    return subprocess.run(["nvidia-smi", *query], capture_output=True, text=True, check=True).stdout.splitlines()


def test_13_eight_jobs_take_turns_and_those_that_wait_hold_no_memory(card):
    started = [python(TURN, CUDA_VISIBLE_DEVICES="0") for _ in range(8)]
    seen = []
    while any(job.poll() is None for job in started):
        pids = {
            int(line) for line in smi("--query-compute-apps=pid", "--format=csv,noheader") if line.strip().isdigit()
        }
        seen.append(len(pids & {job.pid for job in started}))
        time.sleep(0.2)
    turns = sorted((turn["begin"], turn["end"]) for turn in map(told, started))
    assert all(first[1] <= second[0] for first, second in zip(turns, turns[1:], strict=False))
    waits = [second[0] - first[1] for first, second in zip(turns, turns[1:], strict=False)]
    print(
        f"\nhanding over: {sorted(waits)[len(waits) // 2]:.2f} s; processes on the card at once: {max(seen, default=0)}"
    )
    if max(seen, default=0) == 0:
        pytest.skip(
            "turns do not overlap; nvidia-smi names none of these processes: what those that wait hold is unseen"
        )
    assert max(seen) <= 2, "one computes, one may be on its way out"


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two cards")
def test_14_the_second_card_is_the_current_one(card):
    first, second = python(TURN), python(TURN)
    found = {turn["device"]: turn for turn in (told(first), told(second))}
    assert set(found) == {0, 1} and found[1]["peak"] > 0 and found[1]["all"][0] == 0


def test_15_a_card_that_was_promised_and_is_hidden_is_an_error(card):
    """SLURM says that the job has one, and torch sees none: no training on the CPU for a day."""
    hidden = python(TURN, SLURM_JOB_GPUS="0", CUDA_VISIBLE_DEVICES="99")
    _, err = hidden.communicate(timeout=300)
    assert hidden.returncode != 0 and "SLURM_JOB_GPUS" in err
    asked = python(
        "from thaw.core.devices import claim_device\nwith claim_device() as d: print(d)", CUDA_VISIBLE_DEVICES=""
    )
    assert asked.communicate(timeout=300)[0].strip() == "cpu", "hidden on purpose it is the CPU"


def test_20_snakemake_is_told_of_all_memory_and_jobs_share_a_card_by_what_they_ask_for(card):
    cards = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    assert devices.memory_mb() == sum(one.total_memory >> 20 for one in cards)
    share = (cards[0].total_memory >> 20) // 2
    asking = TURN.replace("import torch\n", f"import torch\nfrom thaw.core.devices import ask_for\nask_for({share})\n")
    first, second = map(told, [python(asking, CUDA_VISIBLE_DEVICES="0") for _ in range(2)])
    assert first["begin"] < second["end"] and second["begin"] < first["end"]


def test_21_a_slice_of_a_card_has_a_lock_of_its_own(card):
    slices = [line for line in smi("-L") if "MIG" in line]
    if not slices:
        pytest.skip("no MIG instance here")
    uuid = str(torch.cuda.get_device_properties(0).uuid)
    assert any(uuid.removeprefix("MIG-") in line for line in slices), "two slices of a card would share a lock"


def test_22_what_a_step_takes_beside_its_products(card, tmp_path, capsys):
    """Prints what docs/results/performance.md lacks; fails where an update takes a hundred times its products."""
    few = {"train": rows("classification", 64, 1), "validation": rows("classification", 8, 2)}
    corpus = tiny_corpus(tmp_path / "data", "classification", **few, test=rows("classification", 8, 3))
    bench = Bench(tmp_path, "bert", corpus, "classification")
    finished(bench, bench.spec({"train": ["all"], "epochs": 1}), card)  # kernels are loaded here
    begin = time.perf_counter()
    left = finished(bench, bench.spec({"train": ["all"], "epochs": 5}), card)
    torch.cuda.synchronize()
    update = (time.perf_counter() - begin) / left.cost["steps"]
    bench.step("train", bench.spec({"train": ["all"], "epochs": 5}), tmp_path / "run")
    cost = json.loads((tmp_path / "run" / "cost.json").read_text())
    with capsys.disabled():
        print(
            f"\n{torch.cuda.get_device_name()}: {1000 * update:.1f} ms an update of a small BERT, evaluation included"
        )
        print(f"a step by part, seconds: {cost['seconds']}; memory {cost['peak_memory_mb']} MiB")
    assert update < 1.0 and cost["seconds"]["train"] > 0 and cost["peak_memory_mb"] > 0
