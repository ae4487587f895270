"""How far states that start at a stored layer are from those that start at the text: MiniLM on TREC's test questions.

thaw run config/experiments/stacking.yaml --config data_dir=path/to/data
PYTHONPATH=.:scripts:tests python quality/resumed_states.py

The record is docs/results/resumed_states; docs/results/loop_equivalence.md shows its table.
"""

from pathlib import Path

import torch

import record
from thaw.core.files import write_text
from thaw.core.runtime import run_step, set_threads, versions
from thaw.encoders.transformers import Encoder
from thaw.features.store import FeatureStore

RESULTS = Path(__file__).parents[1] / "results"
KEPT = record.RECORDS / "resumed_states"
SPLIT, SIZE = "test", 16


@torch.no_grad()
def differences(encoder_folder: Path, store_folder: Path) -> dict[int, dict[str, float]]:
    """Return by boundary the largest difference in the last layer: from states in fp32, and from stored ones.

    In fp32 both sides have the same batches. `mean` is the mean difference from stored states, `size` the mean size of
    a number of the last layer, both over all numbers of all tokens.
    """
    store, whole = FeatureStore(store_folder), Encoder.load(encoder_folder)
    count = len(store.sizes(SPLIT))
    found: dict[int, dict[str, float]] = {}
    for boundary in store.boundaries()[:-1]:  # above the last one there is no layer
        resumed, parts = Encoder.load(encoder_folder).resume_at(boundary), []
        for start in range(0, count, SIZE):
            rows = list(range(start, min(start + SIZE, count)))
            batch = store.batch(SPLIT, rows)
            states = whole.boundaries(batch)
            due = states[-1][batch.mask]
            exact = (resumed(batch, states[boundary])[batch.mask] - due).abs()
            stored = (resumed(batch, store.states(boundary, SPLIT).gather(rows, batch))[batch.mask] - due).abs()
            parts.append([exact.max(), stored.max(), stored.sum(), due.abs().sum(), due.numel()])
        columns = torch.tensor(parts, dtype=torch.float64)
        numbers = [*columns[:, :2].amax(0).tolist(), *(columns[:, 2:4].sum(0) / columns[:, 4].sum()).tolist()]
        found[boundary] = dict(zip(("exact", "stored", "mean", "size"), numbers, strict=True))
    return found


def table(found: dict[int, dict[str, float]]) -> str:
    """Return the record's table in Markdown."""
    lines = [
        "| starts at layer | largest, fp32 | largest, stored in bf16 | mean, stored in bf16 |",
        "|--:|--:|--:|--:|",
    ]
    for boundary, one in found.items():
        lines.append(f"| {boundary} | {one['exact']:.2g} | {one['stored']:.2g} | {one['mean']:.2g} |")
    size = next(iter(found.values()))["size"]
    note = f"- Difference of the numbers of the last layer, 500 questions of TREC's test set in batches of {SIZE}; the "
    note += (
        f"mean size of such a number is {size:.2g}. Layer 0: the embeddings. torch {versions()['torch']}, one thread."
    )
    return "\n".join([*lines, "", note, ""])


def main() -> None:
    """Measure, and write the record."""
    set_threads(1)
    found = differences(RESULTS / "encoders/minilm", RESULTS / "features/minilm/trec/joint")
    write_text(KEPT / "tables/differences.md", table(found))


if __name__ == "__main__":
    run_step(main)
