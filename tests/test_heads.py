"""Heads: what padding must not change, what words without a piece do, losses and predictions by hand."""

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from transformers import RobertaConfig
from transformers.models.roberta.modeling_roberta import RobertaClassificationHead

from thaw.features.batch import Batch, packed, unpacked
from thaw.heads.base import IGNORED, NO_TAG, word_targets
from thaw.heads.linear import LinearHead
from thaw.heads.pooling import POOLINGS
from thaw.heads.registry import build
from thaw.schema.entry import spec_of
from thaw.schema.head import HeadConfig

WIDTH = 6


def batch_of(lengths: list[int], pieces: list[list[int]] | None = None, padding: int = 0) -> Batch:
    """Return a batch of these lengths, padded further if asked to."""
    longest = max(lengths) + padding
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    first = None
    if pieces is not None:
        most = max(map(len, pieces))
        first = torch.tensor([[*row, *[-1] * (most - len(row))] for row in pieces])
    return Batch(mask.long(), mask, None, first, torch.arange(len(lengths)))


def states_of(batch: Batch, seed: int = 0, junk: float = 0.0) -> torch.Tensor:
    """Return states that depend on row and position alone, with `junk` in the padding."""
    rows, longest = batch.mask.shape
    noise = torch.Generator().manual_seed(seed)
    states = torch.randn(rows, 64, WIDTH, generator=noise)[:, :longest]
    return states.masked_fill(~batch.mask.unsqueeze(-1), junk)


def head(pooling: str, outputs: int = 3, kind: str = "classification"):
    torch.manual_seed(1)
    found = build(HeadConfig(kind="linear", pooling=pooling), WIDTH, outputs, kind).eval()
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.normal_()
    return found


def test_poolings_by_hand():
    batch = batch_of([2, 1])
    states = torch.tensor([[[1.0, -4.0], [3.0, -2.0]], [[-5.0, -6.0], [9.0, 9.0]]])
    pooled = {name: POOLINGS[name](2)(states, batch.mask).tolist() for name in POOLINGS}
    assert pooled["first"] == [[1, -4], [-5, -6]]
    assert pooled["last"] == [[3, -2], [-5, -6]]
    assert pooled["mean"] == pooled["attention"] == [[2, -3], [-5, -6]]
    assert pooled["max"] == [[3, -2], [-5, -6]]


def test_words_read_their_first_piece_and_unseen_ones_have_no_part():
    batch = batch_of([5, 3], [[1, 3, -1], [2]])
    scorer = head("first", 4, "spans")
    states = states_of(batch)
    logits = scorer(states, batch)
    torch.testing.assert_close(logits[0, 1], scorer.output(states[0, 3]))
    torch.testing.assert_close(logits[1, 0], scorer.output(states[1, 2]))
    targets = word_targets([[1, 2, 3], [0]], batch.first_pieces)
    assert targets.tolist() == [[1, 2, IGNORED], [0, IGNORED, IGNORED]]
    seen = torch.stack([logits[0, 0], logits[0, 1], logits[1, 0]])
    torch.testing.assert_close(scorer.loss(logits, targets), functional.cross_entropy(seen, torch.tensor([1, 2, 0])))
    found = scorer.decode(logits, batch)
    assert found[0, 2] == found[1, 1] == NO_TAG
    assert found[0, 0] == logits[0, 0].argmax()


def test_a_batch_on_a_device_knows_itself_on_the_cpu():
    with FakeTensorMode():
        batch = batch_of([3, 2], [[1, 2], [1]])
        sent = batch.to("cuda:0")
        for name, value in vars(batch).items():
            if torch.is_tensor(value) and value.numel():
                there = getattr(sent, name)
                assert str(there.device) == "cuda:0" and (there.shape, there.dtype) == (value.shape, value.dtype)
        assert sent.host is batch and batch.host is batch and sent.to("cuda:0") is sent
        back = sent.to("cpu")
        assert back.mask.device.type == "cpu" and back.host is back


def test_what_is_packed_for_one_copy_comes_out_as_it_was():
    made = [
        torch.arange(5),
        torch.tensor([[True], [False]]),
        torch.zeros(0, 3),
        torch.tensor([1, -2], dtype=torch.int8),
    ]
    made += [torch.randn(3, 2).bfloat16(), torch.randn(2, 1, 3).expand(2, 4, 3), torch.tensor(0.5, dtype=torch.float64)]
    for before, after in zip(made, unpacked(packed(made), made), strict=True):
        assert torch.equal(before, after) and before.dtype == after.dtype


def test_kaiming_starts_every_matrix_by_the_number_of_its_inputs():
    torch.manual_seed(1)
    scorer = build(HeadConfig(kind="mlp", initialisation="kaiming", options={"size": 500}), 400, 300, "classification")
    assert scorer.hidden.weight.std().item() == pytest.approx((2 / 400) ** 0.5, rel=0.02)
    assert scorer.output.weight.std().item() == pytest.approx((2 / 500) ** 0.5, rel=0.02)
    assert scorer.output.bias.tolist() == [0.0] * 300
    plain = build(HeadConfig(kind="mlp"), 400, 300, "classification")
    assert plain.output.weight.std().item() == pytest.approx(0.02, rel=0.02)


@pytest.mark.parametrize("training", [False, True])
def test_an_mlp_with_tanh_is_the_head_of_roberta(training):
    """Value for value that of transformers with the same weights, and the same values are dropped in training."""
    sizes = {"hidden_size": WIDTH, "num_labels": 3, "hidden_dropout_prob": 0.1, "num_attention_heads": 1}
    theirs = RobertaClassificationHead(RobertaConfig(**sizes)).train(training)
    options = {"size": "encoder", "activation": "tanh"}
    ours = build(HeadConfig(kind="mlp", pooling="first", options=options, dropout=0.1), WIDTH, 3, "classification")
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_()
    named = theirs.state_dict().items()
    renamed = {name.replace("dense", "hidden").replace("out_proj", "output"): value for name, value in named}
    ours.train(training).load_state_dict(renamed)
    batch = batch_of([3, 5, 1])
    states = states_of(batch)
    torch.manual_seed(7)
    expected = theirs(states)
    torch.manual_seed(7)
    assert torch.allclose(ours(states, batch), expected, atol=1e-6)


def test_a_batch_in_which_no_word_is_seen_has_loss_0():
    batch = batch_of([2], [[-1, -1]])
    scorer = head("first", 4, "spans")
    loss = scorer.loss(scorer(states_of(batch), batch), word_targets([[1, 2]], batch.first_pieces))
    assert loss.item() == 0.0


def test_predictions_and_losses_by_hand():
    classes, scores = head("first"), head("first", 1, "regression")
    logits = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
    assert classes.decode(logits, batch_of([1, 1])).tolist() == [1, 0]
    expected = functional.cross_entropy(logits, torch.tensor([1, 2]))
    assert classes.loss(logits, torch.tensor([1, 2])) == expected
    assert scores.decode(torch.tensor([1.5, 2.0]), batch_of([1, 1])).tolist() == [1.5, 2.0]
    assert scores.loss(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0])).item() == 2.5


def test_a_balanced_loss_weighs_each_text_by_how_rare_its_class_is():
    """By hand: of 4 texts 3 are of class 0 and 1 of class 2, so that weights are 4 / (2 * 3) and 4 / (2 * 1)."""
    logits, targets = torch.tensor([[[1.0, 0.0, 2.0], [0.5, 1.0, 0.0]]]), torch.tensor([[2, 0]])
    balanced = head("mean")
    each = functional.cross_entropy(logits[0], targets[0], reduction="none")
    assert balanced.loss(logits, targets).tolist() == [each.mean().item()]
    balanced.balance(torch.tensor([0, 0, 2, 0]))
    torch.testing.assert_close(balanced.loss(logits, targets), ((each * torch.tensor([2, 4 / 6])).sum() / 2).view(1))
    assert "class_weight" not in balanced.state_dict()


def test_scores_begin_at_the_mean_of_train_or_at_0():
    scorer = build(HeadConfig(kind="linear"), WIDTH, 1, "regression")
    scorer.init_from_targets(np.array([1.0, 2.0, 6.0]))
    assert scorer.output.bias.item() == 3.0
    papers = build(HeadConfig(kind="linear", score_start="zero"), WIDTH, 1, "regression")
    papers.init_from_targets(np.array([1.0, 2.0, 6.0]))
    assert papers.output.bias.item() == 0.0 and 0.01 < papers.output.weight.std() < 0.03
    classes = build(HeadConfig(kind="linear"), WIDTH, 2, "classification")
    classes.init_from_targets(np.array([1, 1, 0]))
    assert classes.output.bias.tolist() == [0.0, 0.0]


def test_a_plugin_may_still_use_the_former_names_of_two_methods():
    class Former(LinearHead):
        def start(self, targets):
            super().start(targets)
            self.targets = list(targets)

        def name_outputs(self, labels):
            super().name_outputs(labels)
            self.labels = labels

    scorer = Former(HeadConfig(kind="linear"), WIDTH, 1, "regression")
    scorer.init_from_targets(np.array([1.0, 2.0, 6.0]))
    scorer.set_labels(["score"])
    assert scorer.output.bias.item() == 3.0 and scorer.targets == [1.0, 2.0, 6.0] and scorer.labels == ["score"]


def test_values_equal_to_the_default_leave_a_spec_as_it_was():
    bare = spec_of(HeadConfig(kind="bilstm"))
    assert bare == {"kind": "bilstm"}
    assert spec_of(HeadConfig(kind="bilstm", options={"size": 200, "layers": 2}, initialisation="bert")) == bare
    assert spec_of(HeadConfig(kind="bilstm", options={"size": 200, "layers": 1})) == bare | {"options": {"layers": 1}}
    assert HeadConfig.model_validate(bare).kind_options.size == 200


def test_where_a_score_starts_is_in_the_specs_of_scores_alone():
    head = HeadConfig(kind="linear", score_start="zero")
    assert head.spec_for("pair_regression") == {"kind": "linear", "score_start": "zero"}
    assert head.spec_for("classification") == {"kind": "linear"}
    with pytest.raises(ValueError, match="score_start has no meaning for kind crf"):
        HeadConfig(kind="crf", score_start="zero")
