"""A fork server, jobs of it in processes of their own, and who asks for them: for the tests of the server."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
JOB = """
import atexit, json, os, sys, tempfile, time
tempfile.gettempdir()  # as torch asks while it is imported
os.environ.setdefault("OF_A_LIBRARY", "as torch writes TORCHINDUCTOR_CACHE_DIR")
from thaw.core.errors import UserError

def main():
    told = sys.argv[1]
    if told == "facts":
        facts = {"folder": os.getcwd(), "argv": sys.argv, "parent": os.getppid(), "group": os.getpgrp() == os.getpid()}
        facts |= {"library": "OF_A_LIBRARY" in os.environ, "temporary": tempfile.gettempdir()}
        print(json.dumps(facts | {"asked": os.environ["ASKED"], "imported": "pandas" in sys.modules}))
        print("a log line", file=sys.stderr)
    elif told == "crash":
        atexit.register(print, "at the end")
        raise ValueError("nobody foresaw this")
    elif told == "mistake":
        raise UserError("tasks.yaml:3: no such task")
    elif told == "wait":
        with open("waiting", "w") as file:
            file.write(str(os.getpid()))
        time.sleep(60)
    elif told == "die":
        os.kill(os.getpid(), int(sys.argv[2]))
    elif told == "leave":
        sys.exit(255)
"""
HEARS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # wherever the tests run
ASK = (
    HEARS_CTRL_C
    + "import sys; from thaw.core import fork_client; sys.exit(fork_client.ask('some_job', sys.argv[1:], 'prepare'))"
)
START = (
    HEARS_CTRL_C
    + """
import os, sys
from thaw.core import fork_server

fork_server.start(sys.argv[1], 2, (sys.argv[2],))  # that of outputs has one thread
print(os.environ["THAW_FORK_SERVER"], flush=True)
sys.stdin.read()
"""
)


def started(folder: Path, kind: str = "outputs", **further: str):
    """Yield what `server` is. Args: a folder for the module of its jobs; which one; what else its environment has."""
    (folder / "some_job.py").write_text(JOB)
    path = f"{folder}{os.pathsep}{HOME / 'scripts'}"
    names = ("OMP", "GOTO", "OPENBLAS", "MKL", "NUMEXPR")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "ASKED": "yes", "VECLIB_MAXIMUM_THREADS": "1"}
    environment |= {f"{name}_NUM_THREADS": "1" for name in names} | further
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    starter = subprocess.Popen([sys.executable, "-c", START, path, kind], env=environment, **pipes)
    yield environment | {"THAW_FORK_SERVER": starter.stdout.readline().strip()}, starter
    starter.kill()
    starter.wait()


def asked(environment: dict, folder: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", ASK, *words], env=environment, cwd=folder, capture_output=True, text=True, timeout=60
    )


def waiting(environment: dict, folder: Path, **how) -> tuple[subprocess.Popen, int]:
    """Return who asked for a job that waits, and the job's process number."""
    command = [sys.executable, "-c", ASK, "wait"]
    client = subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.PIPE, text=True, **how)
    until(lambda: (folder / "waiting").is_file() and (folder / "waiting").read_text())
    return client, int((folder / "waiting").read_text())


def until(true, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def of_process(process: int) -> list[str]:
    """Return what Linux says of a process, from its state on."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def state(process: int) -> str:
    """Return the letter of a process's state: S where it sleeps, T where it is stopped, Z where it has ended."""
    return of_process(process)[0]


def lives(process: int) -> bool:
    """Return whether a process is there and no zombie, which it may stay where nobody waits for it."""
    with contextlib.suppress(OSError):
        return state(process) != "Z"
    return False


def parent(process: int) -> int:
    return int(of_process(process)[1])


def handles(process: int, number: int) -> bool:
    """Return whether a process has a handler for a signal."""
    caught = Path(f"/proc/{process}/status").read_text().partition("SigCgt:")[2].split()[0]
    return bool(int(caught, 16) >> (number - 1) & 1)
