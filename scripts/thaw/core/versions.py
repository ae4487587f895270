"""The VERSION of every step: raised by hand when a step's results change, never otherwise.

It is in the spec of each job, so that raising it makes every result of that step again. A test keeps a digest of
each step's code and asks for one or the other: raise the version, or sign the new code off as leaving results as
they are (`python scripts/sign_off.py`).
"""

VERSIONS = {
    "prepare": 1,
    "fetch": 1,
    "pretrain": 2,
    "features": 2,
    "fit_heads": 5,
    "search_heads": 1,
    "train": 5,
    "select": 1,
    "teach": 1,
    "baseline": 1,
    "features_adapted": 1,
    "probe": 2,
    "external": 1,
    "ensemble": 1,
    "merge": 2,
    "latency": 3,
    "collect": 11,
    "table": 16,
    "figure": 14,
    "report": 15,
}
