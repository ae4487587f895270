"""The device of a job: which one, whether it can be used, whose turn it is, and how exactly it computes.

What decides here is written as functions of plain values, so that it is tested with the values of real cards on
machines that have none.
"""

import contextlib
import functools
import gc
import glob
import math
import os
import re
import tempfile
import time
import traceback
import warnings
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import try_lock, unlock
from thaw.core.runtime import log

SLOTS = 4  # jobs that train heads alone on one device at a time: each has a CUDA context of about half a GB
POLL = 0.02  # seconds between two looks at the locks
NO_GPU = {"", "-1", "NoDevFiles"}  # what CUDA_VISIBLE_DEVICES says where no GPU is to be used; the last one is SLURM's
LACKING = "does not have a deterministic implementation"  # what torch raises in strict mode

# A head alone stays on the CPU below so many operations, two seconds of one thread at 10 GFLOP/s: opening a CUDA
# context and loading its first kernels takes about as long. Reasoned from other people's numbers, not measured here.
ON_CPU = 2e10

BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # of /proc/cpuinfo

INTEGRATED = {(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)}  # Jetson and its like

_nondeterministic: list[str] = []  # operations without a deterministic kernel that this process has met


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


def native_bf16(capability: tuple[int, int]) -> bool:
    """Return whether an NVIDIA card computes in bf16; older ones emulate it, slower than fp32."""
    return capability >= (8, 0)


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


@contextlib.contextmanager
def claim_device(shared: bool = False, operations: float = math.inf):
    """Give a CUDA device when it is this job's turn, or the CPU: without CUDA, and for fewer `operations` than ON_CPU.

    A lock file per physical device makes jobs of one machine take turns; it follows CUDA_VISIBLE_DEVICES, and is
    released when the context ends, or the process. A `shared` job, which trains heads alone, takes one of a device's
    few slots instead and computes at the same time as others, on a device where nothing else trains if there is one.
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
    names = _usable()
    with contextlib.ExitStack() as held:
        device = torch.device("cuda", list(names)[take_turn(list(names.values()), shared, held)])
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


def _usable() -> dict[int, str]:
    """Return the name of the lock of each device that torch has code for; no such device is a UserError.

    The name is the device's uuid; of a MIG instance it should be the instance's, which was never tried.
    """
    import torch

    usable, wrong, architectures = {}, [], torch.cuda.get_arch_list()
    for place in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(place)
        capability = device.major, device.minor
        if torch.version.hip or supported(capability, architectures):
            usable[place] = str(device.uuid)
        else:
            wrong.append(unsupported(device.name, capability, torch.__version__, architectures))
    if not usable:
        raise UserError(wrong[0])
    return usable


def take_turn(names: list[str], shared: bool, held: contextlib.ExitStack) -> int:
    """Wait for a device and return its position; what it locks is released when `held` ends."""
    files = [held.enter_context(_lock_file(name)) for name in names]
    if not shared:
        return _first_lock(files)
    slots = [[held.enter_context(_lock_file(f"{name}-slot{slot}")) for slot in range(SLOTS)] for name in names]
    places = sorted(range(len(files)), key=lambda place: not _is_free(files[place]))  # where nothing trains comes first
    order = [(place, slots[place][slot]) for slot in range(SLOTS) for place in places]
    return order[_first_lock([file for _, file in order])][0]


def _lock_file(name: str):
    """Open a lock file: to read, since another user of this machine may have made it."""
    path = Path(tempfile.gettempdir()) / f"thaw-{name}.lock"
    if not path.exists():
        path.touch()
        with contextlib.suppress(OSError):  # somebody else made it in this moment
            path.chmod(0o644)
    return open(path)


def _first_lock(files) -> int:
    """Lock one of the open files, as soon as one is free, and return its position."""
    announced = False
    while True:
        for position, file in enumerate(files):
            if try_lock(file):
                return position
        if not announced:
            log("waiting for a free device")
            announced = True
        time.sleep(POLL)


def _is_free(file) -> bool:
    free = try_lock(file, shared=True)
    if free:
        unlock(file)
    return free


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


def run_nondeterministic_if_needed(job) -> None:
    """Run a job; where an operation lacks a deterministic kernel, allow others and run it from its start.

    A training goes on from the last epoch that it kept, so that little is lost; everything else starts again.
    """
    try:
        job()
        return
    except RuntimeError as error:
        if LACKING not in str(error) or not deterministic_is_required():
            raise
        operation = str(error).split()[0]
    log(f"{operation} has no deterministic kernel on this device: the job starts again without asking for one")
    allow_nondeterministic(operation)
    job()


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
