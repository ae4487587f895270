"""The types of task: what each is scored by, and which target it has."""

TASK_TYPES = ("classification", "pair_classification", "regression", "pair_regression", "tagging", "spans")

WORD_TYPES = ("tagging", "spans")  # a target for each word
PAIR_TYPES = ("pair_classification", "pair_regression")
TEXT_TYPES = tuple(name for name in TASK_TYPES if name not in WORD_TYPES)  # one text, or a pair
SCORE_TYPES = ("regression", "pair_regression")  # a number instead of labels

PROBED_TYPES = ("edges",)  # no head serves them: they are for probes alone
TYPES_ON_WORDS = (*WORD_TYPES, *PROBED_TYPES)  # of corpora with words instead of texts

NO_TAG = -1  # prediction for a word that the model never saw: it counts as wrong

METRICS = ("accuracy", "f1", "f1_macro", "mcc", "pearson", "spearman", "span_f1")

METRICS_OF_TYPE = {
    "classification": ("accuracy", "f1", "f1_macro", "mcc"),
    "pair_classification": ("accuracy", "f1", "f1_macro", "mcc"),
    "regression": ("pearson", "spearman"),
    "pair_regression": ("pearson", "spearman"),
    "tagging": ("accuracy",),
    "spans": ("span_f1", "accuracy"),
}

TARGET_OF_TYPE = {
    "classification": "label",
    "pair_classification": "label",
    "regression": "score",
    "pair_regression": "score",
    "tagging": "tags",
    "spans": "tags",
    "edges": "edges",
}

EDGE_METRICS = ("edge_f1",)

METRIC_LABELS = {
    "accuracy": "accuracy",
    "f1": "F1",
    "f1_macro": "macro F1",
    "mcc": "MCC",
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "span_f1": "span F1",
    "edge_f1": "edge F1",
    "uuas": "UUAS",
    "dspr": "DSpr, distances",
    "nspr": "NSpr, depths",
    "root": "root accuracy",
}
