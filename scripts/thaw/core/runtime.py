"""How a step runs: seeds, threads, the device and its lock, progress and log."""

import contextlib
import errno
import fcntl
import gc
import hashlib
import os
import sys
import tempfile
import time
from pathlib import Path

from thaw.core.errors import UserError

# What the libraries write where memory or a GPU gives way.
NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "Unable to allocate")
GPU = ("CUDA error", "CUDA driver", "cuDNN error", "CUBLAS_STATUS", "NVML", "GPU is lost")
LESS_DISK = (
    "nothing half-written was left; free some (results/features/**/*.safetensors may be deleted, and are made again "
    "where they are read), or set store: {max_gib: ...}, and run again"
)
LESS_MEMORY = (
    "a smaller batch_size in the strategy's phases or a smaller max_length in the task's view needs less, as does a "
    "smaller encoder; on a cluster --set-resources <rule>:mem_mb=<more> asks for more"
)
ELSE = "on another (CUDA_VISIBLE_DEVICES=<number>) or on the processor (CUDA_VISIBLE_DEVICES=)"


def run_step(main) -> None:
    """Run a step's main(); a UserError prints as one line, an interrupt or broken disk too, and exits with 1."""
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


def explain_error(error: BaseException) -> str | None:
    """Return one sentence for an error of the machine: disk, memory, GPU, libraries; None for an error of Thaw."""
    text = next(iter(str(error).splitlines()), type(error).__name__)
    if isinstance(error, ImportError):
        return f"{text}: a library is missing or broken; pip install -r requirements.txt installs it"
    if isinstance(error, MemoryError) or any(word in str(error) for word in NO_MEMORY):
        where = " of the GPU" if "CUDA" in text else ""
        return f"the memory{where} is not enough ({text}): {LESS_MEMORY}"
    if isinstance(error, RuntimeError) and any(word in str(error) for word in GPU):
        return (
            f"the GPU failed ({text}); finished results stay. Run again, and where nvidia-smi lists it no more, {ELSE}"
        )
    if type(error).__name__ == "SafetensorError" or (isinstance(error, OSError) and not error.strerror):
        return text
    if isinstance(error, OSError):
        full = f"; {LESS_DISK}" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return error.strerror + (f": {error.filename}" if error.filename else "") + full
    return (
        explain_error(error.__context__) if isinstance(error.__context__, OSError) else None
    )  # what closing a file added


def explain_imports(kind, error, trace) -> None:
    """Print a library that is missing as one sentence, where Python would print a traceback: a `sys.excepthook`."""
    if isinstance(error, ImportError):
        print(f"error: {explain_error(error)}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def log(message: str) -> None:
    """Print one line with the time of day to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


def progress(iterable, description: str, total: int | None = None):
    """Yield the items of an iterable and show how far it is: a bar on a terminal, else a line every ten seconds."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(iterable, desc=description, total=total, mininterval=0.2, leave=False)
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

    with torch.random.fork_rng(enabled=True):
        torch.manual_seed(derive_seed(seed, name))
        yield


def set_threads(count: int) -> None:
    """Use this many threads in torch and ask for deterministic kernels, so that a spec gives the same numbers."""
    import torch
    from torch.utils import deterministic

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(count)
    torch.set_deterministic_debug_mode("warn")
    deterministic.fill_uninitialized_memory = False  # nothing reads it, and to fill it takes a twentieth of a step


@contextlib.contextmanager
def claim_device(alone: bool = True):
    """Give the first free CUDA device, else wait for one; without CUDA the CPU.

    A lock file per physical device makes jobs of one machine take turns; it follows CUDA_VISIBLE_DEVICES, and
    disappears with its process. A job that is not `alone`, as one that trains heads alone, takes no lock and waits for
    none: where no device is free, it shares one with the job that trains on it.
    """
    import torch

    if not torch.cuda.is_available():
        yield torch.device("cpu")
        return
    names = [str(torch.cuda.get_device_properties(i).uuid) for i in range(torch.cuda.device_count())]
    with contextlib.ExitStack() as opened:
        files = [opened.enter_context(_lock_file(name)) for name in names]
        yield torch.device("cuda", _first_lock(files) if alone else _free(files))


def _lock_file(name: str):
    """Open the lock file of a device: to read, since another user of this machine may have made it."""
    path = Path(tempfile.gettempdir()) / f"thaw-{name}.lock"
    if not path.exists():
        path.touch()
    return open(path)


def _first_lock(files) -> int:
    """Lock one of the open files and return its position; poll every half second until one is free."""
    announced = False
    while True:
        for position, file in enumerate(files):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return position
        if not announced:
            log("waiting for a free device")
            announced = True
        time.sleep(0.5)


def _free(files) -> int:
    """Return the position of the first of the open files that nobody has locked, else any position."""
    for position, file in enumerate(files):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_UN)
            return position
    return os.getpid() % len(files)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that decide a number."""
    from importlib.metadata import PackageNotFoundError, version

    by_library = {"python": sys.version.split()[0]}
    for name in ("torch", "transformers", "tokenizers", "safetensors", "numpy", "scipy", "scikit-learn"):
        with contextlib.suppress(PackageNotFoundError):
            by_library[name] = version(name)
    return by_library


def hardware(device) -> dict:
    """Return the device's name, the processor's name and the thread count of this process."""
    import torch

    cpu = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        "unknown",
    )
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return {"device": name, "cpu": cpu, "threads": torch.get_num_threads()}


def _lines(path: str) -> list[str]:
    """Return a file's lines, or none where the system has no such file."""
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
