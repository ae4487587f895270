"""What a job asks of a cluster: memory and minutes, by its encoder, its work, and whether it has a GPU."""

import math

from thaw.core import layout
from thaw.planning.cost_estimate import GPU_RATE, VOCABULARY, entry_of, operations, store_of, training_vectors
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
ACTIVATION = 100  # bytes that wait for the way back, a token, layer and unit of width
LOGIT = 12  # bytes of a logit with its probability and its gradient


def request(plan: Plan, step: str, key: str, attempt: int = 1, gpu: bool = False) -> dict[str, int]:
    """Return what a job asks of a cluster: memory in MB (mem_mb) and minutes (runtime), of a GPU where it has one.

    Both double with each further attempt, the minutes up to a day. The store is mapped from disk and not counted: the
    system takes its pages back where memory is short.
    """
    rate = GPU_RATE if gpu else RATE * plan.threads
    minutes = MINUTES + operations(plan, step, key) / rate / 60
    more = 2 ** (attempt - 1)
    memory = PROCESS_MB + _bytes(plan, step, key) / 1e6
    return {"mem_mb": math.ceil(memory) * more, "runtime": min(DAY, math.ceil(minutes) * more)}


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

    Training: weights, gradients and AdamW's two moments, and what a batch of the longest texts leaves in all layers;
    with masks, also the logits of the chosen tokens. A head fitted to convergence: weights, and three copies of the
    vectors that it reads, in fp64; a probe, those of each layer.
    """
    job = plan.job(step, key)
    if step == "features":
        return 4 * _parameters(entry_of(plan, key))
    if step in ("features_adapted", "teach"):
        return 8 * _parameters(entry_of(plan, store_of(plan, job)))
    if step not in ("pretrain", "train", "fit_heads", "search_heads", "probe"):
        return 0.0
    store = store_of(plan, job)
    encoder = entry_of(plan, store)
    if step in ("fit_heads", "search_heads", "probe"):
        numbers = encoder.width * training_vectors(plan, job) * _side_by_side(job.spec, encoder.layers)
        return 4 * _parameters(encoder) + 3 * 8 * numbers
    longest = plan.job("features", store).spec["view"].get("max_length", ViewConfig().max_length)
    if step == "pretrain":
        entry = FurtherPretrainingConfig.model_validate(job.spec["settings"])
        batch, logits = entry.phase.batch_size, entry.mask * VOCABULARY * LOGIT
    else:
        batch, logits = max(phase.get("batch_size", PhaseConfig().batch_size) for phase in job.spec["phases"]), 0
    return 16 * _parameters(encoder) + batch * longest * (encoder.layers * encoder.width * ACTIVATION + logits)
