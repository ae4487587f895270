"""Processes that have imported what takes seconds, and fork a job of a workflow whenever one starts.

Importing torch and transformers takes a small run longer than its training. Snakemake's process on one machine starts
two servers (`start`), one of them for steps with models, which `thaw run` starts before Snakemake. Each job asks one of
them for a process (`thaw.core.fork_client`); they end with Snakemake and the last of their jobs, and at a terminal wait
for the next command (`thaw.core.lasting_servers`). A job has its own
process group, working directory, environment and files, as one that a shell starts; signals reach it, Ctrl-Z and `fg`
among them, and it dies with the process that asked for it. Where no server listens, as on a cluster's nodes, where it
lacks what it needs (Linux 5.3), where it cannot fork, in another environment, or for a card where a library has
initialised CUDA in the server, a step imports for itself: `thaw.steps.__main__`.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from thaw.core import lasting_servers
from thaw.core.fork_client import ADDRESS, MOST_SAID, REFUSED, STARTED, ask, run
from thaw.core.home import PACKAGE
from thaw.core.processes import die_with_parent
from thaw.core.steps import STEPS, Step

LIMITED = ("OMP", "GOTO", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")  # for which Snakemake says how many threads a job has
OF_CORES = tuple(f"{name}_MAXIMUM_THREADS" if name == "VECLIB" else f"{name}_NUM_THREADS" for name in LIMITED)
# Snakemake or a shell sets these for each job, and no library reads them as it is imported. A job with another value of
# any other, such as OMP_NUM_THREADS, imports for itself.
OF_A_JOB = {"TMPDIR", "TMP", "TEMP", "TEMPDIR", "PWD", "OLDPWD", "SHLVL", "_", "COLUMNS", "LINES", "THAW_RUN", ADDRESS}
OF_A_JOB |= {"PS1", "PS2", "PS4", "IFS", "OPTIND", "SHELLOPTS"}  # `activate` exports a prompt; bash unsets it for a job
# What steps import only where it is needed, in an order in which none waits long for another. With a colon a function
# whose result is kept in its process, and so in all that are forked from it.
TABLES = ("pandas", "pyarrow.parquet", "pyarrow.dataset")
ENCODERS = (
    "torch",
    "transformers.modeling_utils",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.generation.utils",
    "thaw.encoders.folders",
    "thaw.encoders.loading:read_conversions",
)
MODELS = (*ENCODERS, *TABLES)
# What the first step need not wait for.
LATER: tuple[str, ...] = ("transformers.models.bert.modeling_bert", "transformers.models.bert.tokenization_bert")
LATER += (
    "thaw.features.extract",
    "thaw.training.head_fitting",
    "thaw.training.training_run",
    "thaw.training.seeds_together",
)
LATER += ("thaw.core.runtime:versions", "thaw.core.home:release")
PLOTS = ("scipy.stats", "matplotlib.pyplot", "seaborn", "fontTools.subset")
BACKENDS = tuple(f"matplotlib.backends.backend_{name}" for name in ("agg", "svg", "pdf"))
TEMPLATES = "thaw.outputs.templates:compile_all"
# The servers: steps with models ask the first one, and others need not wait for its imports.
LIBRARIES = {"models": (*MODELS, *LATER), "outputs": (*TABLES, *PLOTS, *BACKENDS, TEMPLATES, "thaw.core.home:release")}
# What a step waits for before it starts, by its `libraries`.
NEEDED = {"encoders": ENCODERS, "models": MODELS, "plots": PLOTS, "tables": TABLES}

COMMAND = "thaw.cli.main"  # which asks for what is no job of a workflow
NOT_INITIALIZED = 3  # what NVIDIA's driver answers before a process has called cuInit: CUDA_ERROR_NOT_INITIALIZED


def start(code: Path | str, threads: int, kinds: tuple[str, ...] = tuple(LIBRARIES)) -> None:
    """Start servers for the jobs of Snakemake's process, which this is; they find them by `os.environ`.

    Servers that they would find already stay theirs; THAW_FORK_SERVER= on the command line is for none at all.
    Args: their PYTHONPATH, which leads to this package; threads of the server of models, where that of outputs has one;
    which servers.
    """
    if os.environ.get(ADDRESS) == "" or not hasattr(os, "pidfd_open"):
        return
    given = os.environ.get(ADDRESS)
    lasting = None if given else lasting_servers.folder(_own_environment(code, threads))
    folder = Path(given or lasting or tempfile.mkdtemp(prefix="thaw-"))
    for kind in kinds if folder.is_dir() else ():
        if not lasting_servers.listens(folder / kind):
            own = folder.parent != lasting_servers.of_user()
            _start(folder / kind, code, threads if kind == "models" else 1, own)
    os.environ[ADDRESS] = str(folder)


def ask_waiting(words: list[str]) -> int | None:
    """Run a command of Thaw in a process of the models' server that waits at this terminal, on all cores.

    Return its exit status, or None where no server waits or takes it, or a number of threads is given. Args: the words
    after `thaw`.
    """
    if {ADDRESS, *OF_CORES} & os.environ.keys() or not any(lasting_servers.of_user().glob("*/models")):
        return None
    before, code = dict(os.environ), PACKAGE.parent
    prepare_environment()
    for threads in range(1, 1 + len(os.sched_getaffinity(0))):
        folder = lasting_servers.folder(_own_environment(code, threads), new=False)
        if folder and lasting_servers.listens(folder / "models"):
            os.environ.update({"PYTHONPATH": str(code), ADDRESS: str(folder)})
            if (status := ask(COMMAND, words, "features")) is not None:
                return status
            break
    os.environ.clear()
    os.environ.update(before)
    return None


def prepare_environment() -> None:
    """Set what jobs find in their environment."""
    # By which Snakemake finds the programs of this Python, and says a mistake in one sentence.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    os.environ.update({"PATH": path, "THAW_RUN": "1"})
    # Threads that wait for each other spin for a tenth of a millisecond and then sleep. Those that sleep at once are
    # woken at every operation; those that spin longer use up, where other programs have the cores, the time in which
    # the other one could come to its part (docs/explanation/speed.md). It changes no number. GNU's OpenMP, which torch
    # has on Linux, reads the first of both; another one may know the second alone.
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        os.environ.update({"GOMP_SPINCOUNT": "10000", "OMP_WAIT_POLICY": "PASSIVE"})
    # Large tensors of the processor in pages of 2 MB: a batch of another length asks for new memory, and half as many
    # pages of it have to be cleared.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def _own_environment(code: Path | str, threads: int) -> dict[str, str]:
    """Return the variables that a server of models compares with those of who asks."""
    environment = os.environ | environment_of_jobs(code, threads)
    return {name: value for name, value in environment.items() if name not in OF_A_JOB}


def _start(address: Path, code: Path | str, threads: int, own: bool) -> None:
    """Start a server at an address whose name is its kind. Args: whether it ends with this process, not its shell."""
    environment = os.environ | environment_of_jobs(code, threads)
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(str(address))
        except OSError:  # another command has just started it
            return
        listener.listen(128)
        shell = [] if own else [os.pidfd_open(os.getppid())]
        command = [
            sys.executable,
            "-m",
            "thaw.core.fork_server",
            str(listener.fileno()),
            str(address),
            *map(str, shell),
        ]
        server = subprocess.Popen(
            command,
            env=environment,
            pass_fds=[listener.fileno(), *shell],
            start_new_session=True,
            stdin=subprocess.PIPE if own else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _close(*shell)
    _servers.append(server)  # whose stdin is open for as long as this process lives: its end is the server's


def environment_of_jobs(code: Path | str, threads: int) -> dict[str, str]:
    """Return the variables by which what has so many threads differs from Snakemake's process; see `start`."""
    return dict.fromkeys(OF_CORES, str(threads)) | {"PYTHONPATH": str(code)}


_servers: list[subprocess.Popen] = []


class Server:
    """Forks processes for those who ask, and passes on their signals and the exit statuses."""

    def __init__(self, listener: socket.socket, libraries: tuple[str, ...], owner: int = 0) -> None:
        """Serve until the owner ends; one that outlives a command also until nobody has asked for long.

        Args: an open socket; modules that jobs need, which are imported in their order while nobody asks; what can be
        read once the owner has ended: the standard input, or a descriptor of the shell's process.
        """
        self.owner, self.patience = owner, lasting_servers.PATIENCE if owner else None
        self.listener = listener
        self.environment = dict(os.environ)  # before libraries write their own into it
        self.ahead = list(libraries)
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(listener, selectors.EVENT_READ)
        self.waiting.register(owner, selectors.EVENT_READ)
        self.open = True
        self.jobs: dict[socket.socket, tuple[int, int]] = {}  # connection: process, and the descriptor of its end

    def serve(self) -> dict | None:
        """Return a request in each process that is forked for one; in the server None, when all is done."""
        while self.open or self.jobs:
            events = self.waiting.select(0 if self.ahead else None if self.jobs else self.patience)
            if not events and not self.ahead:
                return None
            if not events:
                _import(self.ahead.pop(0))
            for key, _ in events:
                if key.fileobj == self.owner:
                    self.waiting.unregister(self.owner)
                    self.open = False
                elif key.fileobj is self.listener:
                    if request := self.accept():
                        return request
                elif key.data is None:
                    self.pass_on(key.fileobj)  # type: ignore[arg-type]
                else:
                    self.end(key.data)
        return None

    def accept(self) -> dict | None:
        """Take a connection, and fork the process that it asks for: return its request there, here None."""
        connection = self.listener.accept()[0]
        try:
            request, files = _received(connection)
        except (OSError, ValueError):  # who asked has gone
            connection.close()
            return None
        step = STEPS[request["step"]]
        reason = ""
        if name := other_variable(step, request["environment"], self.environment):
            reason = f"{name} is not what it was where the workflow was started"
        else:
            for name in (request["module"], *NEEDED[step.libraries]):
                _import(name)
            if step.libraries == "models" and not forks_have_cuda(driver_answer()):  # no other step takes a card
                reason = "a library has opened CUDA in the fork server, whose forks have none"
        if reason:
            with contextlib.suppress(OSError):  # who asked has gone
                connection.send(REFUSED + reason.encode(errors="replace")[:MOST_SAID])
            _close(connection, *files)
            return None
        gc.freeze()  # what is imported is never looked through, neither here nor in a job, which would copy it
        try:
            process = os.fork()
        except OSError:  # no room for another process: who asked hears nothing more, and runs the step by itself
            _close(connection, *files)
            return None
        if process == 0:
            die_with_parent()
            gc.enable()
            self.waiting.close()
            _close(self.listener, connection, *self.jobs, *(end for _, end in self.jobs.values()))
            for number, file in enumerate(files):
                os.dup2(file, number)
            os.setpgid(0, 0)
            return request
        _close(*files)
        os.setpgid(process, process)  # here too: a signal may come before the process has begun
        with contextlib.suppress(OSError):  # who asked has gone, which `pass_on` sees
            connection.send(STARTED)
        end = os.pidfd_open(process)
        self.jobs[connection] = process, end
        self.waiting.register(connection, selectors.EVENT_READ)
        self.waiting.register(end, selectors.EVENT_READ, connection)
        return None

    def pass_on(self, connection: socket.socket) -> None:
        """Send a job the signal that its connection brings; SIGKILL where who asked has gone."""
        if connection not in self.jobs:  # the job has ended, which came with the same events
            return
        try:
            number = connection.recv(1)
        except OSError:
            number = b""
        if not number:
            self.waiting.unregister(connection)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.jobs[connection][0], number[0] if number else signal.SIGKILL)

    def end(self, connection: socket.socket) -> None:
        process, end = self.jobs.pop(connection)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        with contextlib.suppress(OSError):  # who asked has gone
            connection.send(bytes([code if code >= 0 else 128 - code]))
        for one in (end, connection):
            if one in self.waiting.get_map():
                self.waiting.unregister(one)
        _close(end, connection)


def _import(name: str) -> None:
    """Import a module, or call a function of one; what is wrong with it is for the job to say that needs it."""
    name, _, function = name.partition(":")
    with contextlib.suppress(Exception):
        module = importlib.import_module(name)
        if function:
            getattr(module, function)()


def _received(connection: socket.socket) -> tuple[dict, list[int]]:
    """Return the request of a connection, and descriptors of its standard input, output and error."""
    length, files, *_ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as stream:
        return json.loads(stream.read(int.from_bytes(length, "big"))), files


def other_variable(step: Step, environment: dict[str, str], own: dict[str, str]) -> str | None:
    """Return a variable for which what a server imported may not be what a step would import; None without one.

    Of those for the number of threads, which Snakemake sets together, it is the one that torch reads and users know.
    """
    names = {*environment, *own} - {*OF_A_JOB, *(OF_CORES if step.own_threads else ())}
    ordered = sorted(names, key=lambda name: (name != OF_CORES[0], name))
    return next((name for name in ordered if environment.get(name) != own.get(name)), None)


def driver_answer() -> int | None:
    """Return what NVIDIA's driver answers where this process asks how many cards there are; None without a driver.

    To ask initialises nothing.
    """
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    return library.cuDeviceGetCount(ctypes.byref(ctypes.c_int()))


def forks_have_cuda(answer: int | None) -> bool:
    """Return whether CUDA works in a fork of a process: not once that process has initialised it.

    Args: what `driver_answer` returns there. Source: CUDA C++ Programming Guide, which leaves such forks undefined.
    """
    return answer in (None, NOT_INITIALIZED)


def _close(*those) -> None:
    for one in those:
        os.close(one if isinstance(one, int) else one.detach())


def main() -> None:
    """Serve at a socket that is open already: its descriptor, its path, and that of the shell are the arguments."""
    gc.disable()
    listener, address = socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2])
    server = Server(listener, LIBRARIES[address.name], *map(int, sys.argv[3:]))
    known = address.with_suffix(lasting_servers.ENDING)
    known.write_text(str(os.getpid()))
    request = server.serve()
    if request is None:
        for path in (address, known):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another server is at work
            address.parent.rmdir()
        return
    os.chdir(request["folder"])
    by_libraries = {name: os.environ[name] for name in {*os.environ} - {*server.environment}}
    os.environ.clear()
    os.environ.update(by_libraries | request["environment"])
    if request["module"] == COMMAND:
        importlib.import_module("torch").set_num_threads(len(os.sched_getaffinity(0)))  # it has read those of a job
        _reopen_streams()
    tempfile.tempdir = None  # torch has asked for it; the job may have another TMPDIR
    os._exit(_status(request["module"], request["arguments"]))


def _reopen_streams() -> None:
    """Let the standard streams know what they are open on now, as a command does that asks them."""
    said = [(stream.encoding, stream.errors) for stream in (sys.stdin, sys.stdout, sys.stderr)]
    sys.stdin = os.fdopen(0, "r", -1, *said[0], closefd=False)
    sys.stdout = os.fdopen(1, "w", 1 if os.isatty(1) else -1, *said[1], closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, *said[2], closefd=False)


def _status(module: str, arguments: list[str]) -> int:
    """Run a module's `main` and all that Python runs at its end; return the exit status, and print what it says.

    Python's own end would write to all pages that the server has imported, and copy them: half a second of each job.
    """
    status: int | str | None = 0
    try:
        run(module, arguments)
    except SystemExit as leaving:
        status = leaving.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if isinstance(status, str):
        print(status, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    return 1 if isinstance(status, str) else status or 0


if __name__ == "__main__":
    main()
