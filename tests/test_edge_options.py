"""Edge probing as Tenney et al. had it: layer 0 without positions and token types, labels that the score leaves out.

Layer 0 is compared with a formula on the weights that transformers reads; F1 with a loop over edges and labels.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from test_edge import ENTRY, LONG
from thaw.core.errors import UserError
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.probes.edge import Prober, scores
from thaw.probes.edge_reading import EdgeReading, LayerStates, WordEmbeddings
from thaw.training.adapted import AdaptedEncoder
from tiny import tiny_encoder
from tiny_trees import TreeBench, tree_corpus


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edge_options")
    return TreeBench(folder, "bert", tree_corpus(folder / "data", test=[LONG]), "spans")


def weights(folder) -> dict[str, torch.Tensor]:
    """Return the tensors of a model as transformers reads it."""
    from transformers import AutoModel

    return AutoModel.from_pretrained(folder).state_dict()


def normed(tensors: dict[str, torch.Tensor], ids: torch.Tensor, eps: float = 1e-12) -> torch.Tensor:
    """Return the embeddings of word pieces, layer-normed, of BERT's family."""
    embedded = tensors["embeddings.word_embeddings.weight"][ids]
    scale, shift = tensors["embeddings.LayerNorm.weight"], tensors["embeddings.LayerNorm.bias"]
    return functional.layer_norm(embedded, embedded.shape[-1:], scale, shift, eps)


def projected(tensors: dict[str, torch.Tensor], ids: torch.Tensor) -> torch.Tensor:
    """Return the same of ELECTRA, whose embeddings are narrower than its layers."""
    return functional.linear(
        normed(tensors, ids), tensors["embeddings_project.weight"], tensors["embeddings_project.bias"]
    )


FORMULAS = {
    "bert": normed,
    "distilbert": normed,
    "roberta": normed,
    "mpnet": normed,
    "electra": projected,
    "gpt2": lambda tensors, ids: tensors["wte.weight"][ids],
    "openai_gpt": lambda tensors, ids: tensors["tokens_embed.weight"][ids],
}
WITHOUT_POSITIONS = ("deberta_v2", "modernbert", "llama")  # as these families are in tests/tiny.py


def batch_of(ids: torch.Tensor, type_ids: torch.Tensor | None = None) -> Batch:
    return Batch(ids, torch.ones_like(ids, dtype=torch.bool), type_ids, None, torch.arange(len(ids)))


IDS = torch.tensor([[7, 9, 9, 12, 7], [9, 7, 30, 31, 9]])


@pytest.mark.parametrize("family", FORMULAS)
def test_layer_0_is_the_embedding_of_each_word_piece(family, tmp_path):
    folder = tiny_encoder(family, tmp_path)
    usual = Encoder.load(folder).states(batch_of(IDS), [0])[0]
    found = WordEmbeddings(Encoder.load(folder))(batch_of(IDS))
    assert torch.allclose(found, FORMULAS[family](weights(folder), IDS), atol=1e-5)
    assert (found[0, 1] - found[0, 2]).abs().max() < 1e-6 < 1e-2 < (usual[0, 1] - usual[0, 2]).abs().max()
    assert (found[0, 0] - found[0, 1]).abs().max() > 1e-2


@pytest.mark.parametrize("family", WITHOUT_POSITIONS)
def test_where_there_are_no_positions_layer_0_is_as_it_was(family, tmp_path):
    folder = tiny_encoder(family, tmp_path)
    usual = Encoder.load(folder).states(batch_of(IDS), [0])[0]
    found = WordEmbeddings(Encoder.load(folder))(batch_of(IDS))
    assert torch.allclose(found, usual, atol=1e-6)


def test_positions_that_no_table_holds_are_refused():
    from transformers import CTRLConfig, CTRLModel

    encoder = Encoder(CTRLModel(CTRLConfig(vocab_size=40, n_embd=16, n_head=2, n_layer=2, dff=16, n_positions=20)))
    with pytest.raises(UserError, match="^layer_0: word_embeddings is not possible for ctrl: its layer 0 depends on"):
        WordEmbeddings(encoder)


def test_a_probe_reads_words_as_layer_0_and_all_other_layers_as_before(bench):
    usual = EdgeReading(bench.probe_spec("edge", "arcs"), bench.inputs())
    words = EdgeReading(bench.probe_spec("edge", "arcs", layer_0="word_embeddings"), bench.inputs())
    rows = np.array([0, 3])
    (batch, before), (_, after) = usual.states("train", rows), words.states("train", rows)
    real = batch.mask
    assert batch.type_ids is not None
    assert torch.equal(before[1:, real], after[1:, real])
    assert torch.allclose(after[0], normed(weights(bench.encoder), batch.input_ids), atol=1e-5)
    assert (after[0] - before[0])[real].abs().max() > 1e-2


def test_words_of_an_adapted_encoder_are_its_own(bench):
    name = "embeddings.word_embeddings.weight"
    moved = weights(bench.encoder) | {name: weights(bench.encoder)[name].flip(1)}
    adapted = AdaptedEncoder(bench.encoder, {name: moved[name]}, None)
    spec = bench.probe_spec("edge", "arcs") | {"phases": []}
    batch, states = LayerStates(spec, replace(bench.inputs(), adapted=adapted), word_embeddings=True)(
        "test", np.array([0])
    )
    assert torch.allclose(states[0], normed(moved, batch.input_ids), atol=1e-5)


@pytest.mark.parametrize("family", ["elmo", "word_vectors"])
def test_words_that_have_no_positions_are_read_from_the_store(family, tmp_path):
    own = TreeBench(tmp_path, family, tree_corpus(tmp_path / "data"), "spans")
    spec, rows = own.probe_spec("edge", "upos"), np.array([0, 1])
    _, usual = LayerStates(spec, own.inputs())("train", rows)
    _, words = LayerStates(spec, own.inputs(), word_embeddings=True)("train", rows)
    assert torch.equal(usual, words)


def test_token_types_that_are_looked_up_among_the_words_are_left_out(tmp_path):
    """GPT-2 adds the word of each token type, which a tokenizer of BERT gives for the second of two texts."""
    folder = tiny_encoder("gpt2", tmp_path)
    typed = batch_of(IDS, torch.ones_like(IDS))
    words = WordEmbeddings(Encoder.load(folder))
    expected = FORMULAS["gpt2"](weights(folder), IDS)
    assert torch.allclose(words(typed), expected, atol=1e-5)
    assert (words.encoder.compute_boundaries(typed, [0])[0] - expected).abs().max() > 1e-2


def test_layers_can_be_left_out_and_layer_0_stays(bench):
    spec = bench.probe_spec("edge", "arcs") | {"read": [0], "phases": [{"boundary": None}]}
    batch, states = LayerStates(spec, bench.inputs(), word_embeddings=True)("test", np.array([0]))
    assert len(states) == 1 and torch.allclose(states[0], normed(weights(bench.encoder), batch.input_ids), atol=1e-5)


def unscored(bench, *names: str) -> EdgeReading:
    spec = bench.probe_spec("edge", "arcs")
    return EdgeReading(spec | {"task": spec["task"] | {"unscored_labels": list(names)}}, bench.inputs())


@pytest.mark.parametrize(
    ("names", "left"), [((), "det nsubj aux root obj punct"), (("punct", "o*"), "det nsubj aux root")]
)
def test_f1_counts_some_labels_as_a_loop_by_hand_does(bench, names, left):
    torch.manual_seed(3)
    reading = unscored(bench, *names)
    assert [reading.labels[number] for number in reading.counted_labels] == left.split()
    model = Prober(ENTRY, torch.eye(4).bool(), reading.width, len(reading.labels), pairs=True)
    nn.init.normal_(model.output.bias)  # so that all labels are predicted of some edges
    split = reading.splits["validation"]
    found = scores(reading, model, split)
    hits, predicted, truths = np.zeros((3, 4))
    for tokens in reading.batches(split, np.arange(len(split.rows))):
        for probe, logits in enumerate(model(tokens)):
            for values, gold in zip(logits.tolist(), tokens.gold.tolist(), strict=True):
                for label, value, true in zip(reading.labels, values, gold, strict=True):
                    if label in left.split():
                        hits[probe] += value > 0 and true == 1
                        predicted[probe] += value > 0
                        truths[probe] += true == 1
    precision, recall = hits / predicted, hits / truths
    assert hits.min() > 0 and found == pytest.approx(2 * precision * recall / (precision + recall))


def test_the_baseline_is_the_most_frequent_label_that_counts(bench):
    labels = [label for of_edge in unscored(bench).splits["train"].labels for label in of_edge]
    reading = unscored(bench, "aux", "punct", "det")
    frequent = max(("nsubj", "root", "obj"), key=lambda name: labels.count(reading.labels.index(name)))
    gold = [reading.labels[label] for (label,) in reading.splits["validation"].labels]
    counted = sum(name in ("nsubj", "root", "obj") for name in gold)
    due = 2 * gold.count(frequent) / (len(gold) + counted)
    assert reading.majority()["validation"] == {"edge_f1": pytest.approx(due)}


def test_labels_that_are_not_scored_are_trained(bench, tmp_path):
    """The loss, and so the epoch that is kept, is that of all labels."""
    settings = {"projection": 8, "hidden": 8, "rate": 3e-2, "epochs": 3}
    spec = bench.probe_spec("edge", "arcs", **settings)
    all_of_them = bench.step("probe", spec, tmp_path / "all")
    some = bench.step("probe", spec | {"task": spec["task"] | {"unscored_labels": ["det"]}}, tmp_path / "some")
    lines = [
        [line.split(",")[:5] for line in (out / "layers.csv").read_text().splitlines()] for out in (all_of_them, some)
    ]
    assert lines[0] == lines[1] and lines[0][0] == ["layer", "seed", "read", "epoch", "choice"]
    assert (all_of_them / "layers.csv").read_text() != (some / "layers.csv").read_text()


def test_a_label_that_does_not_exist(bench):
    with pytest.raises(
        UserError, match=r"^task t: unscored_labels: no label begins with 'R-'; there are aux, det, nsubj"
    ):
        unscored(bench, "R-*")
    with pytest.raises(UserError, match=r"^task t: unscored_labels: no label is 'objs'; did you mean 'obj'\?$"):
        unscored(bench, "objs")
