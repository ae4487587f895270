"""Small random encoders of Thaw's own kinds, in the form in which each is published; each with its catalogue entry."""

from pathlib import Path

import numpy as np

from tiny import KNOWN

WIDTH = 32
STATED = {"width": WIDTH, "cased": False, "objective": "none", "pretraining": ["none"]}


def vector_lines(words=KNOWN, width: int = WIDTH) -> list[str]:
    """Return a line for each word, as GloVe writes them."""
    draw = np.random.default_rng(1)
    return [f"{word} {' '.join(f'{x:.5f}' for x in draw.normal(size=width))}" for word in words]


def word_vectors(folder: Path) -> dict:
    """Write a file of word vectors and return its entry."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vectors.txt"
    path.write_text("\n".join(vector_lines([word.lower() for word in KNOWN])) + "\n")
    return {"kind": "word_vectors", "file": str(path), "layers": 0, **STATED}


OWN = {"word_vectors": word_vectors}
