"""A step in a process of the fork server, where one listens that takes it, else in this one.

Every job of a workflow starts here, so that nothing is imported that asking a server does without.
"""

import contextlib
import json
import os
import signal
import socket
import sys

from thaw.core.steps import STEPS

ADDRESS = "THAW_FORK_SERVER"  # the folder of the servers' sockets, in the environment of jobs
REFUSED, STARTED = b"r", b"s"
MOST_SAID = 500  # bytes of why a server refuses a job


def ask_or_run(module: str, arguments: list[str], step: str) -> None:
    """Run a module's `main` in a process of a server, whose exit status becomes this one's, or here where none is.

    Args: the module with its arguments; the step that it is, or whose libraries it imports.
    """
    status = ask(module, arguments, step)
    if status is None:
        run(module, arguments)
    else:
        sys.exit(status)


def run(module: str, arguments: list[str]) -> None:
    """Run a module's `main` with arguments in this process, as if Python had been started with it."""
    import importlib

    from thaw.core.runtime import run_step

    imported = importlib.import_module(module)
    sys.argv = [str(imported.__file__), *arguments]
    run_step(imported.main)


def ask(module: str, arguments: list[str], step: str) -> int | None:
    """Run a module's `main` in a process of a server; return its exit status, or None where no server takes it.

    Args: as of `ask_or_run`.
    """
    connection = socket.socket(socket.AF_UNIX)
    kind = "models" if STEPS[step].libraries in ("encoders", "models") else "outputs"
    request: dict[str, object] = {"module": module, "step": step, "arguments": arguments}
    request |= {"folder": os.getcwd(), "environment": dict(os.environ)}
    message = json.dumps(request).encode()
    with connection:
        try:
            connection.connect(f"{os.environ.get(ADDRESS, '')}/{kind}")
            socket.send_fds(connection, [len(message).to_bytes(8, "big")], [0, 1, 2])
            connection.sendall(message)
        except OSError:
            return None
        sent, before = _pass_signals_on(connection)
        answer = _received(connection, 1 + MOST_SAID)
        if answer[:1] == STARTED:
            status = answer[1:] or _received(connection, 1)
            if sentence := _why_it_ended(status, sent):
                print(f"error: {sentence}", file=sys.stderr)
            return status[0] if status else 1
        if reason := answer[1:].decode(errors="replace"):
            print(f"{reason}, so this job imports its libraries itself, which takes some seconds", file=sys.stderr)
    for number, handler in before.items():
        signal.signal(number, handler)
    for number in sent:  # of which no job heard
        signal.raise_signal(number)
    return None


def _pass_signals_on(connection: socket.socket) -> tuple[list[int], dict]:
    """Send this process's signals to the server, for the job; return those sent, as they come, and earlier handlers."""
    sent: list[int] = []

    def send(number: int) -> None:
        with contextlib.suppress(OSError):  # the server has gone, which `ask` sees
            connection.send(bytes([number]))

    def pass_on(number, _) -> None:
        sent.append(number)
        send(number)

    stop = stop_with(send, signal.SIGSTOP)
    before = {
        number: signal.signal(number, stop if number == signal.SIGTSTP else pass_on)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)  # the last is Ctrl-Z
        if signal.getsignal(number) is not signal.SIG_IGN  # as a shell ignores Ctrl-C for what it runs behind
    }
    return sent, before


def stop_with(send, stopping: int):
    """Return a handler of Ctrl-Z (SIGTSTP) by which others stop and go on with this process.

    It stops as it would by default: not where no shell could let it go on. Args: what sends them a signal; which one
    stops them, SIGTSTP where they pass it on to others.
    """

    def stop(number, _) -> None:
        send(stopping)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # which returns once SIGCONT has come
        signal.signal(number, stop)
        send(signal.SIGCONT)

    return stop


def _received(connection: socket.socket, most: int) -> bytes:
    """Return what the server sent; nothing where it has gone."""
    try:
        return connection.recv(most)
    except ConnectionError:  # it went without reading a request or a signal
        return b""


def _why_it_ended(status: bytes, sent: list[int]) -> str | None:
    """Return a sentence on a job that a signal ended, which could say nothing itself; None of one that said so.

    Args: its exit status, nothing where its server has gone, with which a job ends; signals that were passed on to it.
    """
    number = status[0] - 128 if status else 0
    if status and not 0 < number < signal.NSIG:
        return None
    if number == signal.SIGTERM:
        return None  # `run_step` says so
    if sent:
        return f"the job was interrupted by {signal.Signals(sent[-1]).name}"
    from thaw.core.processes import USUALLY, killed_by
    from thaw.core.runtime import LESS_MEMORY

    if not status:
        usually = USUALLY[signal.SIGKILL]
        ended = f"the process that the job was forked from ended, and the job with it, usually because {usually}"
        return f"{ended}: {LESS_MEMORY}"
    return f"the job was {killed_by(number)}" + (f": {LESS_MEMORY}" if number == signal.SIGKILL else "")
