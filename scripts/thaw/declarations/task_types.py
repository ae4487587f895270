"""The types of task: what each reads, which target it has, what it is scored by, and its name in print."""

from dataclasses import dataclass

NO_TAG = -1  # prediction for a word that the model never saw: it counts as wrong

CLASS_METRICS = ("accuracy", "f1", "f1_macro", "mcc")
SCORE_METRICS = ("pearson", "spearman", "r2")
ANSWER_METRICS = ("answer_f1", "exact_match", "best_f1", "best_exact")
LABEL_SET_METRICS = ("f1_micro", "f1_macro", "subset_accuracy", "mean_average_precision")


@dataclass(frozen=True)
class TaskType:
    """A type of task: kind of its target, number of texts (0: words, each with a target), metrics, name in print."""

    target: str
    texts: int
    metrics: tuple[str, ...]
    in_print: str


TYPES = {
    "classification": TaskType("label", 1, CLASS_METRICS, "classification"),
    "pair_classification": TaskType("label", 2, CLASS_METRICS, "pair classification"),
    "multi_label_classification": TaskType("label_set", 1, LABEL_SET_METRICS, "multi-label classification"),
    "pair_multi_label_classification": TaskType("label_set", 2, LABEL_SET_METRICS, "multi-label pair classification"),
    "regression": TaskType("score", 1, SCORE_METRICS, "regression"),
    "pair_regression": TaskType("score", 2, SCORE_METRICS, "pair regression"),
    "tagging": TaskType("tags", 0, ("accuracy",), "tagging"),
    "spans": TaskType("tags", 0, ("span_f1", "accuracy"), "span labelling (NER)"),
    "span_extraction": TaskType("answers", 2, ANSWER_METRICS, "span extraction (question answering)"),
}
PROBE_ONLY = {"edges": TaskType("edges", 0, ("edge_f1",), "edge probing")}  # no head serves it: it is for probes alone

TASK_TYPES, PROBE_ONLY_TYPES = tuple(TYPES), tuple(PROBE_ONLY)
WORD_TYPES = tuple(name for name, known in TYPES.items() if known.texts == 0)
EXTRACTION_TYPES = tuple(name for name, known in TYPES.items() if known.target == "answers")  # a part of a text
PREDICTED_TYPES = tuple(name for name in TYPES if name not in EXTRACTION_TYPES)  # something about texts or words
PAIR_TYPES = tuple(name for name in PREDICTED_TYPES if TYPES[name].texts == 2)
TEXT_TYPES = tuple(name for name in PREDICTED_TYPES if TYPES[name].texts)  # one text, or a pair
FILE_TYPES = ("classification", "regression", "multi_label_classification", "tagging", "spans")  # of columns of a file
SCORE_TYPES = tuple(name for name, known in TYPES.items() if known.target == "score")  # a number instead of labels

METRICS = tuple(dict.fromkeys(metric for known in TYPES.values() for metric in known.metrics))
EDGE_METRICS = PROBE_ONLY["edges"].metrics
CORRELATION_METRICS = {"pearson", "spearman", "mcc"}  # from -1 to 1, and 0 where nothing is known
UNBOUNDED_METRICS = {"r2"}  # without a lowest score: errors may be any number of times those of the mean

METRICS_OF_TYPE = {name: known.metrics for name, known in TYPES.items()}
TARGET_OF_TYPE = {name: known.target for name, known in (TYPES | PROBE_ONLY).items()}
TEXTS_OF_TYPE = {name: known.texts for name, known in (TYPES | PROBE_ONLY).items()}
TYPE_LABELS = {name: known.in_print for name, known in (TYPES | PROBE_ONLY).items()}

METRIC_LABELS = {
    "accuracy": "accuracy",
    "f1": "F1",
    "f1_micro": "micro F1",
    "f1_macro": "macro F1",
    "subset_accuracy": "subset accuracy",
    "mean_average_precision": "mean average precision",
    "mcc": "MCC",
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "r2": "R²",
    "span_f1": "span F1",
    "edge_f1": "edge F1",
    "answer_f1": "answer F1",
    "exact_match": "exact match",
    "best_f1": "answer F1, best threshold",
    "best_exact": "exact match, best threshold",
}


def no_f1(target: str, labels: int) -> str:
    """Return why metric `f1` is not for a target. Args: the target's name, the number of its labels, other than 2."""
    return f"metric f1 is for two labels, and {target} has {labels}; take f1_macro"
