"""Windows over contexts, and answers in them, against brute force over characters and pairs of tokens."""

import numpy as np
import pytest
import torch

from thaw.core.errors import UserError
from thaw.encoders.loading import load_tokenizer
from thaw.features import tokens as tokens_module
from thaw.features.batch import Batch
from thaw.features.tokens import in_windows, tokenise
from thaw.heads.registry import build
from thaw.heads.start_end import answer_tokens, best_answers
from thaw.schema.corpora import ViewConfig
from thaw.schema.head import HeadConfig
from tiny import WORDS, tiny_encoder

FAMILIES = ("bert", "roberta", "distilbert", "gpt2")
QUESTION = "who sings often"


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    return {family: load_tokenizer(tiny_encoder(family, folder / family)) for family in FAMILIES}


def context(words: int, seed: int = 1) -> str:
    """Return words with blanks, commas and letters that no vocabulary knows between."""
    draw = np.random.default_rng(seed)
    marks = [" ", ", ", "  ", " é ", "-"]
    return "".join(draw.choice(WORDS) + draw.choice(marks) for _ in range(words)).strip()


def windows_of(columns: dict, row: int = 0) -> list[dict]:
    """Return the windows of a row, each with its own tokens."""
    ends = np.cumsum(columns["windows"][row])
    cuts = list(zip([0, *ends], ends, strict=False))
    names = ("input_ids", "texts", "starts", "ends")
    return [{name: columns[name][row][first:last] for name in names} for first, last in cuts]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("length", "stride"), [(20, 5), (20, 100), (16, 1), (64, 8)])
def test_windows_are_devlins(tokenizers, family, length, stride):
    tokenizer, text = tokenizers[family], context(40)
    columns, cut = in_windows([QUESTION], [text], tokenizer, ViewConfig(max_length=length, stride=stride))
    windows, every = windows_of(columns), tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, places = every["input_ids"], every["offset_mapping"]
    asked = tokenizer(QUESTION, add_special_tokens=False)["input_ids"]
    room = length - len(asked) - tokenizer.num_special_tokens_to_add(pair=True)
    expected, begin = [], 0
    while True:  # run_squad.py: as much as fits, the next one `stride` later, until one reaches the end
        expected.append((begin, min(begin + room, len(ids))))
        if begin + room >= len(ids):
            break
        begin += min(room, stride)
    before, after = prefix(windows[0]), suffix(windows[0])
    assert [window["input_ids"] for window in windows] == [
        [*before, *ids[first:last], *after] for first, last in expected
    ]
    assert len(before) + len(after) == length - room
    for window, (first, last) in zip(windows, expected, strict=True):
        inside = [pair for pair in zip(window["starts"], window["ends"], strict=True) if pair != (-1, -1)]
        assert inside == places[first:last]
        assert [text == 2 for text in window["texts"]] == [place >= 0 for place in window["starts"]]
    assert cut == [False] and all(len(window["input_ids"]) <= length for window in windows)


def prefix(window: dict) -> list[int]:
    """Return the tokens before the context."""
    return window["input_ids"][: window["texts"].index(2)]


def suffix(window: dict) -> list[int]:
    """Return the tokens after the context."""
    return window["input_ids"][len(window["texts"]) - window["texts"][::-1].index(2) :]


def test_a_long_question_is_cut_and_counted(tokenizers, monkeypatch):
    monkeypatch.setattr(tokens_module, "MAX_QUESTION", 3)
    view = ViewConfig(max_length=20, stride=5)
    asked = ["the old cat sings", "the old cat"]
    columns, cut = tokenise([asked, ["a dog sleeps"] * 2], tokenizers["bert"], view, False)
    assert cut == [True, False] and columns["input_ids"][0] == columns["input_ids"][1]
    with pytest.raises(UserError, match="max_length is 4, but a question takes 5 tokens, so that no context fits"):
        in_windows(["old cat"], ["a dog"], tokenizers["bert"], ViewConfig(max_length=4, stride=2))


@pytest.mark.parametrize("family", FAMILIES)
def test_gold_tokens_are_those_that_hold_the_answers_ends(tokenizers, family):
    text, view = context(25, seed=4), ViewConfig(max_length=24, stride=6)
    columns, _ = in_windows([QUESTION], [text], tokenizers[family], view)
    windows = windows_of(columns)
    batch = batch_of(columns)
    found = whole = 0
    for first in range(len(text)):
        for last in range(first, min(first + 30, len(text)), 3):
            given = text[first : last + 1]
            if not given.strip():
                continue
            tokens = answer_tokens([[(first, given)]], batch)
            ends = (first + len(given) - len(given.lstrip()), first + len(given.rstrip()) - 1)
            for window, mine in zip(windows, tokens.tolist(), strict=True):
                pairs = list(enumerate(zip(window["starts"], window["ends"], strict=True)))
                holding = [[n for n, (start, end) in pairs if start <= place < end] for place in ends]
                expected = [holding[0][0], holding[1][0]] if all(holding) else [0, 0]
                assert mine == expected
                found += expected != [0, 0]
                whole += 1
    assert 0 < found < whole
    assert answer_tokens([[]], batch).tolist() == [[0, 0]] * len(windows)


def batch_of(columns: dict) -> Batch:
    """Return all rows of some columns as a batch."""
    windows = [window for row in range(len(columns["windows"])) for window in windows_of(columns, row)]
    longest = max(len(window["input_ids"]) for window in windows)

    def padded(name: str, fill: int) -> torch.Tensor:
        return torch.tensor([[*window[name], *[fill] * (longest - len(window[name]))] for window in windows])

    mask = padded("texts", -1) >= 0
    places = torch.stack([padded("starts", -1), padded("ends", -1)], -1)
    counts = torch.tensor([len(each) for each in columns["windows"]])
    rows = torch.arange(len(counts))
    return Batch(padded("input_ids", 0), mask, None, None, rows, padded("texts", 0), counts, places)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("longest", [1, 4, 30])
def test_the_best_answers_are_those_of_all_pairs(tokenizers, seed, longest):
    texts = [context(30, seed), context(3, seed + 10), context(18, seed + 20)]
    columns, _ = in_windows([QUESTION] * 3, texts, tokenizers["bert"], ViewConfig(max_length=20, stride=6))
    batch = batch_of(columns)
    logits = torch.randn(*batch.mask.shape, 2, generator=torch.Generator().manual_seed(seed))
    found, begin = best_answers(logits, batch, longest, 5), 0
    for row, count in enumerate(batch.windows.tolist()):
        nothing, known = np.inf, {}
        for window in range(begin, begin + count):
            nothing = min(nothing, float(logits[window, 0, 0].double() + logits[window, 0, 1].double()))
            tokens = [n for n in range(batch.mask.shape[1]) if batch.characters[window, n, 0] >= 0]
            for first in tokens:
                for last in tokens:
                    if first <= last < first + longest:
                        ends = (int(batch.characters[window, first, 0]), int(batch.characters[window, last, 1]))
                        value = float(logits[window, first, 0].double() + logits[window, last, 1].double())
                        known[ends] = max(value, known.get(ends, -np.inf))
        begin += count
        best = sorted(known.items(), key=lambda one: -one[1])[:5]
        expected = [[*ends, nothing - value] for ends, value in best]
        assert found[row, : len(best)].tolist() == [pytest.approx(one) for one in expected]
        assert found[row, len(best) :, 2].isinf().all()


def test_the_head_is_two_vectors_and_the_mean_of_two_cross_entropies(tokenizers):
    texts = [context(12), context(30)]
    columns, _ = in_windows([QUESTION] * 2, texts, tokenizers["bert"], ViewConfig(max_length=20, stride=6))
    batch = batch_of(columns)
    head = build(HeadConfig(kind="start_end"), 6, 2, "span_extraction").eval()
    states = torch.randn(*batch.mask.shape, 6)
    gold = answer_tokens([[(0, texts[0][:5])], []], batch)
    logits, losses = head(states, batch).detach(), []
    head.requires_grad_(False)
    for window, (first, last) in enumerate(gold.tolist()):
        seen = batch.mask[window]
        for end, token in enumerate((first, last)):
            values = states[window, seen].double() @ head.output.weight[end].double() + head.output.bias[end].double()
            losses.append(float(values.logsumexp(0) - values[token]))
    assert head.loss(logits, gold).item() == pytest.approx(np.mean(losses), rel=1e-5)
    assert sum(parameter.numel() for parameter in head.parameters()) == 2 * 6 + 2
