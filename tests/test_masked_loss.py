"""The loss at masked tokens is transformers' own on the same masked ids, before and after fine-tuning."""

import random
import shutil
from dataclasses import replace

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertModel

from test_adapted import Adaptation
from thaw.core.files import read_json
from thaw.probes.encoder_comparison import EncoderComparison
from thaw.probes.masked_losses import masked_loss
from thaw.training.adapted import AdaptedEncoder
from thaw.training.masking import MaskedBatchLoader, MaskingVocabulary
from tiny import KNOWN
from tiny_corpus import rows

TEXTS = 200


class FarMoved(Adaptation):
    """Runs at a high rate, after which tokens are predicted otherwise."""

    phase = {"train": ["head", {"top": 2}], "rate": 3e-2}


@pytest.fixture(scope="module")
def adaptation(tmp_path_factory) -> FarMoved:
    """Runs on a classification task with 200 texts of validation, of 1 to 50 words."""
    torch.set_num_threads(1)
    draw = random.Random(4)
    texts = [" ".join(draw.choices(KNOWN, k=draw.randint(1, 50))) for _ in range(TEXTS)]
    validation = [row | {"text": text} for row, text in zip(rows("classification", TEXTS, 2), texts, strict=True)]
    return FarMoved(tmp_path_factory.mktemp("masked"), validation=validation)


@pytest.fixture(scope="module")
def folder(adaptation, tmp_path_factory):
    """The encoder with what predicts tokens, as transformers writes it."""
    folder = tmp_path_factory.mktemp("whole") / "encoder"
    shutil.copytree(adaptation.bench.encoder, folder)
    torch.manual_seed(5)
    whole = BertForMaskedLM(BertConfig.from_pretrained(folder))
    whole.bert.load_state_dict(BertModel.from_pretrained(folder, add_pooling_layer=False).state_dict())
    whole.cls.predictions.bias.data.normal_()
    whole.save_pretrained(folder)
    return folder


def hidden(adaptation, seed: int) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Return of each text of validation the true ids, the masked ones and what is chosen, for 15 % of the tokens."""
    store, tokenizer = adaptation.bench.store, AutoTokenizer.from_pretrained(adaptation.bench.encoder)
    vocabulary = MaskingVocabulary(tokenizer.convert_tokens_to_ids("[MASK]"), len(tokenizer.get_vocab()))
    loader, found = MaskedBatchLoader(store, torch.device("cpu"), 0.15, vocabulary, seed, "masks"), []
    lengths = store.sizes("validation")
    order, start = sorted(range(TEXTS), key=lambda row: -lengths[row]), 0
    while start < TEXTS:  # masks are drawn batch by batch: those of the probe have 2,048 tokens, the longest first
        read = order[start : start + 2048 // lengths[order[start]]]
        batch, _ = loader("validation", read)
        plain = store.batch("validation", read).input_ids
        parts = zip(batch.mask, plain, batch.input_ids, batch.chosen, strict=True)
        found += [(ids[mask], given[mask], chosen[mask]) for mask, ids, given, chosen in parts]
        start += len(read)
    return found


@torch.no_grad()
def due(whole: BertForMaskedLM, texts) -> float:
    """Return the mean loss over the masked tokens of all texts; each is read by itself, without padding."""
    total = count = 0
    for plain, given, chosen in texts:
        labels = plain.masked_fill(~chosen, -100)
        total += whole(input_ids=given.unsqueeze(0), labels=labels.unsqueeze(0)).loss.item() * int(chosen.sum())
        count += int(chosen.sum())
    return total / count


def test_the_loss_at_masked_tokens_is_that_of_transformers_before_and_after_fine_tuning(adaptation, folder):
    bench = adaptation.bench
    trained = [AdaptedEncoder.of(bench.encoder, run, read_json(run)["digest"]) for run in adaptation.runs]
    spec = bench.spec() | {"of": {"probe": "masked_loss"}, "probe": {"kind": "masked_loss"}, "read": [0, 1, 2, 3]}
    base = replace(bench.inputs(), encoder=folder)
    sides = {seed: replace(base, adapted=replace(one, folder=folder)) for seed, one in enumerate(trained, 1)}
    table, ends = masked_loss(EncoderComparison(spec, base, sides))
    for seed, one in enumerate(trained, 1):
        texts, whole = hidden(adaptation, seed), BertForMaskedLM.from_pretrained(folder).eval()
        before = due(whole, texts)
        assert not whole.bert.load_state_dict(one.tensors, strict=False).unexpected_keys
        after = due(whole, texts)
        scores = ends[seed - 1]["scores"]["validation"]
        assert scores == pytest.approx({"before": before, "masked_loss": after}, abs=1e-5)
        assert table[seed - 1] == {"layer": 3, "seed": seed} | scores
        assert abs(after - before) > 1e-2, "fine-tuning moves it"


def test_15_percent_of_each_texts_tokens_are_chosen_and_80_percent_of_these_hidden(adaptation):
    texts = hidden(adaptation, 1) + hidden(adaptation, 2)
    tokenizer = AutoTokenizer.from_pretrained(adaptation.bench.encoder)
    for plain, given, chosen in texts:
        assert int(chosen.sum()) == max(1, round(0.15 * (len(plain) - 2))), "without [CLS] and [SEP]"
        assert not chosen[[0, -1]].any() and torch.equal(plain[~chosen], given[~chosen])
    plain, given = (torch.cat([text[n][text[2]] for text in texts]) for n in (0, 1))
    masked, kept = given == tokenizer.mask_token_id, given == plain
    assert len(plain) > 1400
    shares = [share.float().mean().item() for share in (masked, kept, ~masked & ~kept)]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.03)
