"""The random choices of one split: a seeded generator, and the part of each word list that the split may use."""

import random


def part(words: list, split: str) -> list:
    """Return a split's share of a word list: of each three words one is for all, one for train, one for test.

    Validation writes with the words of train, so that test alone asks about words never trained on.
    """
    unused = 1 if split == "test" else 2
    return [word for position, word in enumerate(words) if position % 3 != unused]


class SentenceSampler:
    """Seeded choices for one split; `rng` is shared by the splits of a corpus, so their order matters."""

    def __init__(self, rng: random.Random, split: str):
        self.rng = rng
        self.split = split

    def word(self, words: list):
        """Return one entry of the split's part of a word list."""
        return self.rng.choice(part(words, self.split))

    def words(self, words: list, count: int) -> list:
        """Return several different entries of the split's part of a word list."""
        return self.rng.sample(part(words, self.split), count)

    def form(self, forms):
        """Return one of several forms (templates, function words), which all splits share."""
        return self.rng.choice(forms)

    def bernoulli(self, probability: float = 0.5) -> bool:
        """Return True with the given probability."""
        return self.rng.random() < probability

    def shuffled(self, items: list) -> list:
        """Return the items in a new random order."""
        return self.rng.sample(items, len(items))
