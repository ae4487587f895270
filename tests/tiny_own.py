"""Small random encoders of Thaw's own kinds, in the form in which each is published; each with its catalogue entry."""

import json
from itertools import product
from pathlib import Path

import numpy as np

from tiny import KNOWN, tiny_encoder

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


ELMO = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 16,
        "cell_clip": 3,
        "proj_clip": 3,
        "n_layers": 2,
        "dim": 24,
    },
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 6},
        "filters": [[1, 8], [2, 8], [3, 16]],
        "max_characters_per_token": 50,
        "n_characters": 262,
        "n_highway": 2,
    },
}


def elmo(folder: Path) -> dict:
    """Write options.json and weights as Peters et al. published theirs, and return the entry."""
    import h5py

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "options.json").write_text(json.dumps(ELMO))
    draw, width, cells, count = np.random.default_rng(2), 16, 24, 32
    shapes = {"char_embed": (261, 6), "CNN_proj/W_proj": (count, width), "CNN_proj/b_proj": (width,)}
    for number, (reach, filters) in enumerate(ELMO["char_cnn"]["filters"]):
        shapes |= {f"CNN/W_cnn_{number}": (1, reach, 6, filters), f"CNN/b_cnn_{number}": (filters,)}
    for number, part in product(range(2), ("carry", "transform")):
        shapes |= {f"CNN_high_{number}/W_{part}": (count, count), f"CNN_high_{number}/b_{part}": (count,)}
    for way, number in product(range(2), range(2)):
        cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
        shapes |= {f"{cell}/W_0": (2 * width, 4 * cells), f"{cell}/B": (4 * cells,), f"{cell}/W_P_0": (cells, width)}
    with h5py.File(folder / "tiny_weights.hdf5", "w") as file:
        for name, shape in shapes.items():
            file[name] = draw.normal(scale=0.4, size=shape).astype(np.float32)
    return {"kind": "elmo", "folder": str(folder), "layers": 2, **STATED}


def sentence(folder: Path, **pooling) -> dict:
    """Write a folder as sentence-transformers do: a small BERT, mean pooling unless told otherwise, a norm."""
    tiny_encoder("bert", folder)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling or {"pooling_mode_mean_tokens": True}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 16, "do_lower_case": False}))
    return {"kind": "sentence", "folder": str(folder), "layers": 0, **STATED}


OWN = {"word_vectors": word_vectors, "elmo": elmo, "sentence": sentence}
