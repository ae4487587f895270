"""Training: same seed same bytes, the store changes nothing, phases and starts carry on, runs end as they should."""

import json
import math

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.encoders.transformers import Encoder
from thaw.evaluation.result_files import scored_rows, scored_training_rows, task_with_defaults
from thaw.features.row_sets import batches
from thaw.features.store import FeatureStore
from thaw.steps.train import start
from thaw.training.checkpoints import Start
from thaw.training.model_trainer import shuffled_batches
from tiny_corpus import Bench, rows, small_bert, tiny_corpus
from trained import equal, losses, tensors

TOP = {"train": ["head", {"top": "k"}], "k": 1}
FULL = {"train": ["all"]}


bench = pytest.fixture(scope="module")(small_bert)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=300), st.integers(1, 9), st.integers(0, 5), st.booleans())
def test_batches_hold_every_row_once(lengths, size, seed, by_length):
    lengths = np.array(lengths)
    found = shuffled_batches(lengths, size, seed, by_length)
    assert sorted(np.concatenate(found)) == list(range(len(lengths)))
    assert len(found) == math.ceil(len(lengths) / size)
    assert sorted({len(batch) for batch in found} - {size}) in ([], [len(lengths) % size])


def test_batches_hold_rows_of_like_length_or_random_ones():
    lengths = np.random.default_rng(0).integers(1, 100, 6400)
    spread = [np.ptp(lengths[batch]) for batch in shuffled_batches(lengths, 32, 0)]
    assert np.mean(spread) < 4
    spread = [np.ptp(lengths[batch]) for batch in shuffled_batches(lengths, 32, 0, by_length=False)]
    assert np.mean(spread) == pytest.approx(98 * 31 / 33, abs=2), "the mean range of 32 draws among 1 to 99"
    assert list(shuffled_batches(lengths, 32, 0)[0]) != list(shuffled_batches(lengths, 32, 1)[0])


def test_scored_training_rows_are_500_at_most_and_follow_the_seed():
    chosen = np.arange(5000) * 2
    first = scored_training_rows(chosen, 1)
    assert len(first) == 500 and set(first) <= set(chosen) and list(first) == sorted(first)
    assert list(first) == list(scored_training_rows(chosen, 1)) != list(scored_training_rows(chosen, 2))
    assert list(scored_training_rows(np.array([3, 1]), 1)) == [1, 3]


def bench_layer(bench: Bench, component: str) -> list:
    return Encoder.load(bench.encoder).components()[component]


def test_records_of_a_run(bench, tmp_path):
    folder = bench.step("train", bench.spec(TOP), tmp_path / "run")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["rows"] == {"train": 24, "validation": 8, "test": 8}
    assert metrics["chosen"] == {"epochs": [2]}
    history = pandas.read_csv(folder / "history.csv")
    assert list(history) == ["phase", "epoch", "step", "loss", "rate", "validation_accuracy"]
    assert history["validation_accuracy"].iloc[-1] == metrics["scores"]["validation"]["accuracy"]
    assert history["step"].iloc[-1] == 12
    predictions = pandas.read_parquet(folder / "predictions.parquet")
    assert list(predictions) == ["split", "row", "prediction", "probabilities"]
    assert predictions.groupby("split").size().to_dict() == {"test": 8, "validation": 8}
    gold = bench.corpus.frame("test")["label"].tolist()
    right = (predictions[predictions["split"] == "test"]["prediction"].to_numpy() == gold).mean()
    assert right == metrics["scores"]["test"]["accuracy"]
    assert all(abs(sum(shares) - 1) < 1e-5 for shares in predictions["probabilities"])
    cost = json.loads((folder / "cost.json").read_text())
    layer = sum(parameter.numel() for _, parameter in bench_layer(bench, "layer.3"))
    assert cost["parameters"]["trained"] == layer + 2 * 32 + 2
    assert cost["steps"] == 12 and cost["tokens"] == 2 * bench.store.tokens("train")
    assert cost["seconds"]["total"] >= cost["seconds"]["train"] > 0 and cost["flops"] > 0


def test_of_a_subset_with_scored_rows_no_other_row_is_predicted(bench, tmp_path):
    subset = {"rows": 12, "scored": 5}
    folder = bench.step("train", bench.spec(TOP) | {"subset": subset}, tmp_path / "run")
    metrics, task = json.loads((folder / "metrics.json").read_text()), task_with_defaults(bench.spec(TOP)["task"], {})
    assert metrics["rows"] == {"train": 12, "validation": 5, "test": 5}
    predictions, due = pandas.read_parquet(folder / "predictions.parquet"), scored_rows(task, bench.corpus, subset)
    for split, chosen in due.items():
        frame, found = bench.corpus.frame(split).iloc[chosen], predictions[predictions["split"] == split]
        assert found["row"].tolist() == frame["row"].tolist() and len(set(found["row"])) == 5
        right = (found["prediction"].to_numpy() == frame["label"].to_numpy()).mean()
        assert right == metrics["scores"][split]["accuracy"]
    other = scored_rows(task, bench.corpus, subset | {"draw": 2})
    assert any(other[split].tolist() != due[split].tolist() for split in due), "another draw scores other rows"


class OnTheFly(FeatureStore):
    """A store whose states are not read: the encoder runs again on each of the extraction's batches."""

    def __init__(self, folder, encoder):
        super().__init__(folder)
        self.encoder = Encoder.load(encoder)

    def states(self, boundary, split):
        return Computed(self, boundary, split)


class Computed:
    def __init__(self, store, boundary, split):
        self.rows = {}
        for chosen in batches(store.lengths(split)):
            found = store.encoder.states(store.batch(split, chosen), [boundary])[boundary]
            self.rows |= dict(zip(chosen.tolist(), found, strict=True))

    def gather(self, chosen, batch):
        longest = batch.mask.shape[1]
        states = torch.zeros(*batch.mask.shape, 32)
        for place, row in enumerate(np.asarray(chosen).tolist()):
            states[place] = torch.nn.functional.pad(self.rows[row], (0, 0, 0, longest))[:longest]
        return states.masked_fill(~batch.mask[:, :, None], 0.0)


def test_cached_is_uncached_to_the_bit_in_the_extractions_batches(bench):
    spec = bench.spec(TOP)
    _, stored = bench.train(spec)
    _, computed = bench.train(spec, store=OnTheFly(bench.features, bench.encoder))
    assert equal(tensors(stored), tensors(computed))
    assert stored.outcome == computed.outcome
    assert stored.history == computed.history


@pytest.mark.parametrize(("k", "way"), [(0, "by_length"), (1, "by_length"), (3, "by_length"), (1, "random")])
def test_cached_is_uncached_within_1e_5_in_the_training_batches(bench, k, way):
    phase = TOP | {"k": k, "rate": 1e-4, "head_rate": 1e-3, "batches": way}
    _, stored = bench.train(bench.spec(phase))
    _, computed = bench.train(bench.spec(phase | {"boundary": None}))
    assert losses(stored) == pytest.approx(losses(computed), abs=1e-5)
    for split in ("validation", "test"):
        first, second = (run.predictions[split].probabilities for run in (stored, computed))
        np.testing.assert_allclose(first, second, atol=1e-5)


def test_streams_are_separate(bench):
    """Runs of one seed share head and order of data, whatever else differs."""
    one, two = bench.run(bench.spec(TOP)), bench.run(bench.spec(FULL))
    assert equal(one.head.state_dict(), two.head.state_dict())
    assert not equal(one.head.state_dict(), bench.run(bench.spec(TOP, seed=2)).head.state_dict())
    undisturbed = bench.train(bench.spec(TOP))[1]
    torch.manual_seed(99)
    assert equal(tensors(undisturbed), tensors(bench.train(bench.spec(TOP))[1]))
    watched = bench.train(bench.spec(TOP | {"patience": 2}))[1]
    assert equal(tensors(undisturbed), tensors(watched))


def test_frozen_dropout_is_honoured(bench):
    plain, noisy = bench.spec(TOP | {"boundary": None}), bench.spec(TOP | {"frozen_dropout": True})
    assert noisy["phases"][0]["boundary"] is None
    quiet, loud = bench.train(plain)[1], bench.train(noisy)
    assert losses(quiet) != losses(loud[1])
    encoder = loud[0].evaluator.encoder.train()
    assert all(module.training for module in encoder.model.modules())
    before = Encoder.load(bench.encoder).components()
    for part, named in encoder.components().items():
        for (name, now), (_, then) in zip(named, before[part], strict=True):
            assert torch.equal(now, then) != (part == "layer.3"), name
            assert (now.grad is None) == (part != "layer.3")
    assert equal(tensors(loud[1]), tensors(bench.train(noisy)[1]))


def test_a_later_phase_goes_on_from_an_earlier_one(bench):
    still = {"rate": 1e-30, "head_rate": 1e-30, "weight_decay": 0.0, "epochs": 1}
    _, first = bench.train(bench.spec(TOP))
    for second in (TOP | still, TOP | still | {"k": 2}, FULL | still, {"boundary": 2} | still):
        _, both = bench.train(bench.spec(TOP, second))
        assert all(torch.equal(value, both.encoder[name]) for name, value in first.encoder.items())
        assert equal(first.head.state_dict(), both.head.state_dict())
        assert both.outcome["scores"] == first.outcome["scores"]
        assert both.outcome["chosen"] == {"epochs": [2, 1]}
    for boundary in (3, 2):
        phases = [TOP | {"k": 2}, {"train": ["head"], "boundary": boundary}]
        with pytest.raises(UserError, match="was trained before it|were trained before it"):
            bench.train(bench.spec(*phases))


def test_after_starts_from_the_earlier_runs_tensors(bench, tmp_path):
    earlier = bench.spec(TOP, keep=True)
    metrics = bench.step("train", earlier, tmp_path / "earlier") / "metrics.json"
    still = FULL | {"rate": 1e-30, "head_rate": 1e-30, "weight_decay": 0.0}
    after, needs = {"run": digest(earlier), "epoch": "last"}, ("--need", "start", metrics)
    folder = bench.step("train", bench.spec(still, after=after), tmp_path / "later", *needs)
    scores = [json.loads(path.read_text())["scores"] for path in (metrics, folder / "metrics.json")]
    assert scores[0] == scores[1]
    moved = bench.step("train", bench.spec(FULL, after=after, keep=True), tmp_path / "moved", *needs)
    assert len(load_file(moved / "encoder.safetensors")) > len(load_file(metrics.parent / "encoder.safetensors"))
    with pytest.raises(UserError, match="kept its last epoch"):
        start(bench.spec(FULL, after=after | {"epoch": "best"}), {"start": metrics})
    (metrics.parent / "encoder.safetensors").unlink()
    with pytest.raises(UserError, match="must say keep: true"):
        start(bench.spec(FULL, after=after), {"start": metrics})
    with pytest.raises(UserError, match="was planned for"):
        bench.step("train", bench.spec(FULL, after=after | {"run": "0" * 16}), tmp_path / "other", *needs)
    with pytest.raises(UserError, match="no file was given"):
        bench.step("train", bench.spec(FULL, after=after), tmp_path / "other")


def test_a_start_of_another_encoder_is_refused(bench):
    state = bench.run(bench.spec(TOP)).head.state_dict()
    with pytest.raises(UserError, match="has no tensor nowhere of shape"):
        bench.train(bench.spec(FULL), start=Start(state, {"nowhere": torch.zeros(2)}))


def test_patience_stops_and_best_is_kept(bench):
    still = TOP | {"rate": 1e-30, "head_rate": 1e-30, "weight_decay": 0.0, "epochs": 9}
    _, trained = bench.train(bench.spec(still | {"patience": 2}))
    assert trained.outcome["chosen"] == {"epochs": [3]}
    _, trained = bench.train(bench.spec(still | {"patience": 2, "pick": "best"}))
    assert trained.outcome["chosen"] == {"epochs": [1]}
    learning = TOP | {"epochs": 6, "pick": "best", "rate": 5e-3}
    _, trained = bench.train(bench.spec(learning))
    watched = [note["validation"] for note in trained.history if note["validation"] is not None]
    assert len(watched) == 6
    assert trained.outcome["chosen"]["epochs"] == [watched.index(max(watched)) + 1]
    assert trained.outcome["scores"]["validation"]["accuracy"] == max(watched)


def test_precision_bf16_is_another_and_finite(bench):
    fp32, bf16 = (bench.train(bench.spec(TOP | {"precision": precision}))[1] for precision in ("fp32", "bf16"))
    assert losses(fp32) != losses(bf16)
    assert losses(fp32) == pytest.approx(losses(bf16), abs=0.2)
    assert all(value.dtype == torch.float32 for value in tensors(bf16).values())


def test_a_loss_that_is_not_finite_ends_the_run_with_a_flag(tmp_path):
    huge = [row | {"score": row["score"] * 1e30} for row in rows("regression", 24, 1)]
    corpus = tiny_corpus(tmp_path / "corpus", "regression", train=huge)
    bench = Bench(tmp_path, "bert", corpus, "regression")
    folder = bench.step("train", bench.spec(TOP | {"epochs": 5}, TOP), tmp_path / "run")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["flags"][0] == "diverged"
    assert metrics["chosen"] == {"epochs": [0]}
    assert len(pandas.read_csv(folder / "history.csv")) == 1
    assert len(pandas.read_parquet(folder / "predictions.parquet")) == 16


def test_words_that_were_cut_off_are_predicted_as_outside_and_count_as_wrong(tmp_path):
    bench = Bench(tmp_path, "bert", tiny_corpus(tmp_path / "corpus", "spans"), "spans", max_length=10)
    folder = bench.step("train", bench.spec(TOP), tmp_path / "run")
    predictions = pandas.read_parquet(folder / "predictions.parquet")
    words = [len(tags) for split in ("validation", "test") for tags in bench.corpus.frame(split)["tags"]]
    assert [len(tags) for tags in predictions["prediction"]] == words
    assert all(tags[-1] is None for tags in predictions["prediction"] if len(tags) > 12)
    spec = bench.spec(TOP)
    _, trained = bench.train(spec | {"task": spec["task"] | {"metrics": ["accuracy"]}})
    predicted = trained.predictions["test"].values
    gold = bench.corpus.targets({"target": "tags"}, "test")
    right = sum(a == b for x, y in zip(predicted, gold, strict=True) for a, b in zip(x, y, strict=True))
    assert trained.outcome["scores"]["test"]["accuracy"] == right / sum(map(len, gold))
    assert any(-1 in tags for tags in predicted)
