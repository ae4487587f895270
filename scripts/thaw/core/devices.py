"""The device of a job: which one, whether it can be used, whose turn it is, and how exactly it computes.

What decides here is written as functions of plain values, so that it is tested with the values of real cards on
machines that have none.
"""

import contextlib
import ctypes
import functools
import gc
import glob
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import try_lock, unlock
from thaw.core.home import PACKAGE
from thaw.core.runtime import log

POLL = 0.02  # seconds between two looks at the locks
NO_GPU = {"", "-1", "NoDevFiles"}  # what CUDA_VISIBLE_DEVICES says where no GPU is to be used; the last one is SLURM's
# What torch raises in strict mode, and where a GPU's memory ends.
LACKING, FULL = "does not have a deterministic implementation", "CUDA out of memory"

# A head alone stays on the CPU below so many operations, two seconds of one thread at 10 GFLOP/s: opening a CUDA
# context and loading its first kernels takes about as long. Reasoned from other people's numbers, not measured here.
ON_CPU = 2e10

BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # of /proc/cpuinfo

INTEGRATED = {(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)}  # Jetson and its like

_nondeterministic: list[str] = []  # operations without a deterministic kernel that this process has met
_asked_mb = math.inf  # of a device's memory, for this process: a device of its own unless its workflow says less


def gpu_evidence(environment: dict[str, str], nodes: list[str]) -> str | None:
    """Return what says that a job has a GPU, as words of a sentence; None where nothing does.

    Args: environment variables; the device files of NVIDIA cards. CUDA_VISIBLE_DEVICES set to nothing (or -1) asks for
    the CPU. Within a SLURM job the device files say nothing: the node's cards may be other jobs'.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in NO_GPU:
        return None
    for name in ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES"):
        if environment.get(name, "").strip():
            return f"{name}={environment[name]} says that this job has a GPU"
    if nodes and "SLURM_JOB_ID" not in environment:
        return f"this machine has an NVIDIA card ({nodes[0]})"
    return None


def missing_gpu_message(promise: str, version: str, cuda: str | None, reason: str) -> str:
    """Return the sentence for a GPU that was promised and that torch does not see.

    Args: what `gpu_evidence` returns; torch's version; the CUDA that it was built for, None for none; what torch
    warned of.
    """
    built = f"torch {version} was built for CUDA {cuda}" if cuda else f"torch {version} was built without CUDA"
    change = (
        "compare the driver's CUDA version (nvidia-smi) with that" if cuda else "install a build of torch with CUDA"
    )
    return (
        f"{promise}, but torch sees none ({reason or built}): {change} (https://pytorch.org/get-started/locally), or "
        "set CUDA_VISIBLE_DEVICES= to compute on the CPU"
    )


def supported(capability: tuple[int, int], architectures: list[str]) -> bool:
    """Return whether a build of torch has code for a card.

    Args: the card's compute capability; torch.cuda.get_arch_list(). Machine code (sm_XY) runs on cards of the same
    major version and the same or a higher minor one, PTX (compute_XY) is compiled for any card from its version on;
    code with the suffix `a` runs on its own version alone, with `f` on its own major version; integrated GPUs run
    machine code of their own version alone. Source: CUDA C++ Programming Guide, binary and PTX compatibility;
    torch.cuda.DEVICE_REQUIREMENT.
    """
    return any(_runs(capability, architecture) for architecture in architectures)


def _runs(capability: tuple[int, int], architecture: str) -> bool:
    match = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", architecture)
    if not match:
        return False
    version = int(match[2]), int(match[3])
    if match[4] == "a" or (match[1] == "sm" and {capability, version} & INTEGRATED):
        return capability == version
    if match[1] == "compute" and not match[4]:
        return capability >= version
    return capability[0] == version[0] and capability[1] >= version[1]


def unsupported(name: str, capability: tuple[int, int], version: str, architectures: list[str]) -> str:
    """Return the sentence for a card that a build of torch has no code for. Args: see `supported`; torch's version."""
    return (
        f"{name} has compute capability {capability[0]}.{capability[1]}, and torch {version} has code for "
        f"{', '.join(architectures)} alone; install a build of torch that has it, as those for older CUDA have for "
        "older cards (https://pytorch.org/get-started/locally); or set CUDA_VISIBLE_DEVICES= to compute on the CPU"
    )


@functools.cache
def processor_has_bf16() -> bool:
    """Return whether the processor computes in bf16; others emulate it, many times slower than fp32."""
    info = Path("/proc/cpuinfo")
    return bool(BF16_FLAGS & set(re.findall(r"\w+", info.read_text()))) if info.exists() else False


def computed_in(precision: str, device) -> str:
    """Return the precision in which a device computes a phase: fp32 in the place of a bf16 that it would emulate."""
    if precision != "bf16":
        return precision
    if device.type != "cuda":
        return "bf16" if processor_has_bf16() else "fp32"
    import torch

    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"


def cards() -> list[str]:
    return sorted(glob.glob("/dev/nvidia[0-9]*"))


def gpu_status() -> tuple[bool, str]:
    """Return whether torch sees a GPU, and what it warned of where it does not."""
    import torch

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = torch.cuda.is_available()
    return seen, next((str(warning.message).splitlines()[0] for warning in caught), "")


def memory_mb() -> int:
    """Return the MiB of all GPUs that jobs may use, 0 where nothing says that there is one.

    Another process asks the driver: in forks of one that has, CUDA would not work.
    """
    if not gpu_evidence(dict(os.environ), cards()):
        return 0
    asks = "from thaw.core.devices import _driver_mb; print(_driver_mb())"
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    said = subprocess.run([sys.executable, "-c", asks], env=environment, capture_output=True, text=True).stdout
    return int(said or 0)


def _driver_mb() -> int:
    """Return the MiB of all GPUs that NVIDIA's driver shows this process, 0 without a driver; this initialises CUDA."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count, device, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t(), 0
    if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0:
        for place in range(count.value):
            cuda.cuDeviceGet(ctypes.byref(device), place)
            cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device)
            total += size.value >> 20
    return total


def ask_for(mb: float) -> None:
    """Let this process share a device with others from its next claim on. Args: MiB of memory that it takes there."""
    global _asked_mb
    _asked_mb = mb


@contextlib.contextmanager
def claim_device(operations: float = math.inf):
    """Give a CUDA device when it is this job's turn, or the CPU: without CUDA, and for fewer `operations` than ON_CPU.

    Jobs of one machine share its devices by the memory that each asks for (`ask_for`). What one has is noted in a file
    that is locked until the context ends, or the process. Devices are those of CUDA_VISIBLE_DEVICES.
    Raises UserError where a GPU was promised and is not seen, and where torch has no code for any that is.
    """
    import torch

    seen, reason = gpu_status() if operations >= ON_CPU else (False, "")
    if not seen:
        if operations >= ON_CPU and (promise := gpu_evidence(dict(os.environ), cards())):
            raise UserError(missing_gpu_message(promise, torch.__version__, torch.version.cuda, reason))
        yield torch.device("cpu")
        return
    if torch.cuda.is_initialized():  # what a job that failed left in this process, which now waits for its next turn
        _free_memory(torch.cuda.current_device())
    usable = _usable()
    with contextlib.ExitStack() as held:
        device = torch.device("cuda", list(usable)[take_turn(list(usable.values()), _asked_mb, held)])
        torch.cuda.set_device(device)
        torch.cuda.reset_peak_memory_stats(device)
        require_deterministic()
        try:
            yield device
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # else their variables hold what is to be given back
            raise
        finally:
            _free_memory(device)


def _usable() -> dict[int, tuple[str, int]]:
    """Return name and MiB of each device that torch has code for; no such device is a UserError.

    The name, which its locks have, is the device's uuid; of a MIG instance it should be the instance's, which was never
    tried.
    """
    import torch

    usable, wrong, architectures = {}, [], torch.cuda.get_arch_list()
    for place in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(place)
        capability = device.major, device.minor
        if torch.version.hip or supported(capability, architectures):
            usable[place] = str(device.uuid), device.total_memory >> 20
        else:
            wrong.append(unsupported(device.name, capability, torch.__version__, architectures))
    if not usable:
        raise UserError(wrong[0])
    return usable


def take_turn(devices: list[tuple[str, int]], asked: float, held: contextlib.ExitStack) -> int:
    """Wait until a device has as much memory left as is asked for; return its position and note it until `held` ends.

    Of several it is the one with most left. Where no device has as much it is one on which nothing computes. Who waits
    holds the lock of each device that nobody else waits for, so that no later job comes first.
    Args: name and MiB of each device; MiB that are asked for.
    """
    gates = [held.enter_context(_open_lock(name)) for name, _ in devices]
    needed = [total if asked > max(mb for _, mb in devices) else asked for _, total in devices]
    announced = False
    while True:
        left = {place: memory_left(*devices[place]) for place, gate in enumerate(gates) if try_lock(gate)}
        if fitting := [place for place, mb in left.items() if mb >= needed[place]]:
            place = max(fitting, key=left.__getitem__)
            name, noted = devices[place][0], math.ceil(needed[place])
            try_lock(held.enter_context(_open_lock(f"{name}-{noted}-{time.time_ns()}")))
            for gate in gates:
                unlock(gate)
            return place
        if not announced:
            log("waiting for a free device")
            announced = True
        time.sleep(POLL)


def memory_left(name: str, total: int) -> int:
    """Return the MiB of a device that no living process has; its lock is held meanwhile. Args: its name and its MiB."""
    for path in Path(tempfile.gettempdir()).glob(f"thaw-{name}-*-*.lock"):
        with open(path) as file:
            if not try_lock(file):
                total -= int(path.name.rsplit("-", 2)[1])
                continue
            with contextlib.suppress(OSError):  # another user's
                path.unlink()  # its process has ended
    return total


def _open_lock(name: str):
    """Open a lock file: to read, since another user of this machine may have made it."""
    path = Path(tempfile.gettempdir()) / f"thaw-{name}.lock"
    if not path.exists():
        path.touch()
        with contextlib.suppress(OSError):  # somebody else made it in this moment
            path.chmod(0o644)
    return open(path)


def _free_memory(device) -> None:
    """Wait for the device and give back the memory that nothing holds any more, before the next job has its turn."""
    import torch

    with contextlib.suppress(RuntimeError):  # of a device that is lost, the error that is on its way says more
        gc.collect()
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()


def require_deterministic() -> None:
    """Let torch use deterministic kernels alone, unless this process has met an operation that has none.

    In torch's mode "warn" the backward pass of attention is not deterministic even where it could be.
    """
    import torch

    torch.set_deterministic_debug_mode("warn" if _nondeterministic else "error")


def deterministic_is_required() -> bool:
    import torch

    return torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()


def allow_nondeterministic(operation: str) -> None:
    """Allow kernels that are not deterministic from here on, because of an operation that has no other."""
    import torch

    _nondeterministic.append(operation)
    torch.set_deterministic_debug_mode("warn")


def nondeterministic_operations() -> list[str]:
    return list(_nondeterministic)


def run_again_if_needed(job) -> None:
    """Run a job; where it lacks a deterministic kernel, or memory on a GPU that it shares, run it again otherwise.

    A training goes on from the last epoch that it kept, so that little is lost; everything else starts again.
    """
    try:
        job()
        return
    except RuntimeError as error:
        text = str(error)
        if LACKING in text and deterministic_is_required():
            allow_nondeterministic(text.split()[0])
            reason = f"{text.split()[0]} has no deterministic kernel on this device: the job starts again without one"
        elif FULL in text and _asked_mb < math.inf:
            reason = (
                f"{_asked_mb:.0f} MiB of a GPU were too few: the job starts again on one where nothing else computes"
            )
            ask_for(math.inf)
        else:
            raise
    log(reason)
    run_again_if_needed(job)


def use_precision(precision: str, device) -> None:
    """Let a device multiply fp32 matrices as `precision` says: "tf32" with TF32's ten bits, else with all bits.

    On the CPU and on cards without TF32, "tf32" is fp32.
    """
    if device.type != "cuda":
        return
    import torch

    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def check_precision(precision: str, device, place: str) -> None:
    """Raise UserError for "bf16" on a card that only emulates it. Args: place, where the key is."""
    import torch

    if device.type != "cuda" or precision != "bf16" or torch.cuda.is_bf16_supported(including_emulation=False):
        return
    raise UserError(
        f"precision: bf16 is emulated by {torch.cuda.get_device_name(device)}, slower than fp32: leave it out of "
        f"{place}, or choose a card of compute capability 8.0 or more"
    )
