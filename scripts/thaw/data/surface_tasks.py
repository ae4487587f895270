"""Labels of whole sentences that follow from their trees: how long, how deep, which tense, how many, in order or not.

In the manner of SentEval's probing tasks (Conneau et al. 2018, section 2): sentences of 5 to 28 words, written with
blanks between words; a sentence without a label has no row. What differs: classes are as frequent as they are, a deep
tree is mostly a long sentence, and a word may occur in several splits.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

from thaw.data.conll import Sentence, conllu, heads_of
from thaw.data.rows_table import find_position
from thaw.schema.corpora import FilesConfig

BINS = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))  # SentEval's
DEPTHS = (2, 6)  # shallower and deeper trees are put with these
FORM, UPOS, FEATS, RELATION = 1, 3, 5, 7


def read_surface(path: Path, source: FilesConfig, columns: dict[str, str | int]):
    """Yield (first line, {our column: value}) of the sentences that have all labels asked for.

    The columns are `text` and the names in LABELS. Where bigram_shift is asked for, the text of half of the sentences
    has two neighbouring words exchanged. Raises UserError for a head that is no word of its sentence.
    """
    names = ["text", *LABELS]
    wanted = {ours: names[find_position(name, names, str(path), ours)] for ours, name in columns.items()}
    for sentence in conllu(path, source.encoding):
        if not BINS[0][0] <= len(sentence.fields) <= BINS[-1][1]:
            continue
        tree = Tree(sentence, path)
        shift = shifted(tree) if "bigram_shift" in wanted.values() else None
        values = {name: LABELS[name](tree) for name in wanted.values() if name != "text"}
        if None not in values.values():
            words = [word[FORM] for word in sentence.fields]
            if shift is not None and values["bigram_shift"] == "inverted":
                words[shift : shift + 2] = reversed(words[shift : shift + 2])
            values["text"] = " ".join(words)
            yield sentence.lines[0], {ours: values[name] for ours, name in wanted.items()}


class Tree:
    """A sentence with the position of each word's head, from 0; -1 above the root."""

    def __init__(self, sentence: Sentence, path: Path):
        """Read the heads of a sentence. Raises UserError where they are no tree's."""
        self.words, self.heads = sentence.fields, heads_of(sentence, path)
        self.root = self.heads.index(-1)

    def depth(self, word: int) -> int:
        """Return how many arcs are between a word and the root."""
        steps = 0
        while self.heads[word] >= 0:
            word, steps = self.heads[word], steps + 1
        return steps

    def below_root(self, *relations: str) -> list[int]:
        """Return the words that hang on the root by a relation or a subtype of it."""
        children = (word for word, head in enumerate(self.heads) if head == self.root)
        return [word for word in children if self.words[word][RELATION].partition(":")[0] in relations]

    def feature(self, word: int, name: str) -> str | None:
        """Return a morphological feature of a word."""
        return dict(pair.split("=", 1) for pair in self.words[word][FEATS].split("|") if "=" in pair).get(name)


def length(tree: Tree) -> str:
    """Return the bin of the sentence's length in words."""
    return next(f"{low}-{high}" for low, high in BINS if len(tree.words) <= high)


def depth(tree: Tree) -> str:
    """Return the number of arcs from the root to the deepest word, 2 or fewer as 2, 6 or more as 6."""
    deepest = max(tree.depth(word) for word in range(len(tree.words)))
    return str(min(max(deepest, DEPTHS[0]), DEPTHS[1]))


def tense(tree: Tree) -> str | None:
    """Return the tense of the main clause: of its finite verb, the root or an auxiliary or copula below it."""
    finite = (w for w in [tree.root, *tree.below_root("aux", "cop")] if tree.feature(w, "VerbForm") == "Fin")
    first = next(finite, None)
    tense = tree.feature(first, "Tense") if first is not None else None
    return tense if tense in ("Past", "Pres") else None


def _number(tree: Tree, relation: str) -> str | None:
    children = tree.below_root(relation)
    if len(children) != 1 or tree.words[children[0]][UPOS] != "NOUN":
        return None
    number = tree.feature(children[0], "Number")
    return number if number in ("Sing", "Plur") else None


def subject_number(tree: Tree) -> str | None:
    """Return the number of the main clause's subject where that is a noun."""
    return _number(tree, "nsubj")


def object_number(tree: Tree) -> str | None:
    """Return the number of the main clause's direct object where that is a noun."""
    return _number(tree, "obj")


def bigram_shift(tree: Tree) -> str | None:
    """Return whether two words were exchanged: in half of the sentences, chosen by a checksum of their words."""
    if shifted(tree) is None:
        return None
    return "inverted" if _checksum(tree) % 2 else "original"


def shifted(tree: Tree) -> int | None:
    """Return the position of the first of two neighbouring words that may be exchanged, chosen by a checksum.

    They differ, neither is punctuation nor the first of the sentence. None where there are no such words.
    """
    words = [word[FORM].lower() for word in tree.words]
    plain = [word[UPOS] != "PUNCT" for word in tree.words]
    fit = [i for i in range(1, len(words) - 1) if words[i] != words[i + 1] and plain[i] and plain[i + 1]]
    return fit[_checksum(tree) // 2 % len(fit)] if fit else None


def _checksum(tree: Tree) -> int:
    text = " ".join(word[FORM] for word in tree.words)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


# By name of the column: the label of a tree, or None.
LABELS: dict[str, Callable[[Tree], str | None]] = {
    "length": length,
    "depth": depth,
    "tense": tense,
    "subject_number": subject_number,
    "object_number": object_number,
    "bigram_shift": bigram_shift,
}
