"""Pooled states of all layers in the store: what they hold, who reads them, and that they are made again."""

import json

import numpy as np
import pytest
import torch

from plans import plan_of
from test_pairs_plan import job
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.errors import UserError
from thaw.features.payload import floats
from thaw.features.store import FeatureStore
from thaw.planning import cost_estimate
from thaw.planning.plan import Plan
from thaw.planning.questions import Questions
from thaw.training.head_fitting import HeadFit
from tiny_corpus import Bench, tiny_corpus

KINDS = ("classification", "pair_classification", "regression", "spans")
CONCAT = {"layers": {"combine": "concat"}, "pooling": "mean", "separate_pooling": "mean"}
LAYERS = 3


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    """A bench in fp32 for each type of task, with pooled states; of pairs one in each view."""
    folder, made = tmp_path_factory.mktemp("pooled"), {}
    for kind in KINDS:
        corpus = tiny_corpus(folder / kind / "data", kind)
        for view in ["joint", "separate"] if kind.startswith("pair") else ["joint"]:
            bench = made[kind, view] = Bench(folder / kind / view, "bert", corpus, kind, pairs=view)
            bench.extract(*(["words"] if kind == "spans" else ["pooled"]))
    return made


def spec_of(bench: Bench, head: dict, vectors: str | None, top: int = LAYERS) -> dict:
    """Return the spec of a fit on all layers, from pooled states or, without `vectors`, from those of tokens."""
    stated = {"vectors": vectors} if vectors else {"reads": list(range(top))}
    phase = {"optimizer": "lbfgs", "l2": [1e-2, 1.0], "boundary": top} | stated
    return {key: value for key, value in bench.spec(phase, head=head).items() if key != "seed"}


def test_word_states_are_those_of_first_pieces_bit_for_bit(benches):
    bench = benches["spans", "joint"]
    rows = np.array([5, 0, 3])
    stored, dtype = bench.store.vectors("words", "train", rows)
    batch = bench.store.batch("train", rows)
    for n in range(LAYERS + 1):
        states = bench.store.states(n, "train").gather(rows, batch)
        words = [states[i, piece] for i in range(3) for piece in batch.first_pieces[i] if piece >= 0]
        assert torch.equal(floats(stored, dtype)[:, n], torch.stack(words))
    assert np.array_equal(bench.store.vectors("words", "train", rows, [3, 1])[0], stored[:, [3, 1]])


def test_only_the_layers_and_poolings_that_are_asked_for_are_read(benches):
    store, rows = benches["classification", "joint"].store, np.array([4, 1])
    whole, _ = store.vectors("pooled", "train", rows)
    assert np.array_equal(store.vectors("pooled", "train", rows, [2, 0], [1])[0], whole[:, [2, 0]][:, :, [1]])


HEADS = [
    CONCAT,
    CONCAT | {"pooling": ["mean", "max", "first"], "separate_pooling": ["mean", "max", "first"]},
    {"layers": {"layer": 1}, "pooling": "max", "separate_pooling": "max"},
    {"layers": {"combine": "concat", "last": 2}},
]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    ("kind", "view"), [(k, v) for k in KINDS for v in ("joint", "separate") if v != "separate" or k[:4] == "pair"]
)
def test_a_fit_on_pooled_states_is_that_on_tokens(benches, kind, view, head):
    bench, top = benches[kind, view], head["layers"].get("layer", LAYERS)
    part, fits = "words" if kind == "spans" else "pooled", []
    for vectors in (part, None):
        fit = HeadFit(spec_of(bench, head, vectors, top), bench.inputs())
        read = fit.reader(fit.head)
        rows = fit.context.rows["train"]
        fits.append((read(bench.store, "train", rows, fit.context.word_counts("train", rows)), fit.run(Stopwatch())))
    (pooled, first), (tokens, second) = fits
    assert torch.equal(pooled.values, tokens.values)
    assert first.choice_score == second.choice_score and first.solution.l2 == second.solution.l2
    assert torch.equal(first.solution.weight, second.solution.weight)
    if kind == "spans":
        assert first.predictions["test"].values == second.predictions["test"].values


@pytest.mark.parametrize("combine", ["mean", "sum"])
def test_layers_that_are_added_up_may_be_pooled_first(benches, combine):
    bench, head = benches["classification", "joint"], CONCAT | {"layers": {"combine": combine}}
    read = []
    for vectors in ("pooled", None):
        fit = HeadFit(spec_of(bench, head, vectors), bench.inputs())
        read.append(fit.reader(fit.head)(bench.store, "train", fit.context.rows["train"], None).values)
    assert torch.allclose(*read, atol=1e-5)


def test_a_word_that_was_cut_off_has_no_state(tmp_path):
    corpus = tiny_corpus(tmp_path / "data", "spans")
    bench = Bench(tmp_path, "bert", corpus, "spans", max_length=12)
    bench.extract("words")
    predicted = [
        HeadFit(spec_of(bench, CONCAT, vectors), bench.inputs()).run(Stopwatch()).predictions["test"].values
        for vectors in ("words", None)
    ]
    assert predicted[0] == predicted[1] and any(-1 in tags for tags in predicted[0])


def test_a_new_task_on_a_known_corpus_opens_no_weights_of_the_encoder(tmp_path):
    corpus = tiny_corpus(tmp_path / "data", "classification")
    bench = Bench(tmp_path, "bert", corpus, "classification")
    bench.extract("pooled")
    (bench.encoder / "model.safetensors").unlink()
    for n in range(LAYERS + 1):
        bench.store.payload_path(n).unlink()
    out = bench.step("fit_heads", spec_of(bench, CONCAT, "pooled"), tmp_path / "run", "--seeds", 1)
    cost = json.loads((out / "seed1/cost.json").read_text())
    metrics = json.loads((out / "seed1/metrics.json").read_text())
    assert "accuracy" in metrics["scores"]["test"] and cost["flops"] > 0


def test_what_a_killed_extraction_left_goes_with_the_next_one(tmp_path):
    """Payloads have their full size from the start, and nobody sees their hidden names."""
    bench = Bench(tmp_path, "bert", tiny_corpus(tmp_path / "data", "regression"), "regression")
    bench.features.mkdir(parents=True, exist_ok=True)
    left = bench.features / ".pooled.safetensors.k1ll3d.safetensors"
    left.write_bytes(b"0" * 100)
    bench.extract("pooled")
    assert not left.exists() and bench.store.payload_path("pooled").is_file()


@pytest.mark.parametrize("part", ["pooled", "words"])
def test_a_payload_that_was_freed_is_made_again_the_same(tmp_path, part):
    kind = "spans" if part == "words" else "regression"
    bench = Bench(tmp_path, "bert", tiny_corpus(tmp_path / "data", kind), kind, dtype="bf16")
    bench.extract(part)
    path = bench.store.payload_path(part)
    before = path.read_bytes()
    path.unlink()
    bench.step("fit_heads", spec_of(bench, CONCAT, part), tmp_path / "run", "--seeds", 1)
    assert path.read_bytes() == before
    path.write_bytes(before[:-1] + b"\7")
    with pytest.raises(UserError, match=f"{part}.safetensors is not the file that its card describes"):
        FeatureStore(bench.features).require([part])


def test_states_of_words_are_of_corpora_of_words(benches):
    with pytest.raises(UserError, match="mine has no column of words, and so no states of words; ask for pooled"):
        benches["regression", "joint"].extract("words")


def plan_on(*strategies, **changes) -> Plan:
    usual = {"tasks": ["paraphrase"], "seeds": [1], "outputs": ["main_table"], "baselines": []}
    return plan_of(strategies=list(strategies), **(usual | changes))


def test_a_run_with_reads_asks_for_pooled_states_and_for_no_others():
    plan = plan_on("linear_probe_all_layers")
    run, stores = (
        job(plan, strategy="linear_probe_all_layers"),
        [f"minilm/paraphrase/{view}" for view in ("joint", "separate")],
    )
    assert run.spec["phases"][0]["vectors"] == "pooled" and "reads" not in run.spec["phases"][0]
    assert run.inputs["boundaries"] == [f"results/features/{store}/pooled.json" for store in stores]
    assert [plan.cards(store)[1:] for store in stores] == [[card] for card in run.inputs["boundaries"]]
    both = plan_on("linear_probe", "linear_probe_all_layers")
    assert both.cards(stores[0])[1:] == [f"results/features/{stores[0]}/{name}.json" for name in ("b6", "pooled")]
    assert both.job("features", stores[0]).spec == plan.job("features", stores[0]).spec
    assert job(both, strategy="linear_probe").spec == job(plan_on("linear_probe"), strategy="linear_probe").spec
    assert "vectors" not in job(both, strategy="linear_probe").spec["phases"][0]


@pytest.mark.parametrize(
    ("reads", "vectors"),
    [
        ("{layers: {combine: concat}, pooling: max}", "pooled"),
        ("{layers: {combine: sum}, pooling: max}", None),
        ("{layers: {combine: sum}, pooling: mean}", "pooled"),
        ("{layers: {combine: concat}, pooling: last}", None),
        ("{layers: {layer: 2}, pooling: [mean, max]}", "pooled"),
        ("{layers: {layer: lowest}, pooling: mean}", "pooled"),
    ],
)
def test_what_pooled_states_do_not_hold_is_read_from_tokens(tmp_path, reads, vectors):
    text = f"strategies: {{mine: {{reads: {reads}, phases: [{{train: [head], optimizer: lbfgs}}]}}}}\n"
    (tmp_path / "strategies.yaml").write_text(text)
    run = job(plan_on("mine", catalogues=[str(tmp_path)]), strategy="mine")
    assert run.spec["phases"][0].get("vectors") == vectors


def test_pooled_states_are_kept_where_those_of_tokens_are_freed():
    plan = plan_on("linear_probe", "linear_probe_all_layers", store={"free": True})
    folder = "results/features/minilm/paraphrase/joint"
    assert Questions(plan).freed()[folder] == plan.files(
        "fit_heads", "runs/paraphrase/all/minilm/linear/linear_probe/base"
    )


def test_the_plan_counts_the_bytes_of_pooled_states():
    plan = plan_on("linear_probe_all_layers", tasks=["paraphrase", "entities"])
    found = {store.key: store for store in cost_estimate.stores(plan)}
    size = plan.catalogue.get("corpora", "paraphrase", "test").size
    vector = 2 * 384 * 7
    assert found["minilm/paraphrase/joint"].bytes == size.examples * 3 * vector
    assert found["minilm/paraphrase/separate"].bytes == 2 * size.examples * 3 * vector
    tokens = plan.catalogue.get("corpora", "entities", "test").size.tokens
    assert found["minilm/entities/joint"].bytes == tokens * vector
    assert cost_estimate.operations(plan, "features", "minilm/paraphrase/joint") > 0
