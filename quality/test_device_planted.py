"""Mistakes of devices, planted: the two that the code had, and a dozen more. The tests of devices catch each.

`pytest -s quality/test_device_planted.py` prints what was planted and what caught it. Each mistake leaves every result
on a CPU as it is. Without the pretended device (tests/pretended.py) nothing would see it before a first day on a card.
"""

import pytest
import torch
from torch.nn import functional

import test_device_runs
from pretended import pretended
from test_contract_head import trained_on
from test_device_runs import going_on, stopped
from test_progress import WAYS
from thaw.encoders import dropout
from thaw.evaluation.result_files import select_rows
from thaw.features.batch import Batch
from thaw.heads import bilstm, linear, pooling
from thaw.heads.base import IGNORED, Head
from thaw.heads.crf import LinearChainCrf
from thaw.papers import sim_transformer
from thaw.schema.head import HeadConfig as Entry
from thaw.training import batched_heads, head_vectors
from thaw.training.objectives import Supervised
from thaw.training.progress import Progress
from thaw.training.run_state import RunState
from thaw.training.task_model import BatchLoader

benches, bench = test_device_runs.benches, test_device_runs.bench
CPU = torch.device("cpu")


def words_as_they_were(self, head, rows, batch):
    """Return targets as `targets` and `word_targets` did: made on the CPU, masked by what is on the card."""
    chosen = select_rows(self.gold, rows)
    if not head.words:
        return torch.as_tensor(chosen, device=batch.mask.device)
    targets = torch.full(batch.first_pieces.shape, IGNORED)
    for row, sentence in enumerate(chosen):
        targets[row, : len(sentence)] = torch.tensor(sentence)
    return targets.masked_fill(batch.first_pieces < 0, IGNORED)


def start_as_it_was(plant):
    """Let a run go on with its start where the file was read to: on the CPU."""
    resume = Progress.resume

    def resumed(self, training):
        start = self._part("start")
        resume(self, training)
        training.states[0].start = start

    plant(Progress, "resume", resumed)


def targets_on_the_cpu(plant):
    targets = Supervised.targets
    plant(Supervised, "targets", lambda self, head, rows, batch: targets(self, head, rows, batch).cpu())


def mask_on_the_cpu(plant):
    to = Batch.to

    def moved(self, device):
        found = to(self, device)
        object.__setattr__(found, "mask", self.mask)
        return found

    plant(Batch, "to", moved)


def class_weights_on_the_cpu(plant):
    def loss(self, logits, targets):
        return functional.cross_entropy(logits.float(), targets, weight=torch.ones(logits.shape[-1]))

    plant(Head, "loss", loss)


def lengths_counted_on_the_cpu(plant):
    def whole(self, states, mask):
        places = torch.arange(1, mask.shape[1] + 1)
        last = ((places * mask).amax(1).clamp(min=1) - 1).view(-1, 1, 1).expand(-1, 1, states.shape[-1] // 2)
        return states.chunk(2, -1)[0].gather(1, last).squeeze(1), states.chunk(2, -1)[1][:, 0]

    plant(bilstm.PackedBiLstm, "whole", whole)


def transitions_that_no_module_owns(plant):
    make = LinearChainCrf.__init__

    def made(self, tags):
        make(self, tags)
        self.forbidden = self._buffers.pop("forbidden")

    plant(LinearChainCrf, "__init__", made)


def positions_on_the_cpu(plant):
    positions = sim_transformer.positions
    plant(sim_transformer, "positions", lambda count, width, device: positions(count, width, CPU))


def start_kept_on_the_cpu(plant):
    enter = RunState.enter

    def entered(self, parts, staged):
        enter(self, parts, staged)
        self.start = {name: tensor.cpu() for name, tensor in self.start.items()}

    plant(RunState, "enter", entered)


def moments_on_the_cpu(plant):
    resume = Progress.resume

    def resumed(self, training):
        resume(self, training)
        for held in training.optimizer.state.values():
            held.update({name: value.cpu() for name, value in held.items() if torch.is_tensor(value)})

    plant(Progress, "resume", resumed)


def dropout_drawn_on_the_cpu(plant):
    plant(dropout.FastDropout, "forward", lambda self, values: values * dropout.noise(values.shape, 0.1))


def noise_that_stays_on_the_cpu(plant):
    plant(
        batched_heads.BatchedDropout,
        "forward",
        lambda self, values: values * dropout.noise(values.shape, 0.1, self.sources),
    )


def places_on_the_cpu(plant):
    def read(states, batch):
        where = batch.host.first_pieces.clamp(min=0).unsqueeze(-1).expand(-1, -1, states.shape[-1])
        return states.gather(1, where)

    plant(linear, "word_states", read)


def logits_read_by_numpy(plant):
    to_predictions = head_vectors.Vectors.to_predictions

    def read(self, rows, logits, target):
        return to_predictions(self, rows, torch.from_numpy(logits.numpy()), target)

    plant(head_vectors.Vectors, "to_predictions", read)


def states_that_are_not_sent(plant):
    plant(
        BatchLoader,
        "__call__",
        lambda self, split, rows: (
            (batch := self.store.batch(split, rows)).to(self.device),
            {n: self.store.states(n, split).gather(rows, batch) for n in self.boundaries},
        ),
    )


def a_query_that_is_no_parameter(plant):
    make = pooling.Attention.__init__

    def made(self, width):
        make(self, width)
        del self.query
        self.query = torch.zeros(width)

    plant(pooling.Attention, "__init__", made)


def trained(*case) -> None:
    """Train a head on the pretended device; see `trained_on`."""
    with pretended() as device:
        trained_on(device, *case)


def crf(bench, folder, monkeypatch):
    """Train a tagger of linear scores and a chain."""
    trained(Entry(kind="crf"), "spans", False)


def text(kind="linear", **entry):
    """Return what trains a head on two texts."""
    return lambda bench, folder, monkeypatch: trained(Entry(kind=kind, **entry), "pair_classification", True)


def run_of(**phase):
    """Return what trains a run of one phase."""

    def ran(bench, folder, monkeypatch):
        with pretended() as device:
            going_on(bench, bench.spec({"epochs": 1} | phase), folder, device)

    return ran


def goes_on(way: str):
    """Return what stops a run and goes on with it."""

    def went(bench, folder, monkeypatch):
        with pretended() as device:
            spec = bench.spec(*WAYS[way])
            stopped(bench, spec, folder, device, monkeypatch)
            going_on(bench, spec, folder, device)

    return went


TWO_LAYERS = {"train": ["head", {"top": 2}]}
SMALL = {"options": {"size": 8}}
PLANTED = {
    "C1, targets of words as they were": (lambda plant: plant(Supervised, "targets", words_as_they_were), crf),
    "C2, the start of a run that goes on as it was": (start_as_it_was, goes_on("l2_to_start")),
    "targets on the CPU": (targets_on_the_cpu, text()),
    "a mask on the CPU": (mask_on_the_cpu, text(separate_pooling="max")),
    "class weights on the CPU": (class_weights_on_the_cpu, text()),
    "lengths counted on the CPU": (lengths_counted_on_the_cpu, text("bimpm", **SMALL)),
    "transitions that no module owns": (transitions_that_no_module_owns, crf),
    "positions on the CPU": (positions_on_the_cpu, text("sim_transformer", **SMALL)),
    "a start that is kept on the CPU": (start_kept_on_the_cpu, run_of(train=["all"], l2_to_start=0.1)),
    "moments of the optimizer on the CPU": (moments_on_the_cpu, goes_on("best")),
    "a dropout mask of a layer on the CPU": (dropout_drawn_on_the_cpu, run_of(**TWO_LAYERS)),
    "a dropout mask of heads on the CPU": (noise_that_stays_on_the_cpu, run_of(train=["head"])),
    "places of words on the CPU": (places_on_the_cpu, crf),
    "logits read by numpy": (logits_read_by_numpy, run_of(train=["head"])),
    "states that are not sent": (states_that_are_not_sent, text()),
    "a query that is no parameter": (a_query_that_is_no_parameter, text(separate_pooling="attention")),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_caught(name, bench, tmp_path, monkeypatch):
    plant, check = PLANTED[name]  # what is checked passes without the mistake: see the tests that it is taken from
    plant(monkeypatch.setattr)
    with pytest.raises((RuntimeError, TypeError), match="same device|cuda:0 device type tensor to numpy") as caught:
        check(bench, tmp_path, monkeypatch)
    print(f"\n{name}: {' '.join(str(caught.value).split())[:120]}")


def test_kept_weights_on_the_cpu_are_seen(bench, tmp_path, monkeypatch):
    """A copy may cross over, so that nothing fails: tests/test_device_runs.py asks where they are."""
    resume = Progress.resume

    def resumed(self, training):
        resume(self, training)
        (state,) = training.states
        state.kept = state.kept and (
            state.kept[0],
            {n: value.cpu() for n, value in state.kept[1].items()},
        )

    monkeypatch.setattr(Progress, "resume", resumed)
    with pytest.raises(AssertionError):
        test_device_runs.test_what_goes_on_is_on_the_device("best", bench, tmp_path, monkeypatch)
