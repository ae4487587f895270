"""CORAL: its closed forms, the batch's loss against a calculation by hand, and a run that brings domains together."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from plans import plan_of
from thaw.core.digests import canonical
from thaw.encoders.transformers import Encoder
from thaw.papers.coral import coral, covariance
from thaw.planning.questions import Questions
from thaw.training.objectives import Supervised
from thaw.training.run_inputs import Inputs
from thaw.training.training_run import TrainingRun
from tiny_corpus import Bench, small_bert

PHASE = {"train": ["head", {"top": 1}], "epochs": 2, "coral": {"to": "other", "weight": 100.0}}


bench = pytest.fixture(scope="module")(small_bert)


def test_the_distance_of_covariances_in_closed_form():
    vectors = torch.randn(50, 4, generator=torch.Generator().manual_seed(1))
    assert np.allclose(covariance(vectors).numpy(), np.cov(vectors.numpy().T), atol=1e-6)
    assert coral(vectors, vectors + 7.0).item() == pytest.approx(0.0, abs=1e-10)  # a shift moves no covariance
    # twice as wide: covariance 4 C, so the distance is 9 |C|^2 / (4 F^2)
    expected = 9 * np.square(np.cov(vectors.numpy().T)).sum() / (4 * 4**2)
    assert coral(vectors, 2 * vectors).item() == pytest.approx(expected, rel=1e-5)
    # a rotation by a right angle of diag(1, 0): (1 + 1) / (4 * 4)
    line = torch.tensor([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    assert coral(line, line[:, [1, 0]]).item() == pytest.approx(2 / 16)
    assert coral(vectors[:1], vectors[:1]).item() == 0.0


def run_of(bench: Bench, phase: dict) -> TrainingRun:
    """Return a run whose transfer set is its own dataset, under another task's name."""
    spec = bench.spec(phase)
    task = SimpleNamespace(task={"id": "other", "test": []}, corpus=bench.corpus, rows=dict, words=None)
    inputs = Inputs(bench.corpus, bench.store, bench.encoder, torch.device("cpu"), [(task, bench.store)])
    return TrainingRun(spec, inputs)


def test_the_loss_of_a_batch_is_the_tasks_and_the_weighted_distance(bench):
    run = run_of(bench, PHASE)
    stage = run.stages[0][0]
    trainer = run.trainable(SimpleNamespace(phase=run.phases[0], number=1), stage, [run])
    trainer.model.eval()
    rows = run.rows[:6]
    drawn = trainer.objective.drawn(rows)
    assert len(drawn) == 6 and np.array_equal(drawn, trainer.objective.drawn(rows))
    assert not np.array_equal(drawn, trainer.objective.drawn(run.rows[1:7]))
    batch, stored = trainer.loader("train", rows)
    found = trainer.objective.loss(trainer.model, rows, batch, stored).item()
    plain = Supervised(run.gold).loss(trainer.model, rows, batch, stored).item()
    whole = Encoder.load(bench.encoder).eval()
    vectors = [whole(bench.store.batch("train", chosen))[:, 0].detach().numpy() for chosen in (rows, drawn)]
    distance = np.square(np.cov(vectors[0].T) - np.cov(vectors[1].T)).sum() / (4 * vectors[0].shape[1] ** 2)
    assert found == pytest.approx(plain + 100 * distance, rel=1e-3)


OTHER = """corpora: {other: {texts: [sentence], targets: {label: label}, synthetic: acceptability}}
tasks:
  other: {corpus: other, target: label, type: classification, metrics: [accuracy]}
"""


def test_coral_on_stored_states_asks_for_the_training_rows_of_its_target(tmp_path):
    """It draws from all of them; test rows alone were once extracted, and the run was refused."""
    task = "{base: acceptability, transfer_sets: [{task: other}]}"
    (tmp_path / "tasks.yaml").write_text(f"{OTHER}  more: {task}\n")
    near = "{phases: [{train: [head, {top: 1}], coral: {to: other}}]}"
    (tmp_path / "strategies.yaml").write_text(f"strategies:\n  near: {near}\n")
    wish = {"catalogues": [str(tmp_path)], "strategies": ["near"], "tasks": ["more"], "baselines": [], "seeds": [1]}
    plan = plan_of(**wish)
    (job,) = plan.jobs["train"].values()
    assert Questions(plan).rows_read("minilm/other/joint") == canonical(
        [{"subset": {}, "transfer": job.spec["also"][0]["task"]}]
    )
