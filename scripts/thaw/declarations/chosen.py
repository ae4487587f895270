"""What validation chooses within a run, in words: for the checklist of a report and for model cards."""

from typing import NamedTuple


class Chosen(NamedTuple):
    """The name before a chosen value, and the subject of the sentence that says that it is chosen."""

    name: str
    subject: str


CHOSEN = {
    "l2": Chosen("L2 penalty", "The L2 penalty"),
    "pairs": Chosen("pairs read", "Cross-encoder or bi-encoder"),
    "layer": Chosen("layer", "The layer that the head reads"),
    "features": Chosen("number of features", "The fraction of the features"),
    "no_answer_threshold": Chosen("threshold of no answer", "The threshold of no answer"),
    "end": Chosen("end", "The epoch or evaluation at which training ends, or whose weights are kept,"),
    "rate": Chosen("halving of the rate", "When the learning rate is halved"),
}
