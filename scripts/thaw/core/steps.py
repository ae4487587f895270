"""The steps of the workflow: the VERSION of each, and what is asked of a step by its name. No torch.

A VERSION is raised by hand when a step's results change, never otherwise: it is in the spec of each job, so that
raising it makes every result of that step again. A test keeps a digest of each step's code and asks for one or the
other: raise the version, or sign the new code off as leaving results as they are (`python scripts/sign_off.py`).
"""

from typing import NamedTuple


class Step(NamedTuple):
    """What holds for all jobs of a step.

    version: see above. libraries: what a job imports first, "encoders" (torch and transformers), "models" (these and
    what reads tables), "plots" or "tables". own_threads: whether a job gets any number of cores and says itself how
    many threads it has. trains: whether it changes weights by gradients. computes: whether it trains or runs an
    encoder's layers, which the forecast counts and of which the longest starts first. result: "scores" where runs.csv
    has them, "record" for what tables and figures read directly, "output" for what is drawn, which carries no digest;
    "" for all else.
    """

    version: int
    libraries: str = "tables"
    own_threads: bool = False
    trains: bool = False
    computes: bool = False
    result: str = ""


STEPS = {
    "prepare": Step(1),
    "fetch": Step(1, "encoders", own_threads=True),
    "pretrain": Step(2, "models", trains=True, computes=True),
    "features": Step(2, "models", own_threads=True, computes=True),
    "fit_heads": Step(5, "models", own_threads=True, trains=True, computes=True, result="scores"),
    "search_heads": Step(1, "models", own_threads=True, trains=True, computes=True),
    "train": Step(5, "models", trains=True, computes=True, result="scores"),
    "select": Step(1),
    "teach": Step(1, "models", computes=True),
    "baseline": Step(2, result="scores"),
    "features_adapted": Step(1, "models", computes=True),
    "probe": Step(2, "models", result="record"),
    "ensemble": Step(1, "models", result="scores"),
    "merge": Step(2, "models", own_threads=True, result="record"),
    "collect": Step(14, result="output"),
    "table": Step(34, result="output"),
    "figure": Step(24, "plots", result="output"),
    "report": Step(28, "plots", result="output"),
}

FIT_VERSION = 2  # of heads that are fitted to convergence, which rises alone

COMPUTING = tuple(name for name, step in STEPS.items() if step.computes)


def giving(result: str) -> tuple[str, ...]:
    """Return the steps whose results are of a kind: "scores", "record" or "output"."""
    return tuple(name for name, step in STEPS.items() if step.result == result)


def kind_version(key: str, version: int) -> dict[str, int]:
    """Return what a spec says of the version of one kind, of probe, head or rule, which rises alone: of 1 nothing."""
    return {key: version} if version > 1 else {}
