"""ELMo's values from its published files, by the formulas of its authors' code in NumPy, one sentence at a time.

The published outputs (tests/test_elmo.py) are not everywhere; these files are random, in the same format. T tokens, p
width of one direction, c cells.
"""

import h5py
import numpy as np
import torch

from head_formulas import sigmoid
from test_elmo import ENTRY, characters
from thaw.encoders.registry import load_tokenizer
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.papers.elmo import WARM_UP, assemble
from thaw.schema.encoder import EncoderConfig
from tiny_own import ELMO, OWN

SENTENCES = [["the", "cat", "sleeps"], ["Straße", "x" * 60, "a", "house", "."], ["sings"]]
CLIP, LAYERS, WIDTH, CELLS = 3, 2, 16, 24


def spelt(token: str | int) -> list[int]:
    """Return the 50 characters of a word, or of a mark: between 258 and 259, the rest 260 (bilm-tf, data.py)."""
    inner = [token] if isinstance(token, int) else list(token.encode())[:48]
    return ([258, *inner, 259] + [260] * 50)[:50]


def word_vector(file, token: str | int):
    """Return a token's vector [p]: convolutions, the largest of each, ReLU, two highway layers, a projection."""
    letters = file["char_embed"][...].astype(float)[spelt(token)]
    made = []
    for number, (reach, _) in enumerate(ELMO["char_cnn"]["filters"]):
        kernel, bias = file[f"CNN/W_cnn_{number}"][0].astype(float), file[f"CNN/b_cnn_{number}"][...]
        windows = [letters[start : start + reach] for start in range(50 - reach + 1)]
        values = [sum(window[tap] @ kernel[tap] for tap in range(reach)) + bias for window in windows]
        made.append(np.maximum(np.max(values, 0), 0))
    x = np.concatenate(made)
    for number in range(2):
        names = (f"CNN_high_{number}/{part}" for part in ("W_carry", "b_carry", "W_transform", "b_transform"))
        carry, carry_bias, transform, transform_bias = (file[name][...] for name in names)
        gate = sigmoid(x @ carry + carry_bias)
        x = gate * np.maximum(x @ transform + transform_bias, 0) + (1 - gate) * x
    return x @ file["CNN_proj/W_proj"][...] + file["CNN_proj/b_proj"][...]


def read(file, way: int, number: int, tokens, state):
    """Return the outputs [T, p] of a layer's direction and its last state; cells and outputs are clipped."""
    cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
    matrix, bias, projection = (file[f"{cell}/{name}"][...].astype(float) for name in ("W_0", "B", "W_P_0"))
    h, c = state
    outputs = []
    for x in tokens[::-1] if way else tokens:
        i, g, f, o = np.split(np.concatenate([x, h]) @ matrix + bias, 4)
        c = np.clip(sigmoid(f + 1) * c + sigmoid(i) * np.tanh(g), -CLIP, CLIP)
        h = np.clip((sigmoid(o) * np.tanh(c)) @ projection, -CLIP, CLIP)
        outputs.append(h)
    return np.array(outputs[::-1] if way else outputs), (h, c)


def boundaries(file, words: list[str], states: dict) -> tuple[list, dict]:
    """Return all boundaries [T, 2p] of a sentence between its marks, and the states that it leaves."""
    vectors = np.array([word_vector(file, token) for token in (256, *words, 257)])
    halves, left, made = [vectors, vectors], {}, [np.concatenate([vectors, vectors], 1)]
    for number in range(LAYERS):
        for way in range(2):
            output, left[way, number] = read(file, way, number, halves[way], states[way, number])
            halves[way] = output + halves[way] if number else output  # a skip connection above the first layer
        made.append(np.concatenate(halves, 1))
    return made, left


def test_every_boundary_is_what_the_published_files_say(tmp_path):
    """The LSTMs begin where some sentences, read one after the other from 0, have left them."""
    OWN["elmo"](tmp_path / "source")
    assemble(tmp_path / "source", tmp_path, EncoderConfig.model_validate(ENTRY))
    encoder, tokenizer = Encoder.load(tmp_path), load_tokenizer(tmp_path, words=True)
    ids, mask = characters(tokenizer, SENTENCES)
    given = encoder.boundaries(Batch(ids, mask, None, None, torch.arange(len(ids))))
    with h5py.File(tmp_path / "source/tiny_weights.hdf5") as file:
        states = {(way, n): (np.zeros(WIDTH), np.zeros(CELLS)) for way in range(2) for n in range(LAYERS)}
        for sentence in WARM_UP:
            states = boundaries(file, sentence.split(), states)[1]
        for row, words in enumerate(SENTENCES):
            expected, _ = boundaries(file, words, states)
            for boundary, values in enumerate(expected):
                np.testing.assert_allclose(given[boundary][row][mask[row]], values, rtol=1e-5, atol=1e-5)
