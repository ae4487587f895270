"""The flags of a run in words: those of its metrics.json, and those that are set when results are collected."""

FLAG_LABELS = {
    "one_class": "predicts a single class, or one set of labels, on validation",
    "diverged": "loss became NaN or inf",
    "undefined": "a score is undefined",
    "below_majority": "scores below a constant prediction (the majority class; of numbers below 0) on validation",
    "test_below_majority": "scores below a constant prediction (the majority class; of numbers below 0) on test by "
    "more than two standard errors",
    "validation_flat": "identical validation score after every epoch",
    "rate_stuck": "learning rate stayed constant although its schedule varies it",
    "same_seeds": "identical losses to another seed",
    "memorised": "memorises the training set: train score at least 0.99, validation barely above the majority class",
    "strength_at_edge": "chose the strongest L2 penalty that was tried: a stronger one may score higher",
    "underfit": "undertrained: more than a point below the linear probe on its training rows or, with less than 99 "
    "there, improving to the end",
    "all_seen": "evaluated on a split whose rows all share a sentence with train",
    "label_unknown": "the test split has a label that train lacks",
    "not_deterministic": "computed on a GPU with non-deterministic kernels: a rerun differs in the last digits",
}


def flag_label(flag: str) -> str:
    return FLAG_LABELS.get(flag, flag.replace("_", " "))
