"""What a run says it cost beside what torch counts while it trains: real updates, forward and backward."""

import pytest
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from thaw.training.phase_loop import PhaseTraining
from tiny_corpus import Bench, small_bert

bench = pytest.fixture(scope="module")(small_bert)


def said_and_counted(bench: Bench, monkeypatch, head=None, **phase) -> tuple[float, int]:
    """Return a run's own count, and torch's over its updates.

    Without the fused attention torch counts attention too; of an LSTM it counts the products wherever it trains.
    """
    update, counters = PhaseTraining._update, []

    def watched(*arguments):
        counters.append(FlopCounterMode(display=False))
        with counters[-1], sdpa_kernel(SDPBackend.MATH):
            return update(*arguments)

    monkeypatch.setattr(PhaseTraining, "_update", watched)
    _, trained = bench.train(bench.spec(phase | {"epochs": 1, "batch_size": 12}, head=head))
    return trained.cost["flops"], sum(counter.get_total_flops() for counter in counters)


@pytest.mark.parametrize("train, k", [(["all"], 0), (["head", {"top": "k"}], 1)])
def test_a_training_costs_what_torch_counts(bench, monkeypatch, train, k):
    said, counted = said_and_counted(bench, monkeypatch, train=train, k=k)
    assert said == pytest.approx(counted, rel=0.03)


def test_an_lstm_on_top_of_what_trains_is_counted(bench, monkeypatch):
    head = {"kind": "bilstm", "options": {"size": 32}}
    said, counted = said_and_counted(bench, monkeypatch, head, train=["head", {"top": "k"}], k=1)
    plain, _ = said_and_counted(bench, monkeypatch, train=["head", {"top": "k"}], k=1)
    assert said == pytest.approx(counted, rel=0.03) and said > 1.3 * plain


def test_a_head_on_cached_states_costs_its_own_products_alone(bench, monkeypatch):
    head = {"kind": "densenet", "options": {"size": 8}}
    said, counted = said_and_counted(bench, monkeypatch, head, train=["head"])
    # three times the way forward is the most: what reads frozen states needs no gradient of them
    assert counted <= said <= 1.5 * counted
