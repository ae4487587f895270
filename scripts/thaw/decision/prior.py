"""What is expected before validation is seen: how far training layers is above a head on the frozen encoder.

GAINS: top 2 and full fine-tuning less both linear probes in points, a mean over datasets of the grid with 800 training
rows. They are 2.8, 3.2 and 12.1 for texts, 5.5 and 16.6 for words. With gains of other datasets than the one decided
on, the decision loses less there (docs/results/grid.md). Pairs have none, since whatever trained layers read them in
one sequence and probes each text alone. tests/test_replay.py works the means out again.
"""

GAINS = {"minilm": {"classification": 6.0, "tagging": 11.0, "spans": 11.0}}


def is_measured(encoder: str, task_type: str) -> bool:
    """Tell whether something is expected of strategies beforehand, with an encoder on a type of task."""
    return task_type in GAINS.get(encoder, {})


def expected(encoder: str, task_type: str, trains_layers: bool) -> float:
    """Return by how many points a strategy is expected to be above a linear probe; 0 where that was not measured."""
    return GAINS.get(encoder, {}).get(task_type, 0.0) if trains_layers else 0.0
