"""Edge probing on a small encoder: words and their tokens, probes side by side, what counts as wrong, bad input."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from thaw.core.errors import UserError
from thaw.encoders.registry import load_tokenizer
from thaw.probes.edge import Linear, Prober, scores, train
from thaw.probes.edge_reading import EdgeReading, LayerStates, Tokens, pieces
from thaw.schema.by_kind import PROBE_CONFIGS
from tiny_trees import TreeBench, tree_corpus

LONG = {
    "words": ["the", "internationalisation", "sings", "unhappiness", "."],
    "upos": ["DET", "NOUN", "VERB", "NOUN", "PUNCT"],
}
LONG |= {"head": ["2", "3", "0", "3", "3"], "entities": ["O"] * 5}
LONG["arcs"] = [
    {"span1": [w, w + 1], "span2": [int(h) - 1, int(h)] if int(h) else [w, w + 1], "label": relation}
    for w, (h, relation) in enumerate(zip(LONG["head"], ["det", "nsubj", "root", "obj", "punct"], strict=True))
]
ENTRY = PROBE_CONFIGS.models["edge"](kind="edge", projection=6, hidden=5, dropout=0.0, rate=1e-2, epochs=4)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edge")
    return TreeBench(folder, "bert", tree_corpus(folder / "data", test=[LONG]), "spans")


@pytest.fixture(scope="module")
def cut_bench(tmp_path_factory):
    """The long words fall into pieces, and eight tokens do not hold the sentence."""
    folder = tmp_path_factory.mktemp("cut")
    return TreeBench(folder, "bert", tree_corpus(folder / "data", test=[LONG]), "spans", max_length=8)


def reading_of(bench, target="arcs", **entry) -> EdgeReading:
    torch.set_num_threads(1)
    return EdgeReading(bench.probe_spec("edge", target, **entry), bench.inputs())


def test_a_word_is_all_its_tokens(bench):
    ids = load_tokenizer(bench.encoder, words=True)(LONG["words"], is_split_into_words=True).word_ids()
    batch = bench.store.batch("test", [0])
    starts, ends = (each[0].tolist() for each in pieces(batch))
    due = [[place for place, word in enumerate(ids) if word == number] for number in range(5)]
    assert [list(range(start, end)) for start, end in zip(starts, ends, strict=True)] == due
    assert len(due[1]) > 2 and len(due[3]) > 1


def test_a_layer_that_is_not_stored_is_computed_from_one_below(bench):
    spec = bench.probe_spec("edge", "arcs")
    batch, stored = LayerStates(spec, bench.inputs())("test", np.array([0]))
    spec["phases"] = [{"boundary": None}, {"boundary": 1}, {"boundary": 1}, {"boundary": 2}]
    _, computed = LayerStates(spec, bench.inputs())("test", np.array([0]))
    assert torch.allclose(stored[batch.mask.expand(4, -1, -1)], computed[batch.mask.expand(4, -1, -1)], atol=1e-5)


def test_a_probe_is_what_a_loop_over_its_edges_computes(bench):
    torch.manual_seed(0)
    reading = reading_of(bench)
    mask = torch.tensor([[True, False, True, False], [False, True, False, False]])
    model = Prober(ENTRY, mask, 32, 6, pairs=True)
    nn.init.normal_(model.weights)
    split = reading.splits["test"]
    (tokens,) = reading.batches(split, np.array([0]))
    logits = model(tokens)
    batch, states = reading.states("test", np.array([0]))
    starts, ends = (each[0].tolist() for each in pieces(batch))
    for probe in range(2):
        shares = torch.exp(model.weights[probe]) * mask[probe]
        mixed = sum(share * state for share, state in zip(shares / shares.sum(), states[:, 0], strict=True))
        for edge, arc in enumerate(LONG["arcs"]):
            sides = []
            for side, span in enumerate((arc["span1"], arc["span2"])):
                of = [mixed[place] for place in range(starts[span[0]], ends[span[1] - 1])]
                project, attend = model.projections[side], model.attentions[side]
                vectors = [vector @ project.weight[probe] + project.bias[probe, 0] for vector in of]
                powers = [torch.exp(v @ attend.weight[probe] + attend.bias[probe, 0]) for v in vectors]
                sides.append(sum(p * v for p, v in zip(powers, vectors, strict=True)) / sum(powers))
            hidden = torch.tanh(torch.cat(sides) @ model.hidden.weight[probe] + model.hidden.bias[probe, 0])
            hidden = (hidden - hidden.mean()) / torch.sqrt(hidden.var(unbiased=False) + 1e-5)
            due = hidden @ model.output.weight[probe] + model.output.bias[probe, 0]
            assert torch.allclose(logits[probe, edge], due, atol=1e-5)


def test_probes_side_by_side_are_probes_alone():
    torch.manual_seed(0)
    inputs, targets = torch.randn(20, 3), torch.randn(20, 1)
    together, alone = Linear(3, 3, 1), Linear(1, 3, 1)
    start = {name: value[1:2].clone() for name, value in together.state_dict().items()}
    alone.load_state_dict(start)

    def errors(model):
        return (model(inputs.expand(len(model.weight), -1, -1)) - targets).square().mean((1, 2))

    ends = [
        train(model, lambda m=model: (errors(m) for _ in range(3)), lambda m=model: -errors(m).detach().numpy(), ENTRY)
        for model in (together, alone)
    ]
    assert torch.allclose(together.weight[1:2], alone.weight, atol=1e-6) and not torch.equal(
        start["weight"], alone.weight
    )
    assert ends[0][1] == pytest.approx(ends[1][0])


def test_each_probe_ends_with_its_best_epoch():
    model, seen = Linear(2, 1, 1), []
    worth = iter([[1.0, 1.0], [3.0, 0.5], [2.0, float("nan")], [2.5, 0.0], [2.5, 0.0]])

    def judge():
        seen.append(model.weight.detach().clone())
        return np.array(next(worth))

    found = train(
        model, lambda: [model.weight.sum((1, 2))], judge, ENTRY.model_copy(update={"epochs": 9, "patience": 2})
    )
    assert len(seen) == 4 and found == [{"epoch": 2, "choice": 3.0}, {"epoch": 1, "choice": 1.0}]
    assert torch.equal(model.weight[0], seen[1][0]) and torch.equal(model.weight[1], seen[0][1])


class Oracle(nn.Module):
    """Says of every edge that it is told of what is true, and one label more."""

    probes = 1

    def forward(self, tokens: Tokens):
        wrong = torch.zeros_like(tokens.gold)
        wrong[0] = 1
        return (tokens.gold + wrong).clamp(max=1).unsqueeze(0) - 0.5


def test_words_without_a_token_are_misses(cut_bench):
    reading = reading_of(cut_bench)
    split = reading.splits["test"]
    pieces_of = cut_bench.store.batch("test", [0]).first_pieces[0].tolist()
    told = [arc for arc in LONG["arcs"] if all(pieces_of[arc[s][0]] >= 0 for s in ("span1", "span2"))]
    assert 0 < len(told) < 5
    labels = len(reading.labels)
    due = 2 * len(told) / (5 + len(told) + labels - 1)
    assert scores(reading, Oracle(), split) == pytest.approx([due])


@pytest.mark.parametrize("target, count", [("upos", 4), ("entities", 2)])
def test_tags_and_spans_are_edges(bench, target, count):
    reading = reading_of(bench, target)
    frame, split = bench.corpus.frame("train"), reading.splits["train"]
    assert not reading.pairs and len(reading.labels) == count
    tags = [[(word, tag) for word, tag in enumerate(tags) if tag != "O"] for tags in frame[target]]
    found = [[] for _ in tags]
    for row, (start, end, *_), (label,) in zip(split.of, split.ends, split.labels, strict=True):
        assert end == start + 1
        found[row].append((start, ("B-" if target == "entities" else "") + reading.labels[label]))
    assert found == tags


def test_the_records_of_edge_probing(bench, tmp_path):
    settings = {"projection": 8, "hidden": 8, "dropout": 0.1, "rate": 3e-2, "epochs": 20}
    spec = bench.probe_spec("edge", "upos", **settings)
    out = bench.step("probe", spec, tmp_path / "out")
    record = json.loads((out / "metrics.json").read_text())
    assert record["main"] == "edge_f1" and [end["layer"] for end in record["layers"]] == [0, 1, 2, 3]
    for end in record["layers"]:
        assert len(end["mix"]["weights"]) == end["layer"] + 1 and sum(end["mix"]["weights"]) == pytest.approx(1)
        assert end["scores"]["validation"]["edge_f1"] > record["majority"]["validation"]["edge_f1"]
    assert record["layers"][0]["mix"]["scores"] == record["layers"][0]["scores"]


DET = {"span1": [0, 1], "span2": [1, 2], "label": "det"}
ALONE = [edge | {"span2": None} for edge in LONG["arcs"]]


@pytest.mark.parametrize(
    ("edges", "sentence"),
    [
        ([[DET] * 9], "task t: a probe needs two training rows, to fit and to choose by: take a larger subset"),
        ([[DET], [DET]], "task t: 2 labelled spans to fit for 6 labels; a probe needs at least one for each"),
        ([[DET] * 4, [DET] * 4], r"task t: the training rows of the subset have a single label \('det'\)"),
        ([LONG["arcs"], ALONE], "some edges of train have one span and others two; all need the same"),
    ],
)
def test_too_little_to_tell(bench, tmp_path, edges, sentence):
    corpus = tree_corpus(tmp_path, train=[LONG | {"arcs": found} for found in edges])
    with pytest.raises(UserError, match=sentence):
        EdgeReading(bench.probe_spec("edge", "arcs"), replace(bench.inputs(), corpus=corpus))
