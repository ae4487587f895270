"""Heads of several runs, of other seeds or learning rates, trained together where they can be."""

from thaw.compute_cost.stopwatch import Stopwatch
from thaw.training.checkpoints import Trained
from thaw.training.training_run import TrainingRun, train


def train_heads(runs: list[TrainingRun], watch: Stopwatch) -> list[Trained]:
    """Train heads alone on constant vectors, the runs in one batch where batch size and length are the same.

    Heads of words are trained one run after the other, since sentences differ in length; so are all with an objective
    that has no loss of vectors.
    """
    groups: dict[tuple, list[int]] = {}
    for index, run in enumerate(runs):
        phase = run.phases[0]
        batched = not run.head.words and run.objective_of(phase).on_vectors and phase.schedule != "plateau"
        length = (phase.batch_size, phase.epochs, phase.updates, phase.judge)
        groups.setdefault((length, None if batched else index), []).append(index)
    trained = {}
    for group in groups.values():
        trained |= dict(zip(group, train([runs[index] for index in group], watch), strict=True))
    return [trained[index] for index in range(len(runs))]
