"""The conditional random field: likelihood and best sequence beside pytorch-crf and beside all sequences counted."""

from itertools import product

import pytest
import torch
from torchcrf import CRF

from thaw.features.batch import Batch
from thaw.heads.base import IGNORED, NO_TAG
from thaw.heads.crf import LinearChainCrf
from thaw.heads.registry import build
from thaw.schema.head import HeadConfig

TAGS, LENGTHS = 5, [6, 1, 4]
BIO = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]


def case(seed: int):
    """Return a chain with random scores, the reference with the same, emissions, gold tags and mask."""
    torch.manual_seed(seed)
    chain, reference = LinearChainCrf(TAGS), CRF(TAGS, batch_first=True)
    with torch.no_grad():
        for parameter in chain.parameters():
            parameter.normal_()
        reference.transitions.copy_(chain.transitions)
        reference.start_transitions.copy_(chain.start)
        reference.end_transitions.copy_(chain.end)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    emissions = torch.randn(len(LENGTHS), max(LENGTHS), TAGS)
    return chain, reference, emissions, torch.randint(TAGS, mask.shape), mask


@pytest.mark.parametrize("seed", range(5))
def test_likelihood_gradients_and_best_sequence_are_those_of_pytorch_crf(seed):
    chain, reference, emissions, tags, mask = case(seed)
    ours = chain.log_likelihood(emissions, tags.where(mask, IGNORED), mask)
    theirs = reference(emissions, tags, mask=mask, reduction="none")
    torch.testing.assert_close(ours, theirs)
    ours.sum().backward()
    theirs.sum().backward()
    torch.testing.assert_close(chain.transitions.grad, reference.transitions.grad)
    torch.testing.assert_close(chain.start.grad, reference.start_transitions.grad)
    torch.testing.assert_close(chain.end.grad, reference.end_transitions.grad)
    best = chain.best(emissions, mask)
    assert [row[:n].tolist() for row, n in zip(best, LENGTHS, strict=True)] == reference.decode(emissions, mask=mask)


def test_words_left_out_anywhere_are_as_if_they_were_not_there():
    chain, _, emissions, tags, _ = case(7)
    mask = torch.tensor([[False, True, False, True, True, False]])
    seen = mask[0].nonzero().squeeze(1)
    few, all_of_them = torch.ones(1, len(seen), dtype=torch.bool), emissions[:1]
    short = chain.log_likelihood(all_of_them[:, seen], tags[:1, seen], few)
    torch.testing.assert_close(chain.log_likelihood(all_of_them, tags[:1], mask), short)
    assert torch.equal(chain.best(all_of_them, mask)[:, seen], chain.best(all_of_them[:, seen], few))
    assert chain.log_likelihood(all_of_them, tags[:1], torch.zeros_like(mask)).item() == 0


@pytest.mark.parametrize("mask", [[1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 0], [1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
def test_a_score_made_at_once_is_the_one_made_word_by_word(mask):
    """A GPU makes it at once; word by word it is the likelihood and the sum over all sequences."""
    chain, _, emissions, tags, _ = case(3)
    mask = torch.tensor([mask]).bool()
    count, short = int(mask.sum()), emissions[:1, mask[0]]
    every = torch.tensor(list(product(range(TAGS), repeat=count)))
    whole = chain.score(short.expand(len(every), -1, -1), every, torch.ones(len(every), count, dtype=torch.bool))
    at_once = chain.score(emissions[:1], tags[:1], mask) - whole.logsumexp(0)
    by_word = chain.log_likelihood(emissions[:1], tags[:1], mask)
    torch.testing.assert_close(at_once, by_word, atol=1e-4, rtol=1e-5)
    for parameter in chain.parameters():
        ours, theirs = (torch.autograd.grad(each.sum(), parameter, retain_graph=True)[0] for each in (at_once, by_word))
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_a_device_is_asked_for_nothing():
    """On the device meta, which has no values: the likelihood, its gradient and the best sequence."""
    chain, _, emissions, tags, mask = case(3)
    emissions, tags, mask = (tensor.to("meta") for tensor in (emissions, tags, mask))
    chain.to("meta").log_likelihood(emissions, tags, mask).sum().backward()
    assert chain.transitions.grad.device.type == chain.best(emissions, mask).device.type == "meta"


def allowed(tags: tuple[str, ...]) -> bool:
    """Tell whether BIO allows a sequence."""
    before = ("O", *tags)
    return all(t[0] != "I" or b in (f"B-{t[2:]}", t) for b, t in zip(before, tags, strict=False))


@pytest.mark.parametrize("seed", range(3))
def test_constrained_predictions_are_the_best_that_bio_allows(seed):
    chain, _, emissions, _, _ = case(seed)
    chain.constrain(BIO)
    emissions = 3 * emissions[:1, :4]
    legal = [tags for tags in product(range(TAGS), repeat=4) if allowed(tuple(BIO[tag] for tag in tags))]
    whole = torch.ones(len(legal), 4, dtype=torch.bool)
    with torch.no_grad():
        found = chain.log_likelihood(emissions.expand(len(legal), -1, -1), torch.tensor(legal), whole)
    assert chain.best(emissions, whole[:1])[0].tolist() == list(legal[found.argmax()])


@pytest.mark.parametrize("task_type, bound", [("spans", True), ("tagging", False)])
def test_a_head_on_spans_gets_its_tags_and_predicts_valid_bio_alone(task_type, bound):
    torch.manual_seed(1)
    head = build(HeadConfig(kind="crf"), 6, TAGS, task_type).eval()
    head.set_labels(BIO)
    logits = torch.zeros(1, 3, TAGS)
    logits[:, :, BIO.index("I-PER")] = 5.0
    ids = torch.ones(1, 4, dtype=torch.int64)
    batch = Batch(ids, ids.bool(), None, torch.tensor([[0, 2, -1]]), torch.zeros(1))
    best = head.decode(logits, batch)[0].tolist()
    assert best[2] == NO_TAG
    assert [BIO[tag] for tag in best[:2]] == (["B-PER", "I-PER"] if bound else ["I-PER", "I-PER"])
