"""The cores of a job whose work several processes share, on one machine: a pass of an encoder, heads that train."""

import os
import sys
from collections.abc import Callable

from thaw.core.boundaries import computes_layers
from thaw.core.devices import cards, gpu_evidence
from thaw.planning.cost_estimate import entry_of, store_of, training_vectors
from thaw.planning.plan import Plan
from thaw.schema.head import HeadConfig

ROOM = 4e9  # bytes of the vectors of a job's processes: each reads all of them, and holds them twice for a moment


def extraction_cores(plan: Plan, cores: int | None) -> int:
    """Return the cores that a pass of an encoder has on this machine: as many as leave room for all passes of a plan.

    Args: cores that Snakemake was given, None on a cluster. A pass on a GPU has those of any job.
    """
    if cores is None or not _shares_work():
        return plan.threads
    return max(plan.threads, cores // max(1, len(plan.jobs["features"])))


def head_cores(plan: Plan, cores: int | None) -> Callable[[str, str], int]:
    """Return a function of a step and a key: the cores of a job in which several heads train.

    With few such jobs each has all cores, since one may take much longer than the others; with many they run side by
    side. Args: as of `extraction_cores`. Of a job whose heads train quickly, or share one fit, it is those of any job.
    """
    most = 0
    if cores is not None and _shares_work():
        steps = ("fit_heads", "search_heads")  # a search ends before its fit begins
        jobs = max(1, *(sum(not job.fits_to_convergence for job in plan.jobs[step].values()) for step in steps))
        most = min(cores, 2 * cores // jobs) // plan.threads
    if most < 2:
        return lambda step, key: plan.threads
    return lambda step, key: plan.threads * min(most, _processes(plan, step, key))


def _processes(plan: Plan, step: str, key: str) -> int:
    """Return how many processes the heads of a job are worth."""
    job = plan.job(step, key)
    store = store_of(plan, job)
    head = HeadConfig.model_validate(job.spec["head"])
    (phase,), read = job.spec["phases"], head.layers.reads(job.spec["layers"])
    if job.fits_to_convergence or computes_layers(phase["boundary"], read[-1]):  # each would compute layers on its own
        return 1
    heads = len(job.spec["grid"]) * len(job.spec["seeds"]) if step == "search_heads" else len(plan.seeds)
    fitting = ROOM / (8 * entry_of(plan, store).width * max(1, training_vectors(plan, job)))
    return max(1, int(min(heads, fitting)))


def _shares_work() -> bool:
    """Return whether processes of a job may share its work on this machine: where it computes on no GPU.

    On Linux alone: on macOS its libraries do not bear a fork.
    """
    return sys.platform == "linux" and not gpu_evidence(dict(os.environ), cards())
