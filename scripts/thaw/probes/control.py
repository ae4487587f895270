"""Control tasks: how much of a probe's score is the probe's own memory (Hewitt and Liang 2019).

Each word type has a label that is drawn at random from the labels of train, so that only memory can predict it.
Selectivity is the accuracy on the task minus that on its control. A text is hardly ever in two splits, so that texts
are scored on the rows that were fitted: there selectivity is how much more the layer gives than memory alone.
"""

import numpy as np

from thaw.core.runtime import derive_seed
from thaw.evaluation.metrics import accuracy
from thaw.probes.reading import Reading, Split
from thaw.training.head_candidates import best_strength


def control(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each layer and strength, and for each layer what the chosen strength scores by split."""
    fitted, held = reading.divided(seed)
    drawn = ControlLabels(reading, seed)
    names = reading.scored if reading.words else ["train"]
    splits = {name: reading.splits[name] if reading.words else fitted for name in names}
    rows, layer_scores = [], []
    pairs = zip(reading.fit(fitted), reading.fit(fitted, drawn.gold(fitted, "train")), strict=True)
    for layer, (real, random) in enumerate(pairs):
        choice = [reading.main(held, layer, solution) for solution in real]
        best = best_strength(choice, reading.entry.l2)
        for index, (solution, memory) in enumerate(zip(real, random, strict=True)):
            scores = {name: _accuracies(splits[name], name, layer, solution, memory, drawn) for name in names}
            common = {"layer": reading.numbers[layer], "seed": seed, "l2": solution.l2}
            strength = {"chosen": index == best, "choice": choice[index]}
            rows.append(common | strength | {f"{s}_{m}": value for s in scores for m, value in scores[s].items()})
            if index == best:
                layer_scores.append(common | {"scores": scores})
    return rows, layer_scores


class ControlLabels:
    """The random labels of words or texts, which are those of the control task."""

    def __init__(self, reading: Reading, seed: int):
        """Draw a label for each word (or text) of all splits, with the frequencies of the labels in train."""
        self.reading, self.frames = reading, {name: reading.corpus.frame(name) for name in reading.splits}
        train = reading.splits["train"].gold
        labels = np.concatenate([np.asarray(tags, dtype=np.int64) for tags in train]) if reading.words else train
        types = sorted({unit for name in self.frames for row in self._units(name) for unit in row})
        random = np.random.default_rng(derive_seed(seed, "control"))
        self.label = dict(zip(types, random.choice(labels, len(types)).tolist(), strict=True))

    def gold(self, split: Split, name: str) -> list | np.ndarray:
        """Return the drawn labels of some rows of a split, as the task's targets are encoded."""
        units = self._units(name)
        labels = [[self.label[unit] for unit in units[row]] for row in split.rows]
        return labels if self.reading.words else np.array([row[0] for row in labels])

    def _units(self, name: str) -> list[list]:
        """Return the words of each row of a split; of texts the one text, or the pair of them."""
        corpus, frame = self.reading.corpus, self.frames[name]
        if self.reading.words:
            return [list(words) for words in frame[corpus.words]]
        return [[texts] for texts in zip(*(frame[column] for column in corpus.texts), strict=True)]


def _accuracies(split: Split, name: str, layer: int, solution, memory, drawn: ControlLabels) -> dict[str, float]:
    """Return the accuracies on the task and on its control, and their difference, over words or texts."""
    vectors = split.layers[layer].values
    task = accuracy(split.targets(), solution.logits(vectors).argmax(1).cpu().numpy())
    control_task = accuracy(split.targets(drawn.gold(split, name)), memory.logits(vectors).argmax(1).cpu().numpy())
    return {"selectivity": task - control_task, "accuracy": task, "control": control_task}
