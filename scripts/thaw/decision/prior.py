"""What is known before validation is seen: how far training layers is above a head on the frozen encoder.

GAINS are means over data sets of the grid (docs/results/grid/answers.parquet): 800 training rows, MiniLM; top 2 and
full fine-tuning less both linear probes. On data sets that were left out they lowered what the decision loses
(docs/results/grid.md). Pairs have none: there all that trains layers read both texts together, probes each alone.
tests/test_replay.py computes them again.
"""

GAINS = {"minilm": {"classification": 6.9, "tagging": 10.9, "spans": 10.9}}


def expected(encoder: str, task_type: str, trains_layers: bool) -> float:
    """Return the points that are expected of a strategy more than of a linear probe; 0 where nothing is known."""
    return GAINS.get(encoder, {}).get(task_type, 0.0) if trains_layers else 0.0
