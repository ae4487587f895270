"""Faults planted in data, stores and our own code: each is caught by a check that a user sees.

`pytest -s tests/test_planted.py` prints what was planted, what caught it, and the share.
"""

import pytest
import torch

from shown import Shown
from thaw.adaptation.optimizers import AdamW
from thaw.core.errors import UserError
from thaw.declarations.flags import flag_label
from thaw.encoders.transformers import Encoder
from thaw.features.store import FeatureStore
from thaw.training import phase_loop, run_state
from tiny_corpus import Bench, rows, small_bert, tiny_corpus

LEARNING = {"train": ["head"], "epochs": 6, "head_rate": 3e-2}
PLANTED: dict[str, str] = {}


@pytest.fixture(scope="module", autouse=True)
def _share():
    """Print what was caught, when all are through."""
    yield
    for fault, told in PLANTED.items():
        print(f"\n{fault}: {told or 'NOT CAUGHT'}", end="")
    print(f"\nplanted faults caught: {sum(map(bool, PLANTED.values()))} of {len(PLANTED)}")


@pytest.fixture
def planted(request):
    """Record what caught the fault of a test; nothing, until it is caught."""
    name = request.node.name.removeprefix("test_").replace("_", " ")
    PLANTED[name] = ""

    def caught(told: str) -> None:
        PLANTED[name] = " ".join(told.split())[:160]

    return caught


bench = pytest.fixture(scope="module")(small_bert)


def flagged(shown: Shown, strategy: str, flag: str, seeds=(1,)) -> str:
    """Return the note under a strategy's table that tells a flag."""
    assert flag in shown.flags(strategy, seeds=seeds)
    notes = shown.table(strategy, seeds=seeds).splitlines()
    return next(line for line in notes if flag_label(flag).partition(",")[0] in line)


def swapped(split: list[dict]) -> list[dict]:
    """Return rows with their two labels swapped."""
    return [row | {"label": {"yes": "no", "no": "yes"}[row["label"]]} for row in split]


@pytest.mark.parametrize("share", ["all", "half"])
def test_test_rows_copied_into_train(share, planted, tmp_path):
    test = rows("classification", 12, 3)
    train = rows("classification", 24, 1) + (test if share == "all" else test[:6])
    corpus = tiny_corpus(tmp_path / "data", "classification", train=train, test=test)
    shown = Shown(Bench(tmp_path, "bert", corpus, "classification"), tmp_path / "results")
    shown.train("leaky", LEARNING)
    if share == "all":
        planted(flagged(shown, "leaky", "all_seen"))
    else:
        told = [line for line in shown.table("leaky").splitlines() if "share a sentence with train: t 50" in line]
        planted(told[0])


@pytest.mark.parametrize("split", ["train", "test"])
def test_labels_swapped_in(split, planted, tmp_path):
    made = {name: rows("classification", 24, seed) for seed, name in enumerate(("train", "validation", "test"), 1)}
    made[split] = swapped(made[split])
    bench = Bench(tmp_path, "bert", tiny_corpus(tmp_path / "data", "classification", **made), "classification")
    shown = Shown(bench, tmp_path / "results")
    shown.train("turned", LEARNING | {"train": ["all"], "rate": 3e-3})
    planted(flagged(shown, "turned", {"train": "below_majority", "test": "test_below_majority"}[split]))


def test_dropout_left_on_in_the_frozen_part(planted, bench, tmp_path, monkeypatch):
    monkeypatch.setattr(Encoder, "train", torch.nn.Module.train)
    monkeypatch.setattr(Encoder, "eval", lambda self: self.train())
    with pytest.raises(UserError, match="when it reads the same texts again") as told:
        extract_again(bench)
    planted(str(told.value))


def extract_again(bench, parts=(2, 3)) -> None:
    """Extract the features of a bench once more, beside those that it has."""
    from thaw.features.extract import StatesFormat, extract

    store, encoder = FeatureStore(bench.features), Encoder.load(bench.encoder)
    extract(store, encoder, list(parts), StatesFormat("fp32"), torch.device("cpu"))


def test_features_shifted_by_one_layer(planted, bench, monkeypatch):
    from thaw.features.payload import Payload

    put, turn = Payload.put, []

    def shifted(self, split, places, states):
        """Keep each boundary's states for the next one."""
        turn.append(states)
        put(self, split, places, turn[-2] if len(turn) % 2 == 0 else states)

    monkeypatch.setattr(Payload, "put", shifted)
    with pytest.raises(UserError, match="at boundary 3 when it reads the same texts again") as told:
        extract_again(bench)
    planted(str(told.value))


def test_one_of_several_layers_lost_below_another_of_large_values(planted, bench, monkeypatch):
    from thaw.features.parts import PooledSequences
    from thaw.features.payload import Payload

    values, put = PooledSequences.values, Payload.put
    scales = torch.tensor([1.0, 1.0, 1.0, 1000.0]).view(1, 4, 1, 1)
    monkeypatch.setattr(PooledSequences, "values", lambda *arguments: values(*arguments) * scales)
    extract_again(bench, ["pooled"])
    monkeypatch.setattr(Payload, "put", lambda self, split, places, states: put(self, split, places, lost(states)))

    def lost(states):
        """Return the states without those of layer 1."""
        return states * (torch.arange(4) != 1).view(1, 4, 1, 1)

    with pytest.raises(UserError, match="in part pooled when it reads the same texts again") as told:
        extract_again(bench, ["pooled"])
    planted(str(told.value))


def test_an_encoder_whose_layers_are_counted_from_one(planted, bench, tmp_path, monkeypatch):
    from thaw.encoders.parity import check_resume

    compute = Encoder.compute_boundaries
    top = bench.layers
    monkeypatch.setattr(
        Encoder,
        "compute_boundaries",
        lambda self, batch, wanted, state=None: {
            n: found
            for n, found in zip(
                wanted, compute(self, batch, [min(n + 1, top) for n in wanted], state).values(), strict=False
            )
        },
    )
    with pytest.raises(UserError, match="differs from its full pass") as told:
        check_resume(bench.encoder)
    planted(str(told.value))


def test_a_scheduler_that_never_steps(planted, bench, tmp_path, monkeypatch):
    first = phase_loop.lr_factor
    monkeypatch.setattr(
        phase_loop, "lr_factor", lambda entry, lengths, stage, step, batches: first(entry, lengths, 0, 0, batches)
    )
    shown = Shown(bench, tmp_path / "results")
    shown.train("stuck", LEARNING)
    planted(flagged(shown, "stuck", "rate_stuck"))


def test_a_rate_that_is_computed_and_never_reaches_the_optimizer(planted, bench, tmp_path, monkeypatch):
    class Deaf(AdamW):
        def step(self):
            """Put the peak rates back, and update with these."""
            for group in self.param_groups:
                group["lr"] = group["peak"]
            super().step()

    monkeypatch.setattr(phase_loop, "optimizer", lambda name, groups, betas: Deaf(groups))
    shown = Shown(bench, tmp_path / "results")
    shown.train("deaf", LEARNING)
    planted(flagged(shown, "deaf", "rate_stuck"))


def test_seeds_that_are_all_equal(planted, bench, tmp_path, monkeypatch):
    from thaw.core import runtime

    monkeypatch.setattr(runtime, "derive_seed", lambda seed, name: 7)
    monkeypatch.setattr(run_state.RunState, "stream", lambda self, purpose, epoch: (1, purpose))
    shown = Shown(bench, tmp_path / "results")
    shown.train("alike", LEARNING, seeds=(1, 2, 3))
    planted(flagged(shown, "alike", "same_seeds", seeds=(1, 2, 3)))
