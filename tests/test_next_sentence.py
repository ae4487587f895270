"""Next-sentence prediction in further pretraining: pairs, their loss against transformers, and what the step leaves."""

import pytest
import torch
from transformers import BertForPreTraining

from test_pretraining import pretrained
from thaw.encoders.loading import find_next_sentence, load_pooler
from thaw.encoders.masked_model import MaskedModel
from thaw.features.batch import Batch
from thaw.training.masking import (
    ANOTHER,
    FOLLOWS,
    NEITHER,
    MaskingVocabulary,
    NextSentence,
    PairedBatch,
    SpecialTokenIds,
    masked,
    paired,
)
from thaw.training.objectives import MaskedAndNextSentence, MaskedLanguageModel
from tiny import tiny_encoder
from tiny_corpus import Bench, tiny_corpus

CLS, SEP, PAD = 2, 3, 0
SPECIALS = SpecialTokenIds(CLS, SEP, PAD)


def rows(*texts) -> Batch:
    """Return a batch of rows, each one list of tokens or two."""
    whole = [[CLS, *row[0], SEP, *(row[1] + [SEP] if len(row) > 1 else [])] for row in texts]
    of = [[0, *[1] * len(row[0]), 0, *([2] * len(row[1]) + [0] if len(row) > 1 else [])] for row in texts]
    longest = max(map(len, whole))
    ids, texts = (torch.tensor([one + [0] * (longest - len(one)) for one in many]) for many in (whole, of))
    lengths = torch.tensor(list(map(len, whole))).unsqueeze(1)
    return Batch(ids, torch.arange(longest) < lengths, ids * 0, None, torch.arange(len(ids)), texts.to(torch.int8))


def test_the_labels_are_those_of_published_heads():
    """create_pretraining_data.py of BERT: 1 where the second text is a random one. torch leaves out -100."""
    batch = rows([[10], [11]], [[20], [21]], [[30], []])
    for seed in range(8):
        made, follows = paired(batch, SPECIALS, torch.Generator().manual_seed(seed))
        for row, own in enumerate((11, 21)):
            second = made.input_ids[row][made.texts[row] == 2].tolist()
            assert follows[row] == (0 if second == [own] else 1) or (not second and follows[row] == -100)
        assert follows[2] == -100


def test_half_of_the_pairs_follow_each_other():
    batch = rows(*[[[10 + row, 11 + row], [100 + row, 200 + row]] for row in range(60)])
    made, follows = paired(batch, SPECIALS, torch.Generator().manual_seed(1))
    assert 15 < (follows == FOLLOWS).sum() < 45 and set(follows.tolist()) == {FOLLOWS, ANOTHER}
    for row in range(60):
        second = made.input_ids[row][made.texts[row] == 2].tolist()
        assert (second == [100 + row, 200 + row]) == (follows[row] == FOLLOWS)
        assert made.input_ids[row][made.texts[row] == 1].tolist() == [10 + row, 11 + row]
    same = follows == FOLLOWS
    assert torch.equal(made.input_ids[same], batch.input_ids[same])
    assert made.type_ids[0].tolist() == [0, 0, 0, 0, 1, 1, 1] and bool(made.mask.all())


def test_a_single_text_is_cut_in_the_middle_and_a_single_token_is_no_pair():
    batch = rows([[10, 11, 12, 13, 14, 15, 16]], [[20]])
    made, follows = paired(batch, SPECIALS, torch.Generator().manual_seed(3))
    assert follows[1] == NEITHER and made.mask.sum(1).max() <= batch.mask.shape[1]
    alone, follows = paired(rows([[10, 11, 12, 13, 14]]), SPECIALS, torch.Generator())
    # one token has to go, since there is a separator more: the longer half loses its end
    assert alone.input_ids.tolist() == [[CLS, 10, 11, SEP, 13, 14, SEP]] and follows.tolist() == [FOLLOWS]


def test_the_loss_is_that_of_transformers(tmp_path):
    folder = tiny_encoder("bert", tmp_path / "bert")
    model = MaskedModel(folder, 1).eval()
    model.next_sentence = NextSentence(folder, 32)
    torch.nn.init.normal_(model.next_sentence.judge.weight)
    whole = BertForPreTraining(model.whole.config).eval()
    layers = {"bert.pooler.dense": model.next_sentence.dense, "cls.seq_relationship": model.next_sentence.judge}
    further = {f"{path}.{name}": value for path, layer in layers.items() for name, value in layer.state_dict().items()}
    whole.load_state_dict(model.whole.state_dict() | further)
    batch, follows = paired(rows([[10, 11], [12, 13]], [[20, 21, 22], [23]]), SPECIALS, torch.Generator())
    hidden = masked(batch, 0.3, MaskingVocabulary(4, 90), torch.Generator().manual_seed(2))
    labels = torch.where(hidden.chosen, batch.input_ids, -100)
    theirs = whole(hidden.input_ids, hidden.mask.long(), hidden.type_ids, labels=labels, next_sentence_label=follows)
    values = {name: getattr(hidden, name) for name in hidden.__dataclass_fields__}
    made = PairedBatch(**values, follows=follows)
    ours = MaskedAndNextSentence("fp32").loss(model, None, made, {})
    assert ours.item() == pytest.approx(theirs.loss.item(), rel=1e-5)
    assert ours > MaskedLanguageModel("fp32").loss(model, None, made, {})


def test_the_step_trains_the_pooler_and_leaves_what_judges(tmp_path):
    bench = Bench(tmp_path, "bert", tiny_corpus(tmp_path / "corpus", "pair_classification"), "pair_classification")
    settings = {"phase": {"rate": 3e-3, "batch_size": 4, "epochs": 2}, "next_sentence": True}
    out = pretrained(bench, tmp_path / "further", settings=settings)
    assert not torch.equal(load_pooler(out)["weight"], load_pooler(bench.encoder)["weight"])
    assert find_next_sentence(bench.encoder) == {} and find_next_sentence(out)["weight"].shape == (2, 32)
