"""Values of whole heads, compared with the papers' formulas as `head_formulas` has them.

B examples, S sequences (2B where the texts of pairs are read separately), T tokens, W words, d width, C outputs.
"""

from itertools import product

import numpy as np
import pytest
import torch

import head_formulas as formulas
from thaw.features.batch import Batch
from thaw.heads.base import word_targets
from thaw.heads.registry import build
from thaw.schema.head import HeadConfig

WIDTH, OUTPUTS, EXTRA = 6, 3, 2
TEXTS = [5, 3, 1]  # tokens of each text, between two special ones
PAIRS = [(3, 4), (1, 2), (4, 1)]
PIECES = [[1, 2, -1, 5, -1], [2, -1], [1, -1, 2]]  # the first piece of each word; -1 where it has none


def made(kind: str, task_type: str, separate: bool = False, pooling: str | None = None, **options):
    """Return a head in eval mode whose parameters are all random, and these by name in float64."""
    pooled = {"pooling": pooling, "separate_pooling": pooling} if pooling else {}
    entry = HeadConfig(kind=kind, options=options, **pooled)
    torch.manual_seed(5)
    head = build(entry, WIDTH, OUTPUTS, task_type, separate).eval()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_(std=0.5)
    return head, {name: tensor.double().numpy() for name, tensor in head.state_dict().items()}


def batch_of(
    owners: list[list[int]], pieces=None, examples: int | None = None, extra: int = EXTRA
) -> tuple[torch.Tensor, Batch]:
    """Return random states and the batch of sequences with so many tokens, each of text 1, 2 or 0, no text.

    What is padding, more than the longest needs, holds large numbers.
    """
    longest = max(map(len, owners)) + extra
    texts = torch.tensor([row + [0] * (longest - len(row)) for row in owners], dtype=torch.int8)
    mask = torch.arange(longest) < torch.tensor([[len(row)] for row in owners])
    states = torch.randn(len(owners), longest, WIDTH, generator=torch.Generator().manual_seed(3))
    first = None
    if pieces is not None:
        most = max(map(len, pieces)) + 1
        first = torch.tensor([row + [-1] * (most - len(row)) for row in pieces])
    rows = torch.arange(examples or len(owners))
    return states.masked_fill(~mask.unsqueeze(2), 1e3), Batch(mask.long(), mask, None, first, rows, texts)


def texts_and_batch(task_type: str, separate: bool, extra: int = EXTRA) -> tuple[list, torch.Tensor, Batch]:
    """Return for each example its texts' states without special tokens, all states, and the batch."""
    if task_type == "classification":
        states, batch = batch_of([[0] + [1] * n + [0] for n in TEXTS], extra=extra)
    elif separate:
        owners = [[0] + [number] * n + [0] for pair in PAIRS for number, n in enumerate(pair, 1)]
        states, batch = batch_of(owners, examples=len(PAIRS), extra=extra)
    else:
        states, batch = batch_of([[0] + [1] * n + [0] + [2] * m + [0] for n, m in PAIRS], extra=extra)
    step = 2 if separate else 1
    chosen = []
    for example in range(len(batch)):
        rows = slice(step * example, step * example + step)
        known, owner = states[rows].double(), batch.texts[rows]
        chosen.append([known[owner == number].numpy() for number in (1, 2) if (owner == number).any()])
    return chosen, states, batch


def agree(given: torch.Tensor, expected) -> None:
    """Check numbers of a head in float32 against those of its formula, which differ from each other."""
    expected = np.asarray(expected)
    assert expected.shape == tuple(given.shape) and expected.std(0).min() > 1e-3
    np.testing.assert_allclose(given.detach().numpy(), expected, rtol=1e-5, atol=5e-6)


READINGS = [("pair_classification", False), ("pair_classification", True)]
ON_TEXTS = {
    "bcn": (formulas.bcn, {"size": 4, "pool": 3}, [("classification", False), *READINGS]),
    "esim": (formulas.esim, {"size": 4}, READINGS),
    "bi_attention": (formulas.bi_attention, {}, READINGS),
    "bimpm": (formulas.bimpm, {"size": 4, "perspectives": 3}, READINGS),
    "bimpm_no_lstm": (formulas.bimpm_no_lstm, {"size": 4, "perspectives": 3}, READINGS),
    "sim_transformer": (
        formulas.sim_transformer,
        {"size": 8, "perspectives": 3, "layers": 2, "heads": 2},
        READINGS,
    ),
}
PASSED_ON = {"pool", "layers", "heads"}  # options that shapes of parameters do not show


@pytest.mark.parametrize(
    "kind, task_type, separate", [(kind, *case) for kind, (_, _, cases) in ON_TEXTS.items() for case in cases]
)
def test_heads_on_texts_compute_their_papers_formula(kind, task_type, separate):
    formula, options, _ = ON_TEXTS[kind]
    head, p = made(kind, task_type, separate, **options)
    texts, states, batch = texts_and_batch(task_type, separate)
    passed = {name: value for name, value in options.items() if name in PASSED_ON}
    expected = [formula(p, each, **passed) for each in texts]
    for gradients in (False, True):  # torch's transformer has another path without gradients
        with torch.set_grad_enabled(gradients):
            agree(head(states, batch), expected)


@pytest.mark.parametrize("task_type", ["classification", "pair_classification"])
def test_a_third_maxout_layer_may_be_the_output(task_type):
    head, p = made("bcn", task_type, size=4, pool=3, output="maxout")
    assert p["output.functions.weight"].shape == (3 * OUTPUTS, 8), "else the formula has a matrix there"
    texts, states, batch = texts_and_batch(task_type, False)
    with torch.no_grad():
        agree(head(states, batch), [formulas.bcn(p, each, pool=3) for each in texts])


def test_a_maxout_output_starts_like_a_matrix():
    entry = HeadConfig(kind="bcn", options={"size": 4, "pool": 3, "output": "maxout"})
    head = build(entry, WIDTH, 1, "regression").eval()
    functions = head.output.functions
    assert functions.weight.shape == (3, 8) and functions.bias.abs().max() == 0
    assert 0 < functions.weight.std() < 0.05 and functions.weight.abs().max() < 0.1
    head.init_from_targets([3.0, 5.0])
    assert functions.bias.tolist() == [4.0] * 3
    assert head.logits(torch.zeros(2, 8)).tolist() == [4.0, 4.0]


def test_dropout_of_esim_may_leave_out_the_same_values_of_all_tokens():
    """Gal and Ghahramani 2016: one mask a text, of which what is kept is scaled."""
    entry = HeadConfig(kind="esim", options={"size": 4, "masks": "text"}, dropout=0.2)
    head = build(entry, WIDTH, OUTPUTS, "pair_classification").train()
    torch.manual_seed(1)
    masks = head._dropped(torch.ones(200, 7, WIDTH))
    assert set(masks.flatten().tolist()) == {0.0, 1.25} and abs(masks.mean() - 1) < 0.1
    assert torch.equal(masks, masks[:, :1].expand_as(masks)) and len({tuple(row) for row in masks[:, 0].tolist()}) > 40
    assert torch.equal(head.eval()._dropped(torch.ones(2, 7, WIDTH)), torch.ones(2, 7, WIDTH))


@pytest.mark.parametrize("separate", [False, True])
def test_dropout_of_esim_by_text_is_below_both_bilstms(separate, monkeypatch):
    """As AllenNLP has it, on the texts and on what is read again; every second value is left out here."""

    def dropped(x):
        return x * (np.arange(x.shape[-1]) % 2 * 1.25)

    def dropout1d(x, share, training):
        return x * (torch.arange(x.shape[-2]) % 2 * 1.25).unsqueeze(1)

    monkeypatch.setattr(torch.nn.functional, "dropout1d", dropout1d)
    head, p = made("esim", "pair_classification", separate, size=4, masks="text")
    texts, states, batch = texts_and_batch("pair_classification", separate)
    with torch.no_grad():
        agree(head(states, batch), [formulas.esim(p, each, dropped) for each in texts])


CONTEXTS = {
    "bilstm": (formulas.recurrent_words, {"size": 4, "layers": 2}),
    "highway_lstm": (formulas.highway, {"size": 4, "layers": 2}),
    "densenet": (formulas.densenet, {"size": 4, "kernel": 3}),
}
POOLED = {"max": lambda x: x.max(0), "mean": lambda x: x.mean(0), "first": lambda x: x[0], "last": lambda x: x[-1]}


def context(kind: str, p: dict, read: np.ndarray, seen: np.ndarray, appended: np.ndarray) -> np.ndarray:
    """Return what a head's layers make of a text or of words; DenseNet concatenates other states with that."""
    formula, options = CONTEXTS[kind]
    if kind == "densenet":
        return formula(p, read, appended, seen)
    return formula(p, read, layers=options["layers"])


def sentences(states: torch.Tensor, pieces: list[list[int]] = PIECES) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each sentence the states of its words up to the last seen one, and which have a piece.

    A word between others that has none reads the first token.
    """
    words = []
    for row, places in zip(states.double().numpy(), pieces, strict=True):
        last = max(word for word, piece in enumerate(places) if piece >= 0) + 1
        words.append((row[np.maximum(places[:last], 0)], np.array(places[:last]) >= 0))
    return words


@pytest.mark.parametrize("extra", [0, EXTRA])
@pytest.mark.parametrize("pooling", POOLED)
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("kind", CONTEXTS)
def test_layers_below_a_linear_head_on_texts_compute_their_formula(kind, separate, pooling, extra):
    """A pair's two texts become [u; v; |u - v|; u * v] (Mou et al. 2016)."""
    task_type = "pair_classification" if separate else "classification"
    head, p = made(kind, task_type, separate, pooling, **CONTEXTS[kind][1])
    _, states, batch = texts_and_batch(task_type, separate, extra)
    vectors = []
    for row, mask in zip(states.double().numpy(), batch.mask.numpy(), strict=True):
        read = row[mask]
        appended = np.repeat(read[:1], len(read), 0)
        vectors.append(POOLED[pooling](context(kind, p, read, np.ones(len(read), bool), appended)))
    if separate:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [np.concatenate([u, v, abs(u - v), u * v]) for u, v in pairs]
    with torch.no_grad():
        agree(head(states, batch), [formulas.affine(p, "output", vector) for vector in vectors])


@pytest.mark.parametrize("kind", [*CONTEXTS, "bilstm_crf"])
def test_layers_below_a_linear_head_on_words_compute_their_formula(kind):
    like = "bilstm" if kind == "bilstm_crf" else kind
    head, p = made(kind, "spans", **CONTEXTS[like][1])
    states, batch = batch_of([[0] + [1] * n + [0] for n in TEXTS], PIECES)
    with torch.no_grad():
        logits = head(states, batch)
    expected = []
    for read, seen in sentences(states):
        expected += list(formulas.affine(p, "output", context(like, p, read, seen, read))[seen])
    agree(logits[batch.first_pieces >= 0], expected)


@pytest.mark.parametrize("end", [[2.0, -1.0, -0.5], [-2.0, 2.0, 0.5]])
def test_a_bilstm_crf_counts_and_compares_all_sequences_of_tags(end):
    """Words without a piece are as if they were not there; predictions follow BIO."""
    head, _ = made("bilstm_crf", "spans", size=4, layers=2)
    head.set_labels(["B-X", "I-X", "O"])
    with torch.no_grad():
        # I-X would begin sentences and follow O, which BIO forbids
        head.chain.transitions.copy_(torch.tensor([[0.5, -0.5, 1.0], [-0.5, 0.5, 1.5], [0.5, 3.0, -1.0]]))
        head.chain.start.copy_(torch.tensor([0.0, 3.0, 0.5]))
        head.chain.end.copy_(torch.tensor(end))
    p = {name: tensor.double().numpy() for name, tensor in head.state_dict().items()}
    pieces = [[1, 2, -1, 5, 4, -1, 3], [2, -1], [1, -1, 2, 3], *([1, 2, 3, 4, 5] for _ in range(8))]
    tags = [[(word * row) % OUTPUTS for word in range(len(places))] for row, places in enumerate(pieces)]
    states, batch = batch_of([[0] + [1] * max(places) + [0] for places in pieces], pieces)
    with torch.no_grad():
        logits = head(states, batch)
        loss, best = head.loss(logits, word_targets(tags, batch.first_pieces)), head.decode(logits, batch)
    total, count = 0.0, 0
    for row, (read, seen) in enumerate(sentences(states, pieces)):
        emissions = formulas.affine(p, "output", formulas.recurrent_words(p, read, layers=2))[seen]
        gold = [tag for tag, there in zip(tags[row], seen, strict=False) if there]
        total, count = total + formulas.chain_likelihood(p, emissions, gold), count + len(gold)
        expected = max(legal(len(gold)), key=lambda each: formulas.chain_score(p, emissions, each))
        assert tuple(best[row][batch.first_pieces[row] >= 0].tolist()) == expected
    assert loss.item() == pytest.approx(-total / count, rel=1e-5)


def legal(words: int) -> list[tuple[int, ...]]:
    """Return all sequences of the tags B-X (0), I-X (1) and O (2) in which no I-X begins a span."""
    every = product(range(3), repeat=words)
    return [tags for tags in every if (2, 1) not in zip((2, *tags), tags, strict=False)]
