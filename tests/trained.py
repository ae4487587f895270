"""What every training keeps, whatever trains: an encoder family, a head, a strategy, of Thaw's or one's own.

What a phase declares moves, everything else stays as it was to the bit, the loss on the training rows falls, and the
same seed gives the same numbers.
"""

import torch

from thaw.core.boundaries import cached_layers_read
from thaw.encoders.transformers import Encoder
from thaw.training.objectives import Supervised
from thaw.training.task_model import BatchLoader, TaskModel, resumed
from tiny_corpus import Bench

TRAINS = {"frozen": ["head"], "top_k": ["head", {"top": "k"}], "full": ["all"]}


def tensors(trained) -> dict[str, torch.Tensor]:
    """Return all tensors that a run leaves, of its encoder and its head."""
    return {**trained.encoder, **{f"head.{name}": value for name, value in trained.head.state_dict().items()}}


def equal(first: dict, second: dict) -> bool:
    """Tell whether two runs left the same tensors, to the bit."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def losses(trained) -> list[float]:
    """Return the losses in a run's history."""
    return [note["loss"] for note in trained.history]


def loss(run, model: TaskModel, loader: BatchLoader) -> float:
    """Return the loss on all training rows, in eval mode."""
    model.eval()
    with torch.no_grad():
        batch, stored = loader("train", run.rows)
        return model.head.loss(model(batch, stored), Supervised(run.gold).targets(run.head, run.rows, batch)).item()


def loss_before(bench: Bench, spec: dict, start) -> float:
    """Return the loss of a run that has not begun."""
    run = bench.run(spec, start)
    return loss(run, *resume(bench, spec, run, 0))


def resume(bench: Bench, spec: dict, run, phase: int = -1) -> tuple[TaskModel, BatchLoader]:
    """Return the model of a run as it is, and its loader, as one of its phases begins."""
    entry = spec["phases"][phase]
    encoder = resumed(
        bench.encoder, entry["boundary"], run.highest, run.trained, run.device, run.inserts, run.context.kept
    )
    return TaskModel(encoder, run.head, "fp32"), BatchLoader(bench.store, cached_layers_read([entry]), run.device)


def check_training(bench: Bench, spec: dict, start=None, again: bool = True, taught=None):
    """Train and check what every training keeps; train once more, `again`, where nothing else compares two runs.

    Args: what the run starts from and what its teacher gave, where it has them. Returns the run and what it leaves.
    """
    new = bench.run(spec, start)
    fresh, begun = {name: value.clone() for name, value in new.head.state_dict().items()}, dict(new.trained)
    run, trained = bench.train(spec, start, taught=taught)
    declared = {part for phase in spec["phases"] for part in phase["components"]}
    moved = {name: not torch.equal(value, fresh[name]) for name, value in trained.head.state_dict().items()}
    trainable = {name for name, value in new.head.named_parameters() if value.requires_grad}
    odd = [name for name, found in moved.items() if found != ("head" in declared and name in trainable)]
    assert odd == [], "these tensors of the head did not move, or did so unasked"
    pretrained = Encoder.load(bench.encoder).components()
    encoder = run.evaluator.encoder
    if encoder is None:  # the last phase trains a head on constant vectors
        before = {name: value for named in pretrained.values() for name, value in named} | begun
        asked = {name for part in declared - {"head"} for name, _ in pretrained[part]}
        assert {name for name, value in trained.encoder.items() if not torch.equal(value, before[name])} == asked
    else:
        kept = encoder.tensors(declared - {"head"})
        now = {name: value for named in encoder.components().values() for name, value in named} | kept
        for part, named in pretrained.items():
            before = {name: begun.get(name, value) for name, value in named if name in now}
            moved = {name for name, value in before.items() if not torch.equal(value, now[name])}
            assert moved == {name for name, _ in named if name in kept}, f"some of {part} moved, or did not, unasked"
    at_first, after = loss_before(bench, spec, start), loss(run, *resume(bench, spec, run))
    assert after < at_first, f"the loss on the training rows was {at_first:.4g} and is {after:.4g}"
    if again:
        _, second = bench.train(spec, start, taught=taught)
        assert second.outcome == trained.outcome, "the same seed gave other scores"
        assert second.history == trained.history, "the same seed gave other losses"
    return run, trained
