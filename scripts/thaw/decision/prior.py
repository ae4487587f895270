"""What is expected before validation is seen: how far strategies that train layers are above linear probes.

GAINS: by encoder, kind of task and strategy the points above both linear probes, a mean over datasets of the grid with
800 training rows. Any other strategy that trains layers is expected to gain the mean of these. With gains of other
datasets than the one decided on, the decision loses less there (docs/results/grid.md). tests/test_replay.py works the
gains out again.
"""

KINDS = {"classification": "texts", "tagging": "words", "spans": "words"}
KINDS |= {"pair_classification": "pairs", "pair_regression": "pairs"}
APART = {"full_separate": -4.5, "lora_separate": -1.8, "top_k_separate k02": -5.1}  # pairs, each text alone
GAINS = {
    "minilm": {
        "texts": {"full": 6.4, "lora": 5.3, "top_k k02": 5.6},
        "words": {"full": 12.8, "lora": 8.3, "top_k k02": 9.2},
        "pairs": {"full": -2.5, "lora": -1.9, "top_k k02": -5.9, **APART},
    }
}

ABOVE_FULL = {"setfit": 6.5}  # points, with 48 training rows of texts: config/experiments/few_labels.yaml


def is_measured(encoder: str, task_type: str) -> bool:
    """Tell whether something is expected of strategies beforehand, with an encoder on a type of task."""
    return KINDS.get(task_type) in GAINS.get(encoder, {})


def expected(encoder: str, task_type: str, strategy: str, trains_layers: bool) -> float:
    """Return by how many points a strategy is expected to be above a linear probe; 0 where that was not measured.

    Args: strategy: its id and the point of its sweep, as in "top_k k02".
    """
    if not trains_layers or not is_measured(encoder, task_type):
        return 0.0
    gains = GAINS[encoder][KINDS[task_type]]
    if strategy in ABOVE_FULL:
        return gains["full"] + ABOVE_FULL[strategy]
    return gains.get(strategy, sum(gains.values()) / len(gains))
