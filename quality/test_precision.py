"""What the storage type and the boundary do to a score: less than a tenth of what another seed does.

Thaw computes features in fp32 and stores bf16. Here one run, with MiniLM on a synthetic corpus, is trained from four
sources of states: bf16 at its own boundary, fp32 there, bf16 two layers lower, and the text itself.
"""

import numpy as np
import pytest
import torch

from conftest import catalogue, minilm, run_step  # noqa: F401 - fixtures
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.digests import canonical, digest
from thaw.core.files import read_json
from thaw.core.steps import STEPS
from thaw.data.corpus import Corpus
from thaw.features.store import FeatureStore
from thaw.schema.entry import spec_of
from thaw.training.run_inputs import Inputs
from thaw.training.training_run import TrainingRun, train

SEEDS = range(1, 6)
SOURCES = {"bf16": ("bf16", 5), "fp32": ("fp32", 5), "bf16, two layers lower": ("bf16", 3), "text": ("fp32", None)}


def stored(folder, catalogue, minilm, dtype: str):  # noqa: F811
    """Prepare the corpus once and return (corpus, store) with boundaries 3 and 5 in a storage type."""
    data = folder / "similarity"
    entry = spec_of(catalogue.get("corpora", "similarity", "test"))
    spec = {"version": STEPS["prepare"].version, "corpus": "similarity", "entry": entry, "source": "synthetic"}
    spec["files"] = {}
    if not (data / "card.json").exists():
        run_step("prepare", "--spec", canonical(spec), "--data-dir", folder, "--out", data)
    encoder = read_json(minilm / "card.json")["digest"]
    features = {"version": 1, "view": {}, "dtype": dtype, "data": digest(spec), "encoder": encoder, "compute": {}}
    out = folder / dtype
    arguments = ("--boundaries", 3, 5, "--data", data, "--encoder", minilm, "--out", out)
    run_step("features", "--spec", canonical(features), *arguments)
    return Corpus(data), FeatureStore(out)


@pytest.mark.slow
def test_storage_and_boundary_move_a_score_by_less_than_a_tenth_of_the_seeds_deviation(tmp_path, catalogue, minilm):  # noqa: F811
    torch.set_num_threads(2)
    sources = {dtype: stored(tmp_path, catalogue, minilm, dtype) for dtype in ("bf16", "fp32")}
    task = {"id": "similarity", **spec_of(catalogue.get("tasks", "similarity", "test"))}
    scores: dict[str, list[float]] = {name: [] for name in SOURCES}
    for name, (dtype, boundary) in SOURCES.items():
        phase = {"components": ["head", "layer.6"], "boundary": boundary, "rate": 2e-4, "head_rate": 5e-3}
        phase |= {"epochs": 1, "batch_size": 16}
        for seed in SEEDS:
            corpus, store = sources[dtype]
            spec = {"task": task, "subset": {"rows": 400}, "head": {"kind": "linear"}, "layers": 6, "phases": [phase]}
            spec |= {"after": None, "keep": False, "seed": seed}
            (trained,) = train([TrainingRun(spec, Inputs(corpus, store, minilm, torch.device("cpu")))], Stopwatch())
            scores[name].append(100 * trained.outcome["scores"]["test"]["pearson"])
    spread = np.std(scores["text"], ddof=1)
    moved = {name: float(np.mean(np.subtract(found, scores["text"]))) for name, found in scores.items()}
    print(f"Pearson x 100 from text: {np.round(scores['text'], 3)}, sd {spread:.3f}; moved on average by {moved}")
    assert spread > 0
    assert all(abs(shift) < 0.1 * spread for shift in moved.values()), moved
