"""Estimates: what a plan will cost in bytes and seconds. No torch.

Bytes follow from the catalogue's sizes before `prepare` and from the tokenised corpus after it. Seconds follow from
the multiplications of training and extraction, and from a matrix product timed on this machine a moment ago.
"""

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from thaw.adaptation.selectors import thawed_layers
from thaw.adaptation.stages import epochs_of, stages_of
from thaw.core.boundaries import BYTES
from thaw.core.digests import canonical
from thaw.core.files import read_json
from thaw.core.steps import STEPS
from thaw.data.sources import count_texts
from thaw.declarations.objective_kinds import objectives_of
from thaw.declarations.task_types import WORD_TYPES
from thaw.planning.jobs import Job, corpus_of, encoder_of
from thaw.planning.plan import Plan
from thaw.planning.row_selections import planned_rows, share_of_train
from thaw.schema.corpora import SizeConfig
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.schema.head import boundaries_read
from thaw.schema.phases import PhaseConfig

MOST_TIMED = 8  # cores that are timed; the others count as much
# Seconds of a job that do not grow with its texts, where a server has imported the libraries (fork_server); of heads
# that are fitted to convergence all. Measured with MiniLM on two idle cores, as is the next line but one.
JOB_SECONDS = {"features": 0.5, "fit_heads": 3.0, "search_heads": 3.0}
OTHER_SECONDS = 0.5
SHOWN_SECONDS = 1.0  # of a job that computes with no encoder: preparing, baselines, tables, figures, the report
EFFICIENCY = 0.48  # of a matrix product's rate: MiniLM's training in fp32 with its evaluation had 0.42 to 0.55
LADDER = 2500  # operations per number of the cached states that a head with layers of its own reads in an epoch
UNKNOWN = 100_000  # tokens of a corpus whose size is not in the catalogue and that is not tokenised yet
# Of a GPU operations a second, a third of what a T4 states for fp32, and seconds that kernels of a layer take to start,
# some 35 of 6 us forward and twice as many back. Nobody measured them.
GPU_RATE, PASS_SECONDS = 5e12, 2e-4
ASSUMED = "at 5 TFLOP/s and 0.2 ms for each layer of a pass, which was not measured"
VOCABULARY = 100_000  # rows of the embeddings, which no catalogue states


@dataclass(frozen=True)
class StoreEstimate:
    """One store: its boundaries and vectors, tokens, bytes, and whether the tokens were counted or estimated."""

    key: str
    boundaries: list[int]
    vectors: list[str]
    tokens: int | None
    exact: bool
    bytes: int


def stores(plan: Plan) -> list[StoreEstimate]:
    """Return what each store of the plan will take on disk: 2 or 4 bytes a number, one vector a token and boundary.

    Of pooled states three a sequence and layer, of words at most one a token and layer.
    """
    return [_store(plan, key) for key in plan.jobs["features"]]


def _store(plan: Plan, key: str) -> StoreEstimate:
    rows, tokens, exact = _whole_size(plan, key)
    examples, of_train = training_size(plan, key)
    if tokens and (share := share_of_train(plan, key, examples)) < 1:
        tokens = max(0, round(tokens - of_train * (1 - share)))
    spec, boundaries, vectors = plan.job("features", key).spec, plan.boundaries[key], plan.vectors[key]
    encoder, texts = entry_of(plan, key), 2 if spec["view"].get("pairs") == "separate" else 1
    count = (tokens or 0) * len(boundaries)
    by_layer = {"pooled": 3 * texts * rows, "words": tokens or 0}
    count += (encoder.layers + 1) * sum(by_layer[name] for name in vectors)  # pooled: of all rows, an upper limit
    size = count * encoder.width * BYTES[spec["dtype"]]
    return StoreEstimate(key, boundaries, vectors, tokens, exact, size)


def left_out(plan: Plan) -> list[str]:
    """Return a sentence for each encoder and corpus of which `max_gib` lets fewer layers be cached."""
    sentences, store = [], plan.experiment.store
    for key in plan.jobs["features"]:
        entry, corpus = entry_of(plan, key), plan.catalogue.get("corpora", corpus_of(key), "corpora")
        held = store.boundaries(entry, corpus)
        if len(held) <= entry.layers:
            kept = " ".join(f"b{n}" for n in held) or "no boundary"
            sentences.append(
                f"store: max_gib: {store.max_gib:g} holds {kept} of {key}; what starts elsewhere computes the "
                "layers below it each time"
            )
    return sentences


def entry_of(plan: Plan, key: str):
    return plan.catalogue.get("encoders", encoder_of(key), "encoders")


def _size(plan: Plan, key: str) -> SizeConfig | None:
    """Return the size of a store's corpus: as the catalogue states it, else counted in the user's files, else None."""
    corpus = corpus_of(key)
    if size := plan.catalogue.get("corpora", corpus, "corpora").size:
        return size
    spec, view = plan.job("prepare", corpus).spec, plan.job("features", key).spec["view"]
    if spec["source"] != "files":
        return None
    files, data_dir = tuple(spec["files"].items()), plan.experiment.data_dir
    return count_texts(corpus, canonical(spec["entry"]), files, data_dir, canonical(view))


def _counted(plan: Plan, key: str) -> dict[str, dict[str, int]] | None:
    """Return the examples and tokens of each split of a store, where its tokens were counted."""
    card = Path(plan.file("features", key))
    return read_json(card)["splits"] if card.exists() else None


def _whole_size(plan: Plan, key: str) -> tuple[int, int | None, bool]:
    """Return a store's examples and tokens (0 and None where nobody states them), and whether they were counted."""
    if splits := _counted(plan, key):
        examples, tokens = (sum(split[name] for split in splits.values()) for name in ("examples", "tokens"))
        return examples, tokens, True
    size = _size(plan, key)
    return (size.examples, size.tokens, False) if size else (0, None, False)


def training_size(plan: Plan, key: str) -> tuple[float, float]:
    """Return the examples and tokens of a store's training split, counted or estimated."""
    if splits := _counted(plan, key):
        return splits["train"]["examples"], splits["train"]["tokens"]
    size = _size(plan, key)
    return (size.train * size.examples, size.train * size.tokens) if size else (UNKNOWN / 20, UNKNOWN)


def training_vectors(plan: Plan, job: Job) -> float:
    """Return how many vectors a head reads of the training split, one a text or one a word; words at most as tokens."""
    examples, tokens = training_size(plan, job.store)
    return tokens if job.spec["task"]["type"] in WORD_TYPES else examples


def machine_rate() -> float:
    """Time matrix products on all cores at once and return their floating-point operations a second together."""
    cores = os.cpu_count() or 1
    command, few = [sys.executable, "-m", "thaw.compute_cost.matrix_rate"], min(cores, MOST_TIMED)
    timed = [
        subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(few)
    ]
    return sum(float(one.communicate()[0]) for one in timed) * cores / few


def seconds(step: str, operations: float, jobs: int, threads: int, rate: float) -> float:
    """Return how long some jobs of a step take with all cores busy: their operations, and the rest side by side."""
    together = max(1, (os.cpu_count() or 1) // threads)
    each = JOB_SECONDS.get(step, OTHER_SECONDS) if STEPS[step].computes else SHOWN_SECONDS
    return operations / (rate * EFFICIENCY) + each * jobs / together


def seconds_on_gpu(plan: Plan, step: str, key: str) -> float:
    """Return how long a job computes on a GPU, as is assumed: its operations, and kernels of its updates."""
    job, passed = plan.job(step, key), 0.0
    if step == "train":
        _, passed = training_updates(plan, job.spec, job.store)
    return operations(plan, step, key) / GPU_RATE + passed * PASS_SECONDS


def measured_on_gpu(plan: Plan) -> tuple[float, int]:
    """Return what finished trainings of a plan took on a GPU, as a share of what is assumed, and how many they are."""
    assumed, costs = 0.0, []
    for key in (key for key in plan.jobs["train"] if plan.status.is_current("train", key)):
        cost = read_json(Path(plan.file("train", key)).with_name("cost.json"))
        if cost["hardware"]["device"] != "cpu":
            assumed += seconds_on_gpu(plan, "train", key)
            costs.append(cost["seconds"]["train"])
    return (sum(costs) / assumed if assumed else 1.0), len(costs)


def training_rows(plan: Plan, key: str, spec: dict, examples: float) -> float:
    """Return how many of a store's examples a run trains on: those of its subset, without what it holds out."""
    rows = planned_rows(plan, key, spec["task"]["target"], spec["subset"], examples)
    return rows * (1 - spec["subset"].get("validation", 0))


def training_operations(plan: Plan, spec: dict, key: str) -> float:
    """Return the floating-point operations of one run's training.

    Per token and layer, with width d and the usual inner width 4d: 24 d^2 operations forward, twice that backward. Only
    layers up to the highest are computed whose state the head or a comparison with a teacher reads.
    """
    total, stores = 0.0, _stores_of_tasks(plan, spec, key)
    for store in stores:
        entry, (examples, tokens) = entry_of(plan, store), training_size(plan, store)
        tokens *= training_rows(plan, store, spec, examples) / examples
        climbs = "ladder" in spec["head"].get("layers", {}).values()
        more = climbs * LADDER * entry.width * (entry.layers + 1)
        for _, epochs, passed in _stages(plan, spec, store):
            total += epochs * tokens * (24 * entry.width**2 * passed + more)
    return total / _sharing(spec, stores)


def training_updates(plan: Plan, spec: dict, key: str) -> tuple[float, float]:
    """Return how many updates a run makes, and how many layers these pass, where the way back counts twice."""
    made, stores = [], _stores_of_tasks(plan, spec, key)
    for store in stores:
        rows = training_rows(plan, store, spec, training_size(plan, store)[0])
        made += [(epochs * rows / size, passed) for size, epochs, passed in _stages(plan, spec, store)]
    shared = _sharing(spec, stores)
    return sum(count for count, _ in made) / shared, sum(count * passed for count, passed in made) / shared


def _stores_of_tasks(plan: Plan, spec: dict, key: str) -> list[str]:
    """Return the stores of a run's task and of those that its job trains too; none where another job has trained it."""
    several = spec.get("multi_task")
    if several is None:
        return [key]
    read = {entry["features"][0] for entry in spec.get("auxiliary", [])}
    others = [name for name, job in plan.jobs["features"].items() if job.digest in read and name != key]
    return [] if "run" in several else [key, *others]


def _sharing(spec: dict, stores: list[str]) -> int:
    """Return how many tasks share the updates of a training; each has epochs of its own."""
    return max(1, len(stores)) if any("updates" in phase for phase in spec["phases"]) else 1


def _stages(plan: Plan, spec: dict, key: str) -> Iterator[tuple[int, float, float]]:
    """Yield the batch size of each stage of a run, its epochs, and the layers that a text passes in one."""
    layers = spec.get("student", {}).get("layers", range(1, entry_of(plan, key).layers + 1))
    rows, read = max(1.0, training_rows(plan, key, spec, training_size(plan, key)[0])), boundaries_read(spec)
    for phase in spec["phases"]:
        settings = PhaseConfig.of_spec(phase)
        passes = math.prod(kind.passes for kind in objectives_of(settings).values())
        highest = max([*read, *(own for own, _ in phase.get("pairs", []))])
        for stage in stages_of(settings, phase):
            computed = len([n for n in layers if (stage["boundary"] or 0) < n <= highest])
            passed = passes * (computed + 2 * thawed_layers(stage["components"]))
            yield settings.batch_size, epochs_of(settings, stage, rows), passed


def pretraining_operations(plan: Plan, job: Job) -> float:
    """Return the floating-point operations of a further pretraining: layers, vocabulary for each mask, teacher."""
    key, entry = job.store, FurtherPretrainingConfig.model_validate(job.spec["settings"])
    encoder, (examples, tokens) = entry_of(plan, key), training_size(plan, key)
    shape, layer = entry.kept(encoder.layers), 12 * encoder.width**2
    products = layer * (len(shape[0]) if shape else encoder.layers) + entry.mask * encoder.width * VOCABULARY
    (stage,) = stages_of(entry.phase, {})
    tokens *= epochs_of(entry.phase, stage, max(1, round(examples)))
    return 6 * tokens * products + (2 * tokens * layer * encoder.layers if entry.cosine else 0.0)


def _excerpt(plan: Plan, job: Job) -> int:
    """Return the tokens that are read with an adapted encoder: of train those of the job's subset."""
    (examples, tokens), (_, whole, _) = training_size(plan, job.store), _whole_size(plan, job.store)
    subset = job.spec["subset"]
    rows = planned_rows(plan, job.store, job.spec["task"]["target"], subset, examples)
    share = rows / examples * (job.spec.get("rows") != "none") + subset.get("reserved", 0) / examples
    return max(0, round((whole or 0) - tokens * (1 - min(1.0, share))))


def operations(plan: Plan, step: str, key: str) -> float:
    """Return the floating-point operations of a job that computes with an encoder; 0 for any other."""
    job = plan.job(step, key)
    if step == "pretrain":
        return pretraining_operations(plan, job)
    if step in ("features", "features_adapted", "teach"):
        store = _store(plan, key if step == "features" else job.store)
        tokens, whole = (store.tokens or 0, store.vectors) if step == "features" else (_excerpt(plan, job), True)
        entry = entry_of(plan, store.key)
        return 24 * entry.width**2 * tokens * (entry.layers if whole else max(store.boundaries, default=0))
    return training_operations(plan, job.spec, job.store) if STEPS[step].trains else 0.0
