"""The picture of learning rates: each number is the one that training sets, and what cannot be drawn is said."""

import numpy as np
import pytest

import forked
from thaw.core.errors import UserError
from thaw.outputs.figures import learning_rates
from thaw.outputs.figures.learning_rates import EPOCH, draw, rates
from thaw.training.phase_loop import PhaseTraining
from tiny_corpus import Bench, tiny_corpus


def test_it_shows_what_training_sets(tmp_path, monkeypatch):
    """The rates of a run's own optimizer, update by update, are those of the picture at the same updates."""
    bench = Bench(tmp_path, "bert", tiny_corpus(tmp_path / "corpus", "classification"), "classification")
    seen, update = [], PhaseTraining._update

    def noted(self, *arguments):
        loss = update(self, *arguments)
        seen.append({group["component"]: group["lr"] for group in self.optimizer.param_groups})
        return loss

    monkeypatch.setattr(PhaseTraining, "_update", noted)
    monkeypatch.setattr("thaw.outputs.figures.learning_rates.EPOCH", 6)  # 24 rows in batches of 4
    phase = {"train": ["all"], "unfreeze": {"layers": 2}, "layer_decay": 0.5, "schedule": "cosine"}
    spec = bench.spec(phase, {"train": ["head", {"top": 1}], "epochs": 1, "boundary": None})
    bench.train(spec)
    drawn, epochs = rates(spec["phases"], 3)
    rows = ["head", "layer.3", "layer.2", "layer.1", "embeddings"]
    set_rates = np.array([[update.get(row, np.nan) for update in seen] for row in rows])
    assert epochs == [4, 1] and drawn.shape == (5, 30)
    np.testing.assert_allclose(drawn, set_rates)


def test_a_budget_is_drawn_in_hundreds_of_updates():
    budget = {"components": ["head", "layer.2"], "boundary": 1, "updates": 250}
    epochs = {"components": ["head"], "boundary": 2, "epochs": 2}
    drawn, lengths = rates([budget, epochs], 2)
    assert drawn.shape == (4, 450) and lengths == [2.5, 2.0]
    assert np.isnan(drawn[1, 250:]).all() and drawn[1, 249] < 0.01 * np.nanmax(drawn[1]), (
        "it falls over its own updates"
    )
    units = [learning_rates._unit(phases) for phases in ([budget], [epochs], [epochs, budget])]
    assert units == ["100 updates", "epoch", "epoch or 100 updates"]


def test_a_picture_in_each_form_and_what_cannot_be_drawn(tmp_path):
    phase = {"components": ["head", "layer.2"], "boundary": 1, "epochs": 1}
    for kind in ("svg", "png"):
        draw({"One": [phase], "Two": [phase, phase | {"layer_decay": 0.9}]}, 2, tmp_path / f"rates.{kind}")
        assert (tmp_path / f"rates.{kind}").stat().st_size > 5000
    with pytest.raises(UserError, match="must end in one of pdf, svg, png"):
        draw({"One": [phase]}, 2, tmp_path / "rates.txt")
    solved = {"components": ["head"], "boundary": 2, "optimizer": "lbfgs"}
    with pytest.raises(UserError, match="has a learning rate"):
        draw({"Frozen": [solved]}, 2, tmp_path / "rates.svg")
    assert rates([solved, phase], 2)[0].shape == (4, EPOCH)


def test_the_command_draws_strategies_of_the_catalogue(tmp_path):
    command = ["thaw.cli.main", "plan", "--rates", "ulmfit", "stack_then_finetune"]
    done = forked.run([*command, tmp_path / "rates.svg"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "<svg" in (tmp_path / "rates.svg").read_text()
    done = forked.run([*command, "ulmfi", tmp_path / "no.svg"])
    assert done.returncode == 1 and "did you mean 'ulmfit'" in done.stderr and not (tmp_path / "no.svg").exists()
