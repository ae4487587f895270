"""Why a process ended, in words."""

import signal

USUALLY = {  # what a signal that ends a process usually means
    signal.SIGKILL: "memory ran out",
    signal.SIGSEGV: "compiled code failed",
    signal.SIGABRT: "compiled code failed",
    signal.SIGILL: "a library was compiled for another processor",
    signal.SIGTERM: "somebody or the cluster ended it",
}


def why_it_ended(code: int, errors: str) -> str:
    """Return the last line that a process printed as an error, and its exit code or the signal that killed it.

    Args: code, its exit code, of which a negative one is a signal, as `subprocess` has it; all that it printed.
    """
    printed = errors.strip().splitlines() or ["it printed no error"]
    if code >= 0:
        return f"{printed[-1]} (exit code {code})"
    return f"{printed[-1]} ({killed_by(-code)})"


def killed_by(number: int) -> str:
    """Return that a process was killed by a signal, by its name, and what this usually means where that is known."""
    name = next((known.name for known in signal.Signals if known == number), f"signal {number}")
    return f"killed by {name}" + (f", usually because {USUALLY[number]}" if number in USUALLY else "")
