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
    name = next((known.name for known in signal.Signals if known == -code), f"signal {-code}")
    usually = f", usually because {USUALLY[-code]}" if -code in USUALLY else ""
    return f"{printed[-1]} (killed by {name}{usually})"
