"""Baselines: what can be predicted without an encoder. They show what is left for one to win.

`majority` predicts the most frequent class or tag of the training rows, their mean score, or of sets of labels the
labels that more than half of the rows have. `bag_of_words` is a linear model on words, without their order: logistic
regression (one for each label of a set) or ridge. Its strength is chosen by folds where linear probes have them, else
by validation. For pairs of texts it reads both, their product and their difference; for tags each word with its
neighbours. Where a question has an answer in a context, `majority` gives none, and `bag_of_words` compares words near
the question's.

N rows or words, F features.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from thaw.data.corpus import Corpus, joint_folds
from thaw.declarations.task_types import EXTRACTION_TYPES, SCORE_TYPES, TARGET_OF_TYPE
from thaw.evaluation.answers import Answer
from thaw.evaluation.metrics import score
from thaw.evaluation.result_files import Predictions, decided, joined, select_rows
from thaw.evaluation.target_kinds import target_of

WORD = re.compile(r"\w+")
LENGTHS, REACHES = (1, 2, 3, 4), (5, 10, 20)
SETTINGS = [dict(zip(("words", "reach"), point, strict=True)) for point in product(LENGTHS, REACHES)]


class NearbyWords:
    """How rare words are among some contexts."""

    def __init__(self, contexts: list[str]):
        """Count the contexts that have each word; equal ones count once."""
        known = set(contexts)
        self.count = len(known)
        self.holding = Counter(word for context in known for word in set(_words(context)))

    def weight(self, word: str) -> float:
        return float(np.log(1 + self.count / (1 + self.holding[word])))

    def answer(self, question: str, context: str, words: int, reach: int) -> Answer:
        """Return the first of the best runs of words, as the context writes it; no run is no answer."""
        places = [match.span() for match in WORD.finditer(context)]
        asked, there = dict.fromkeys(_words(question)), _words(context)
        starts = len(there) - words + 1
        if starts < 1 or not asked:
            return Answer("", np.inf)
        weights = np.array([self.weight(word) for word in asked])
        equal = np.array([[word == other for other in there] for word in asked])
        free = self._within(equal, starts, 0, words) == 0
        shares = (weights @ self._within(equal, starts, reach, words + reach)) / weights.sum()
        scores = np.where(free.all(0), shares, -1.0)
        best = int(scores.argmax())
        return Answer(context[places[best][0] : places[best + words - 1][1]], -float(scores[best]))

    @staticmethod
    def _within(equal: np.ndarray, starts: int, before: int, after: int) -> np.ndarray:
        """Return which words [Q] occur within so many positions of each start, 0 or 1, [Q, starts]."""
        summed = np.concatenate([np.zeros((len(equal), 1), int), equal.cumsum(1)], axis=1)
        at = np.arange(starts)
        low, high = np.clip(at - before, 0, None), np.clip(at + after, None, equal.shape[1])
        return (summed[:, high] > summed[:, low]).astype(int)


def _words(text: str) -> list[str]:
    return [match.group().lower() for match in WORD.finditer(text)]


STRENGTHS = (0.1, 1.0, 10.0)  # of the bag of words: scikit-learn's C, and 1 / alpha for scores
FOLDS = 5  # as linear probes have
EDGE = "</s>"  # the neighbour of a sentence's first and last word


@dataclass
class Baseline:
    """The result of a baseline: its predictions by split (train: the scored rows), and what was chosen.

    folds: what metrics.json has of cross-validation, empty without it; left_out: by split the predictions for rows of
    train and validation by the fit that did not see the row.
    """

    predictions: dict[str, Predictions]
    chosen: dict
    folds: dict = field(default_factory=dict)
    left_out: dict[str, Predictions] = field(default_factory=dict)


def fit_baseline(
    name: str, task: dict, corpus: Corpus, rows: np.ndarray, wanted: dict[str, np.ndarray], draw: int = 1
) -> Baseline:
    """Fit a baseline to some training rows and predict others.

    Args: its name, one of thaw.schema.experiment.BASELINES; a whole task; rows of train that may be learnt from; the
    rows that are wanted, by split; the draw of the subset, by which folds are drawn.
    """
    if name == "majority":
        return _majority(task, corpus, rows, wanted)
    if task["type"] in EXTRACTION_TYPES:
        return _nearby_words(task, corpus, rows, wanted)
    return _bag_of_words(task, corpus, rows, wanted, draw)


def _majority(task: dict, corpus: Corpus, rows: np.ndarray, wanted: dict) -> Baseline:
    """Predict the most frequent target, or the mean."""
    target = target_of(task)
    constant = target.constant(select_rows(corpus.targets(task, "train"), rows))
    predictions = {}
    for split, asked in wanted.items():
        gold = select_rows(corpus.targets(task, split), asked)
        predictions[split] = Predictions(asked, target.repeated(constant, gold))
    return Baseline(predictions, {})


def _bag_of_words(task: dict, corpus: Corpus, rows: np.ndarray, wanted: dict, draw: int) -> Baseline:
    """Fit one linear model for each strength and predict with the best, over folds or on validation.

    Ties go to the strongest penalty. A subset of a single class, or set of labels, leaves nothing to fit: its
    prediction is the majority's.
    """
    read = _word_features(corpus, rows) if corpus.words else _text_features(corpus, {"train": rows})
    gold = select_rows(corpus.targets(task, "train"), rows)
    targets = np.concatenate([np.asarray(tags) for tags in gold]) if corpus.words else gold
    if task["type"] not in SCORE_TYPES and len(np.unique(targets, axis=0)) == 1:
        return _majority(task, corpus, rows, wanted)
    features, validation = read("train", rows), task["validation"]
    labels, parts = corpus.labels(task["target"]), {"train": rows, validation: wanted[validation]}
    drawn = joint_folds(corpus, task, parts, FOLDS, draw)
    fold = drawn[2] if drawn else None
    if fold is not None and task["type"] not in SCORE_TYPES:  # a fit of one class alone has nothing to learn
        every = _targets(task, corpus, parts)
        fits = (every[fold != one] for one in range(int(fold.max()) + 1))
        fold = fold if all(len(np.unique(seen, axis=0)) > 1 for seen in fits) else None
    models = [_linear_model(task, strength).fit(features, targets) for strength in STRENGTHS]
    tried: list
    if fold is None:
        judged = _targets(task, corpus, {validation: wanted[validation]})
        tried = [_predict(model, read, corpus, validation, wanted[validation]).values for model in models]
    else:
        judged, tried = _targets(task, corpus, parts), _out_of_fold(task, corpus, parts, fold)
    scores = [score(task, judged, values, labels) for values in tried]
    values = [one[task["metrics"][0]] for one in scores]
    best = max(range(len(STRENGTHS)), key=lambda place: (-np.inf if values[place] is None else values[place], -place))
    predictions = {split: _predict(models[best], read, corpus, split, asked) for split, asked in wanted.items()}
    made = Baseline(predictions, {"strength": STRENGTHS[best]})
    if fold is not None:
        number = int(fold.max()) + 1
        fitted = round(len(fold) * (number - 1) / number)
        made.folds = {"number": number, "rows": len(fold), "fitted": fitted, "scores": scores[best]}
        ends = np.cumsum([len(part) for part in parts.values()])[:-1]
        values_of = dict(zip(parts, np.split(tried[best], ends), strict=True))
        made.left_out = {split: Predictions(parts[split], mine) for split, mine in values_of.items()}
    return made


def _targets(task: dict, corpus: Corpus, parts: dict[str, np.ndarray]):
    """Return the targets of some rows by split, one split after the other."""
    return joined([select_rows(corpus.targets(task, split), rows) for split, rows in parts.items()])


def _out_of_fold(task: dict, corpus: Corpus, parts: dict[str, np.ndarray], fold: np.ndarray) -> list[np.ndarray]:
    """Return for each strength what is predicted for the rows of all splits by the fit that left their fold out."""
    from scipy.sparse import vstack

    made: list = [None] * len(STRENGTHS)
    ends = np.cumsum([len(rows) for rows in parts.values()])[:-1]
    mine = dict(zip(parts, np.split(fold, ends), strict=True))
    for one in range(fold.max() + 1):
        seen = {split: rows[mine[split] != one] for split, rows in parts.items()}
        left = {split: rows[mine[split] == one] for split, rows in parts.items()}
        read = _text_features(corpus, seen)
        features, others = (vstack([read(*part) for part in of.items() if len(part[1])]) for of in (seen, left))
        targets = _targets(task, corpus, seen)
        for place, strength in enumerate(STRENGTHS):
            values = _linear_model(task, strength).fit(features, targets).predict(others)
            if made[place] is None:
                made[place] = np.empty((len(fold), *values.shape[1:]), dtype=values.dtype)
            made[place][fold == one] = values
    return made


def _linear_model(task: dict, strength: float):
    from sklearn.linear_model import LogisticRegression, Ridge

    if TARGET_OF_TYPE[task["type"]] == "label_set":
        return OneForEachLabel(strength)
    if task["type"] in SCORE_TYPES:
        return Ridge(alpha=1 / strength)
    return LogisticRegression(C=strength, max_iter=1000, class_weight=task.get("class_weight"))


def _nearby_words(task: dict, corpus: Corpus, rows: np.ndarray, wanted: dict) -> Baseline:
    """Answer with the settings, and above the no-answer threshold, that are best on validation."""
    asked, context = corpus.texts
    known, validation = NearbyWords(list(corpus.frame("train")[context].iloc[rows])), task["validation"]

    def answered(split: str, settings: dict) -> Predictions:
        frame = corpus.frame(split).iloc[wanted[split]]
        pairs = zip(frame[asked], frame[context], strict=True)
        return Predictions(wanted[split], [known.answer(*pair, **settings) for pair in pairs])

    judged, tried = select_rows(corpus.targets(task, validation), wanted[validation]), []
    for settings in SETTINGS:
        predicted = answered(validation, settings)
        decide, note = decided(task, corpus, {validation: predicted}, validation)
        value = score(task, judged, decide(predicted).values)[task["metrics"][0]] or 0.0
        tried.append((value, settings, decide, note))
    _, settings, decide, note = max(tried, key=lambda one: one[0])
    return Baseline({split: decide(answered(split, settings)) for split in wanted}, settings | note)


class OneForEachLabel:
    """A logistic regression for each label of a set; what no training row, or every one, has is predicted so."""

    def __init__(self, strength: float):
        """Keep scikit-learn's C."""
        self.strength = strength

    def fit(self, features, targets: np.ndarray) -> "OneForEachLabel":
        from sklearn.linear_model import LogisticRegression

        self.constants, varies = targets.mean(0), (targets != targets[0]).any(0)
        self.models = {
            label: LogisticRegression(C=self.strength, max_iter=1000).fit(features, targets[:, label])
            for label in np.flatnonzero(varies)
        }
        return self

    def predict(self, features) -> np.ndarray:
        shares = np.tile(self.constants, (features.shape[0], 1))
        for label, model in self.models.items():
            shares[:, label] = model.predict_proba(features)[:, 1]
        return shares


def _predict(model, read: Callable, corpus: Corpus, split: str, rows: np.ndarray) -> Predictions:
    """Predict some rows of a split; tags are cut into sentences again."""
    predicted = model.predict(read(split, rows))
    if not corpus.words:
        return Predictions(rows, predicted)
    ends = np.cumsum([len(words) for words in corpus.frame(split)[corpus.words].iloc[rows]])
    return Predictions(rows, [part.tolist() for part in np.split(predicted, ends[:-1])])


def _text_features(corpus: Corpus, seen: dict[str, np.ndarray]) -> Callable:
    """Return a function (split, rows) -> sparse [N, F]: tf-idf of words of the rows that are seen, by split.

    For pairs of texts, F has four blocks: a, b, a * b and |a - b|.
    """
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer

    frames = [corpus.frame(split).iloc[rows] for split, rows in seen.items()]
    vectorizer = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
    vectorizer.fit([text for column in corpus.texts for frame in frames for text in frame[column]])

    def features(split: str, asked: np.ndarray):
        frame = corpus.frame(split).iloc[asked]
        blocks = [vectorizer.transform(frame[column]) for column in corpus.texts]
        if len(blocks) == 2:
            a, b = blocks
            blocks = [a, b, a.multiply(b), abs(a - b)]
        return hstack(blocks).tocsr()

    return features


def _word_features(corpus: Corpus, rows: np.ndarray) -> Callable:
    """Return a function (split, rows) -> sparse [N, F]: each word with its neighbours to the left and right."""
    from sklearn.feature_extraction import DictVectorizer

    def windows(split: str, asked: np.ndarray) -> list[dict[str, str]]:
        features = []
        for sentence in corpus.frame(split)[corpus.words].iloc[asked]:
            words = [EDGE, *(str(word).lower() for word in sentence), EDGE]
            for left, word, right in zip(words, words[1:], words[2:], strict=False):
                features.append({"word": word, "left": left, "right": right})
        return features

    vectorizer = DictVectorizer().fit(windows("train", rows))
    return lambda split, asked: vectorizer.transform(windows(split, asked))
