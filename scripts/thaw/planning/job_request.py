"""What a job asks for: memory and minutes of a cluster, memory of a GPU, and cores that its processes share."""

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

from thaw.adaptation.stages import stages_of
from thaw.core import layout
from thaw.core.boundaries import ACTIVATION, computes_layers
from thaw.core.devices import cards, gpu_evidence
from thaw.core.files import read_json
from thaw.planning.cost_estimate import VOCABULARY, entry_of, operations, seconds_on_gpu, training_vectors
from thaw.planning.plan import Plan
from thaw.schema.corpora import ViewConfig
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.schema.head import HeadConfig, as_list
from thaw.schema.phases import PhaseConfig

# MiniLM's runs on real text did 20 to 30 GFLOP/s a thread, evaluation and all, and took
# 1.6 GB at most.
RATE = 10e9  # operations a second and thread
MINUTES, DAY = 30, 24 * 60  # for all that is no training; the most that is asked for
PROCESS_MB = 2000  # Python, torch, the texts, and Snakemake's own two processes around a job
CONTEXT_MB = 1000  # of a GPU: CUDA's context, kernels and what else no formula counts; nobody measured it
LOGIT = 12  # bytes of a logit with its probability and its gradient


def request(plan: Plan, step: str, key: str, attempt: int = 1, gpu: bool = False) -> dict[str, int]:
    """Return what a job asks for: memory in MB (mem_mb), of a GPU too (gpu_mb), and minutes (runtime) of a cluster.

    All double with each further attempt, the minutes up to a day. The store is mapped from disk and not counted: the
    system takes its pages back where memory is short. Args: gpu, whether the minutes are those on a GPU.
    """
    here = operations(plan, step, key) / (RATE * plan.threads)
    minutes = MINUTES + (seconds_on_gpu(plan, step, key) if gpu else here) / 60
    more = 2 ** (attempt - 1)
    mb = _bytes(plan, step, key) / 1e6
    on_gpu = CONTEXT_MB + (_measured_mb(plan, step, key) or mb) if mb else 0
    return {
        "mem_mb": math.ceil(PROCESS_MB + mb) * more,
        "gpu_mb": math.ceil(on_gpu) * more,
        "runtime": min(DAY, math.ceil(minutes) * more),
    }


def _measured_mb(plan: Plan, step: str, key: str) -> float:
    """Return the largest memory that finished seeds of a run took on a GPU, a fifth more for its gaps; 0 without."""
    if step != "train":
        return 0
    cell = Path(plan.results, layout.cell(layout.names_in_folder("train", key)))
    costs = [read_json(path) for path in cell.glob("seed*/cost.json")]
    return 1.2 * max((cost["peak_memory_mb"] for cost in costs if cost["hardware"]["device"] != "cpu"), default=0)


def first_of_cells(plan: Plan) -> dict[str, str]:
    """Return by key of each run in training the first run of its cell: all seeds ask for as much."""
    first: dict[str, str] = {}
    cells = {key: layout.cell(layout.names_in_folder("train", key)) for key in plan.jobs["train"]}
    return {key: first.setdefault(cell, key) for key, cell in cells.items()}


def _parameters(encoder) -> int:
    """Return about how many parameters an encoder has: 12 d^2 a layer, and its embeddings."""
    return encoder.width * (12 * encoder.layers * encoder.width + VOCABULARY)


def _side_by_side(spec: dict, layers: int) -> int:
    """Return how many states make one vector: layers that are concatenated, by the poolings; a probe's layers."""
    if "read" in spec:
        return len(spec["read"])
    head = HeadConfig.model_validate(spec["head"])
    return head.layers.width_of(1, len(head.layers.reads(layers))) * len(as_list(head.pooling))


def _bytes(plan: Plan, step: str, key: str) -> float:
    """Return the bytes that a job needs in addition to those of its process.

    Training: weights, and of the layers that it computes gradients, AdamW's two moments and what a batch of the longest
    texts leaves; with masks, also the logits of the chosen tokens. A head fitted to convergence: weights, and three
    copies of the vectors that it reads, in fp64; a probe, those of each layer.
    """
    job = plan.job(step, key)
    if step == "features":
        return 4 * _parameters(entry_of(plan, key))
    if step in ("features_adapted", "teach"):
        return 8 * _parameters(entry_of(plan, job.store))
    if step == "ensemble" and "ends" in job.spec:  # all members' weights, the ends', and those of the model
        return 4 * (len(job.spec["members"]) + 4) * _parameters(entry_of(plan, job.store))
    if step not in ("pretrain", "train", "fit_heads", "search_heads", "probe"):
        return 0.0
    store = job.store
    encoder = entry_of(plan, store)
    if step in ("fit_heads", "search_heads", "probe"):
        numbers = encoder.width * training_vectors(plan, job) * _side_by_side(job.spec, encoder.layers)
        return 4 * _parameters(encoder) + 3 * 8 * numbers
    longest = plan.job("features", store).spec["view"].get("max_length", ViewConfig().max_length)
    most = math.inf
    if step == "pretrain":
        entry = FurtherPretrainingConfig.model_validate(job.spec["settings"])
        batch, share, logits = entry.phase.batch_size, 1.0, entry.mask * VOCABULARY * LOGIT
    else:
        phases = [(PhaseConfig.of_spec(phase), phase) for phase in job.spec["phases"]]
        batch = max(phase.batch_size for phase, _ in phases)
        most = max(phase.batch_gib or math.inf for phase, _ in phases) * 2**30
        lowest = min(stage["boundary"] or 0 for phase, entry in phases for stage in stages_of(phase, entry))
        share, logits = 1 - lowest / max(1, encoder.layers), 0
    activations = batch * longest * (share * encoder.layers * encoder.width * ACTIVATION + logits)
    return (4 + 12 * share) * _parameters(encoder) + min(most, activations)


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
    store = job.store
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
