"""How a step runs: seeds, threads, progress, log, and what it ran on."""

import contextlib
import errno
import functools
import gc
import hashlib
import os
import re
import signal
import sys
import time
from pathlib import Path

from thaw.core.errors import UserError

# What the libraries write where memory or a GPU gives way.
NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "Unable to allocate")
DETERMINISTIC_CUBLAS = (":4096:8", ":16:8")  # work spaces of cuBLAS with which it is; strict mode asks for one of them
GPU = ("CUDA error", "CUDA driver", "cuDNN error", "CUBLAS_STATUS", "NVML", "GPU is lost")
LESS_DISK = (
    "nothing half-written was left; free some (results/features/**/*.safetensors may be deleted, and are made again "
    "where they are read), or set store: {max_gib: ...}, and run again"
)
LESS = (
    "compute: {batch_gib: 1} makes the same updates in parts; a smaller batch_size in the strategy's phases, a smaller "
    "max_length in the task's view or a smaller encoder needs less; "
)
LESS_MEMORY = LESS + "on a cluster --set-resources <rule>:mem_mb=<more> asks for more"
LESS_GPU_MEMORY = (
    LESS + "heads on stored vectors and probes hold all of them, so that fewer rows or layers need less; "
    "nvidia-smi shows what else is on the card"
)
ELSE = "on another (CUDA_VISIBLE_DEVICES=<number>) or on the processor (CUDA_VISIBLE_DEVICES=)"


def run_step(main) -> None:
    """Run a step's main(); a UserError prints as one line, an interrupt or broken disk too, and exits with 1.

    SIGTERM, by which a cluster ends a job, ends it as an interrupt does, so that nothing half-written is left.
    """
    signal.signal(signal.SIGTERM, _end)
    try:
        main()
        sys.stdout.flush()
    except UserError as error:
        sys.exit(f"error: {error}")
    except BrokenPipeError:  # a reader of what is printed that has seen enough, such as head, is no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit("error: interrupted; nothing half-written was left")
    except Exception as error:
        if sentence := explain_error(error):
            sys.exit(f"error: {sentence}")
        raise
    finally:
        gc.freeze()  # else Python looks through all that transformers has imported as it ends: 2 of a step's 12 s


def _end(number, frame) -> None:
    """Leave what this process is at, with the exit code of a signal that nobody handles."""
    print("error: interrupted by SIGTERM; nothing half-written was left", file=sys.stderr)
    sys.exit(128 + number)


def explain_error(error: BaseException) -> str | None:
    """Return one sentence for an error of the machine: disk, memory, GPU, libraries; None for an error of Thaw."""
    text = next(iter(str(error).splitlines()), type(error).__name__)
    if isinstance(error, ImportError):
        return f"{text}: a library is missing or broken; pip install -r requirements.txt installs it"
    if isinstance(error, MemoryError) or any(word in str(error) for word in NO_MEMORY):
        if "CUDA" in text:
            return f"GPU out of memory ({text}): {LESS_GPU_MEMORY}"
        return f"out of memory ({text}): {LESS_MEMORY}"
    if isinstance(error, RuntimeError) and any(word in str(error) for word in GPU):
        return (
            f"the GPU failed ({text}); finished results stay. Run again, and where nvidia-smi lists it no more, {ELSE}"
        )
    if type(error).__name__ == "SafetensorError" or (isinstance(error, OSError) and not error.strerror):
        return text
    if isinstance(error, OSError):
        full = f"; {LESS_DISK}" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return (error.strerror or "") + (f": {error.filename}" if error.filename else "") + full
    return (
        explain_error(error.__context__) if isinstance(error.__context__, OSError) else None
    )  # what closing a file added


def explain_imports(kind, error, trace) -> None:
    """Print a library that is missing as one sentence, where Python would print a traceback: a `sys.excepthook`."""
    if isinstance(error, ImportError):
        print(f"error: {explain_error(error)}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


_job = ""  # in front of each line of the log
_shows_progress = True


def name_job(label: str) -> None:
    """Put what this process works on in front of each line that it logs from now on; "" for nothing."""
    global _job
    _job = f"[{label}] " if label else ""


def hide_progress() -> None:
    """Let `progress` show nothing from now on: of several processes of a job one shows how far they are."""
    global _shows_progress
    _shows_progress = False


def log(message: str) -> None:
    """Print one line to standard error, with the time of day and the job."""
    print(f"{time.strftime('%H:%M:%S')} {_job}{message}", file=sys.stderr, flush=True)


def progress(iterable, description: str, total: int | None = None):
    """Yield the items of an iterable and show how far it is: a bar on a terminal, else a line every ten seconds."""
    if not _shows_progress:
        yield from iterable
        return
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(iterable, desc=f"{_job}{description}", total=total, mininterval=0.2, leave=False)
        return
    total = total if total is not None else len(iterable)
    start = reported = time.monotonic()
    for done, item in enumerate(iterable):
        now = time.monotonic()
        if now - reported > 10 and done:
            log(f"{description}: {done} of {total}, about {(now - start) / done * (total - done):.0f} s left")
            reported = now
        yield item


def derive_seed(seed: int, name: str) -> int:
    """Return the 63-bit seed of one named random stream of a run.

    Streams (`initialisation`, `order`, `dropout`, `subset`) are independent, so that two runs of one seed that
    differ in a single respect share all their other randomness and make a pair.
    """
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "big") >> 1


@contextlib.contextmanager
def seeded(seed: int, name: str):
    """Set torch's global generators from a named stream, and restore them on leaving."""
    import torch

    used = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []  # not all devices of the machine
    with torch.random.fork_rng(devices=used):
        torch.manual_seed(derive_seed(seed, name))
        yield


def set_threads(count: int) -> None:
    """Use this many threads in torch and ask for deterministic kernels, so that a spec gives the same numbers.

    What concerns CUDA is set before torch opens a device. There fp32 means all bits, also in LSTMs and convolutions.
    """
    if os.environ.get("CUBLAS_WORKSPACE_CONFIG") not in DETERMINISTIC_CUBLAS:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = DETERMINISTIC_CUBLAS[0]
    if "PYTORCH_CUDA_ALLOC_CONF" not in os.environ:  # the older name of the same variable
        os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")  # batches have many different lengths
    import torch
    from torch.utils import deterministic

    torch.set_num_threads(count)
    torch.backends.cudnn.allow_tf32 = False
    if not torch.are_deterministic_algorithms_enabled():  # a claimed GPU may ask for more than a warning
        torch.set_deterministic_debug_mode("warn")
    deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # nothing reads it, and to fill it takes a twentieth of a step


def versions(device=None) -> dict[str, str]:
    """Return the versions of Python and of the libraries that decide a number, and of a GPU's driver and libraries."""
    by_library = dict(_installed())
    if device is not None and device.type == "cuda":
        import torch

        by_library |= {"cuda": str(torch.version.cuda), "cudnn": str(torch.backends.cudnn.version())}
        by_library["driver"] = driver("\n".join(_lines("/proc/driver/nvidia/version"))) or "unknown"
    return by_library


@functools.cache  # the libraries of a process stay what they are, and each of its runs asks for them
def _installed() -> dict[str, str]:
    """Return the versions of Python and of the libraries that decide a number."""
    from importlib.metadata import PackageNotFoundError, version

    by_library = {"python": sys.version.split()[0]}
    for name in ("torch", "transformers", "tokenizers", "safetensors", "numpy", "scipy", "scikit-learn"):
        with contextlib.suppress(PackageNotFoundError):
            by_library[name] = version(name)
    return by_library


def driver(text: str) -> str | None:
    """Return the version of the NVIDIA driver from the text of /proc/driver/nvidia/version, None where it has none."""
    match = re.search(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", text)
    return match[1] if match else None


def hardware(device) -> dict:
    """Return the device's name, the processor's name, its cores and memory, and the thread count of this process."""
    import torch

    cpu = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        "unknown",
    )
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return {"device": name, "cpu": cpu, "threads": torch.get_num_threads()} | machine_size()


def machine_size() -> dict:
    """Return the cores that this process may use and the machine's memory in GiB."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cores": cores, "memory_gib": round(memory, 1)}


def _lines(path: str) -> list[str]:
    """Return a file's lines, or none where the system has no such file."""
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
