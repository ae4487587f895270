"""What decides about a GPU, with the values of real cards; locks with real files and processes; strict kernels."""

import errno
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import weakref

import pytest
import torch

import forked
from conftest import HOME
from thaw.core import devices
from thaw.core.devices import (
    allow_nondeterministic,
    gpu_evidence,
    missing_gpu_message,
    run_again_if_needed,
    supported,
    unsupported,
)
from thaw.core.errors import UserError
from thaw.core.files import try_lock
from thaw.core.runtime import driver, set_threads

# What torch's wheels for Linux have code for, by its own table.
CUDA_12, CUDA_13 = (
    [f"sm_{version}" for version in sorted(torch.cuda.PYTORCH_RELEASES_CODE_CC[cuda]["x86_64"])]
    for cuda in ("12.6", "13.0")
)
V100, A100, H100, B200, RTX_5090 = (7, 0), (8, 0), (9, 0), (10, 0), (12, 0)


def test_machine_code_runs_where_torch_says_too():
    renamed = {(101, (11, 0))}  # a card that NVIDIA gave another number
    cards = [(major, minor) for major in range(5, 13) for minor in range(10)]
    found = {
        (code, card) for code in torch.cuda.DEVICE_REQUIREMENT for card in cards if supported(card, [f"sm_{code}"])
    }
    said = {
        (code, card)
        for code, required in torch.cuda.DEVICE_REQUIREMENT.items()
        for card in cards
        if 10 * card[0] + card[1] in required
    }
    assert found == said - renamed and len(found) > 50


@pytest.mark.parametrize(
    ("card", "code", "runs"),
    [
        (B200, CUDA_12, False),  # machine code of another major version
        (B200, [*CUDA_12, "compute_90"], True),  # PTX is compiled for what came later
        (A100, ["sm_86"], False),  # machine code of a higher minor version
        (A100, ["compute_86"], False),
        (H100, ["sm_90a"], True),  # for this version alone
        (B200, ["sm_90a", "compute_90a"], False),
        ((10, 3), ["sm_100a"], False),
        ((10, 3), ["sm_100f"], True),  # for its family
        (RTX_5090, ["compute_100f"], False),
        (H100, [], False),
        ((9, 0), ["gfx90a"], False),
    ],
)
def test_machine_code_and_ptx_run_where_nvidia_says(card, code, runs):
    assert supported(card, code) == runs


def test_a_card_without_code_is_named_with_what_would_help():
    line = unsupported("Tesla V100-SXM2-16GB", V100, "2.13.0+cu130", CUDA_13)
    assert line.startswith(
        "Tesla V100-SXM2-16GB has compute capability 7.0, and torch 2.13.0+cu130 has code for sm_75,"
    )
    assert "CUDA_VISIBLE_DEVICES= " in line


NODES = ["/dev/nvidia0", "/dev/nvidia1"]


@pytest.mark.parametrize(
    ("environment", "nodes", "by"),
    [
        ({}, [], None),
        ({}, NODES, "this machine has an NVIDIA card (/dev/nvidia0)"),
        ({"CUDA_VISIBLE_DEVICES": "1"}, [], "CUDA_VISIBLE_DEVICES=1 says"),
        ({"CUDA_VISIBLE_DEVICES": ""}, NODES, None),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, NODES, None),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles", "SLURM_JOB_ID": "7"}, NODES, None),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0,1"}, NODES, "SLURM_JOB_GPUS=0,1 says"),
        ({"SLURM_JOB_ID": "7", "SLURM_STEP_GPUS": "0"}, [], "SLURM_STEP_GPUS=0 says"),
        ({"SLURM_JOB_ID": "7"}, NODES, None),  # the node's cards may be other jobs'
        ({"SLURM_JOB_GPUS": "0", "CUDA_VISIBLE_DEVICES": ""}, NODES, None),
    ],
)
def test_who_says_that_there_is_a_gpu(environment, nodes, by):
    found = gpu_evidence(environment, nodes)
    assert found is None if by is None else found.startswith(by)


def test_a_gpu_that_is_not_seen_says_what_to_change():
    old = "CUDA initialization: The NVIDIA driver on your system is too old (found version 12020)."
    assert old in missing_gpu_message("SLURM_JOB_GPUS=0 says that this job has a GPU", "2.13.0+cu130", "13.0", old)
    line = missing_gpu_message("this machine has an NVIDIA card (/dev/nvidia0)", "2.13.0+cpu", None, "")
    assert (
        "torch 2.13.0+cpu was built without CUDA" in line and "set CUDA_VISIBLE_DEVICES= to compute on the CPU" in line
    )


CLAIM = """
from thaw.core.devices import claim_device
from thaw.core.runtime import run_step

def main():
    with claim_device() as device:
        print(device)

run_step(main)
"""


@pytest.fixture
def claim(tmp_path):
    """Return a function that claims a device in a process with an environment."""
    script = tmp_path / "claim.py"
    script.write_text(CLAIM)
    return lambda **environment: forked.run([script], tmp_path, environment | {"PATH": "/usr/bin:/bin"})


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine on which torch sees no GPU")
def test_no_job_falls_to_the_cpu_where_a_gpu_was_promised(claim):
    done = claim(SLURM_JOB_GPUS="0")
    assert done.returncode == 1 and done.stdout == "" and "Traceback" not in done.stderr
    assert done.stderr.startswith("error: SLURM_JOB_GPUS=0 says that this job has a GPU, but torch sees none")


def test_an_empty_cuda_visible_devices_asks_for_the_cpu(claim):
    done = claim(CUDA_VISIBLE_DEVICES="", SLURM_JOB_GPUS="0")
    assert (done.returncode, done.stdout) == (0, "cpu\n"), done.stderr


def test_few_operations_stay_on_the_cpu_and_ask_cuda_nothing(monkeypatch):
    def asked():
        raise AssertionError("CUDA was asked")

    monkeypatch.setattr(torch.cuda, "is_available", asked)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with devices.claim_device(devices.ON_CPU / 2) as device:
        assert device == torch.device("cpu")
    with pytest.raises(AssertionError, match="CUDA was asked"), devices.claim_device(devices.ON_CPU):
        pass


# --- turns -----------------------------------------------------------------------------------------------------------

HOLD = """
import contextlib, sys, time
from pathlib import Path
from thaw.core.devices import take_turn

diary, enough, asked, *names = sys.argv[1:]
with contextlib.ExitStack() as held:
    place = take_turn([(name, 10) for name in names], float(asked), held)
    with open(diary, "a") as notes:
        print("in", place, time.time(), file=notes, flush=True)
        end = time.monotonic() + 20
        while Path(diary).read_text().count("in") < int(enough) and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.2)
        print("out", place, time.time(), file=notes, flush=True)
"""


def start(folder, names: list[str], enough: int, asked: float = math.inf) -> subprocess.Popen:
    """Start a job that asks for some MiB of devices of ten, until as many jobs as are enough have come."""
    words = [folder / "diary", enough, asked, *names]
    environment = {"PYTHONPATH": str(HOME / "scripts"), "TMPDIR": str(folder)}
    command = [sys.executable, "-c", HOLD, *map(str, words)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def diary(folder, processes: list[subprocess.Popen]) -> list[list[str]]:
    """Wait for processes; return the words of what they noted, line by line."""
    assert [process.wait(timeout=60) for process in processes] == [0] * len(processes)
    return [line.split() for line in (folder / "diary").read_text().splitlines()]


def test_jobs_take_turns_on_one_device_and_hand_it_over_at_once(tmp_path):
    notes = diary(tmp_path, [start(tmp_path, ["only"], 1) for _ in range(3)])
    assert [note[:2] for note in notes] == [["in", "0"], ["out", "0"]] * 3
    assert min(float(notes[n + 1][2]) - float(notes[n][2]) for n in (1, 3)) < 0.2


def test_a_lock_ends_with_its_process(tmp_path):
    with start(tmp_path, ["only"], 9) as process:
        for _ in range(500):
            if (tmp_path / "diary").exists() and (tmp_path / "diary").read_text():
                break
            time.sleep(0.02)
        process.kill()
    (tmp_path / "diary").unlink()
    assert [note[:2] for note in diary(tmp_path, [start(tmp_path, ["only"], 1)])] == [["in", "0"], ["out", "0"]]


def test_as_many_jobs_share_a_device_as_its_memory_holds(tmp_path):
    words = [note[0] for note in diary(tmp_path, [start(tmp_path, ["only"], 3, asked=3) for _ in range(4)])]
    assert words[:4] == ["in"] * 3 + ["out"] and words.count("in") == words.count("out") == 4


@pytest.fixture
def turn(tmp_path, monkeypatch):
    """Return a function that takes MiB of devices, by name and MiB, in a folder of its own: what ends it, the place."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with devices.contextlib.ExitStack() as all_held:

        def take(asked: float, **cards: int):
            held = all_held.enter_context(devices.contextlib.ExitStack())
            return held, devices.take_turn(list(cards.items()), asked, held)

        yield take


def test_a_job_gets_the_device_with_most_memory_left(turn):
    first, place = turn(4, a=10, b=10)
    assert (place, turn(3, a=10, b=10)[1]) == (0, 1), "a device of its own as long as there is one"
    assert turn(3, a=10, b=10)[1] == 1, "7 MiB are left there, and 6 on the first"
    first.close()
    assert turn(10, a=10, b=10)[1] == 0, "what a job had is given back"


def test_what_no_device_holds_is_computed_where_nothing_else_is(turn):
    assert turn(1, a=10, b=20)[1] == 1
    assert turn(12, a=10, b=20)[1] == 1, "only the second is large enough"
    assert turn(30, a=10, b=20)[1] == 0, "no device is, and the first is free"


def test_no_later_job_comes_before_one_that_waits(tmp_path, turn):
    held, _ = turn(6, only=10)
    waits = start(tmp_path, ["only"], 1, asked=8)
    gate = tmp_path / "thaw-only.lock"
    while True:
        with open(gate) as file:
            if not try_lock(file):
                break
        time.sleep(0.02)
    later = start(tmp_path, ["only"], 1, asked=3)
    time.sleep(1)
    assert not (tmp_path / "diary").exists(), "4 MiB are left, which the other one waits for"
    held.close()
    notes = diary(tmp_path, [waits, later])
    assert [note[0] for note in notes] == ["in", "out"] * 2


def test_what_a_failed_job_held_is_gone_when_its_device_is_given_back(tmp_path, monkeypatch):
    """The error that is on its way has the frames of the job, whose variables would hold the model."""
    made, alive = [], []

    def train() -> None:
        model = torch.nn.Linear(2, 2)
        made.append(weakref.ref(model))
        raise RuntimeError("out of memory")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(devices, "gpu_status", lambda: (True, ""))
    monkeypatch.setattr(devices, "_usable", lambda: {0: ("only", 10)})
    monkeypatch.setattr(devices, "require_deterministic", lambda: None)
    monkeypatch.setattr(devices, "_free_memory", lambda device: alive.append(made[0]() is not None))
    for name in ("set_device", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda device: None)
    with pytest.raises(RuntimeError, match="out of memory"), devices.claim_device():
        train()
    assert alive == [False]


def test_a_job_without_memory_on_a_gpu_that_it_shares_runs_again_on_one_of_its_own(monkeypatch, capsys):
    asked = []

    def train() -> None:
        asked.append(devices._asked_mb)
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(devices, "_asked_mb", math.inf)
    devices.ask_for(1500)
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        run_again_if_needed(train)
    assert asked == [1500, math.inf]
    assert "1500 MiB of a GPU were too few: the job starts again" in capsys.readouterr().err


@pytest.mark.skipif(os.path.exists("/proc/driver/nvidia"), reason="needs a machine without NVIDIA's driver")
def test_without_a_driver_there_is_no_memory_to_share(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert devices.memory_mb() == 0


class WithoutLocks:
    """A file on a file system that has no locks."""

    name = "/lustre/results/features/.lock"

    def fileno(self) -> int:
        """Refuse as the system call does."""
        raise OSError(errno.ENOSYS, "Function not implemented")


def test_a_file_system_without_locks_is_named():
    with pytest.raises(UserError, match="^/lustre/results/features: its file system has no locks .*-o flock"):
        try_lock(WithoutLocks())


# --- kernels ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def kernels(monkeypatch):
    """Put torch's way of choosing kernels back, whatever a test makes of it."""
    before = torch.get_deterministic_debug_mode()
    monkeypatch.setattr(devices, "_nondeterministic", [])
    yield
    torch.set_deterministic_debug_mode(before)


def lacking() -> float:
    """Put a number into a tensor by the one operation that lacks a deterministic kernel on a CPU too."""
    return torch.zeros(3).put_(torch.tensor([1]), torch.tensor([2.0])).sum().item()


def test_an_operation_without_a_deterministic_kernel_runs_its_job_again_from_the_start(kernels):
    done = []

    def job():
        devices.require_deterministic()
        done.append("begun")
        done.append(lacking())

    run_again_if_needed(job)
    assert (
        done == ["begun", "begun", 2.0]
        and devices.nondeterministic_operations() == ["put_"]
        and not devices.deterministic_is_required()
    )
    devices.require_deterministic()
    assert not devices.deterministic_is_required(), "what this process does next is not asked for such kernels either"


def test_a_job_with_deterministic_kernels_alone_runs_once_and_strictly(kernels):
    done = []

    def job():
        devices.require_deterministic()
        done.append(torch.ones(2).sum().item())

    run_again_if_needed(job)
    assert done == [2.0] and devices.deterministic_is_required() and devices.nondeterministic_operations() == []


def test_other_errors_and_those_of_a_job_that_is_not_strict_are_not_caught(kernels):
    done = []

    def wrong():
        devices.require_deterministic()
        done.append("begun")
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        run_again_if_needed(wrong)
    assert done == ["begun"]


def test_more_threads_do_not_end_strictness(kernels):
    threads = torch.get_num_threads()
    devices.require_deterministic()
    set_threads(threads)
    assert devices.deterministic_is_required()
    allow_nondeterministic("put_")
    set_threads(threads)
    assert torch.is_deterministic_algorithms_warn_only_enabled()


def test_a_cublas_that_is_not_deterministic_is_not_asked_for(monkeypatch):
    threads = torch.get_num_threads()
    for given, used in {":0:0": ":4096:8", ":16:8": ":16:8"}.items():
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", given)
        set_threads(threads)
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == used
    assert not torch.backends.cudnn.allow_tf32


def test_on_the_cpu_no_precision_is_refused_and_nothing_is_set():
    before = torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32
    for precision in ("bf16", "tf32", "fp32"):
        devices.use_precision(precision, torch.device("cpu"))
    assert (torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32) == before


@pytest.mark.parametrize("native", [True, False])
def test_a_processor_that_would_emulate_bf16_computes_a_phase_in_fp32(native, monkeypatch):
    monkeypatch.setattr(devices, "processor_has_bf16", lambda: native)
    computed = [devices.computed_in(precision, torch.device("cpu")) for precision in ("bf16", "tf32", "fp32")]
    assert computed == ["bf16" if native else "fp32", "tf32", "fp32"]


DRIVERS = {
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\nGCC": "535.129.03",
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder)": "580.65.06",
    "": None,
}


def test_the_driver_is_read_where_the_system_has_it():
    assert [driver(text) for text in DRIVERS] == list(DRIVERS.values())


def test_every_step_that_claims_a_device_may_run_again_without_strict_kernels():
    steps = {path.stem: path.read_text() for path in (HOME / "scripts/thaw/steps").glob("*.py")}
    claims = r"\b(claimed|claim_device|train_on_device|write_parts)\("
    claiming = {name for name, text in steps.items() if re.search(claims, text)}
    assert claiming == {
        "ensemble",
        "features",
        "features_adapted",
        "fit_heads",
        "pretrain",
        "probe",
        "search_heads",
        "teach",
        "train",
    }
    assert [name for name in claiming if "run_again_if_needed(" not in steps[name]] == []
