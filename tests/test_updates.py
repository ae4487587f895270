"""A budget of updates in the place of epochs: rounds, evaluations, stages, what it refuses; equal to equal epochs."""

from collections import Counter

import pytest

from test_stages import plan
from thaw.adaptation.stages import Round, epochs_of, lengths, rounds, stages_of
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.processes import Processes
from thaw.schema.phases import PhaseConfig
from thaw.training.model_trainer import ModelTrainer
from thaw.training.seeds_together import train_heads
from tiny_corpus import small_bert
from trained import equal, losses, tensors

bench = pytest.fixture(scope="module")(small_bert)
ROWS, BATCH = 24, 4  # of the bench: six updates are an epoch
TOP = {"train": ["head", {"top": 2}]}


def cut(stages: list[int], per_epoch: int = 6, **given) -> list[list[tuple]]:
    """Return the rounds of stages of so many updates, as pairs."""
    phase = PhaseConfig(train=["all"], updates=sum(stages), **given)
    return [[tuple(part) for part in stage] for stage in rounds(phase, [{"updates": n} for n in stages], per_epoch)]


def test_a_budget_is_evaluated_at_equal_distances():
    assert cut([400], judge=10) == [[(40, True)] * 10]
    assert cut([10], judge=3) == [[(3, True), (4, True), (3, True)]]
    assert cut([400]) == [[(40, True)] * 10] and cut([3]) == [[(1, True)] * 3]
    assert cut([7], judge=1) == [[(7, True)]] and cut([7], judge=7) == [[(1, True)] * 7]
    for updates in range(1, 60):
        for judge in range(1, updates + 1):
            (parts,) = cut([updates], judge=judge)
            assert len(parts) == judge and sum(n for n, _ in parts) == updates and max(parts)[0] - min(parts)[0] <= 1


def test_the_end_of_a_stage_cuts_a_round_and_is_no_evaluation():
    assert cut([15, 25], judge=4) == [[(10, True), (5, False)], [(5, True), (10, True), (10, True)]]
    assert cut([20, 20], judge=2) == [[(20, True)], [(20, True)]], "the end of a stage may be one of the evaluations"
    assert cut([4, 4, 4], judge=1) == [[(4, False)], [(4, False)], [(4, True)]]
    epochs = PhaseConfig(train=["all"], epochs=2)
    assert rounds(epochs, [{"epochs": 1}, {"epochs": 2}], 6) == [[Round(6)], [Round(6)] * 2]
    assert lengths(rounds(epochs, [{"epochs": 1}, {"epochs": 2}], 6)) == [6, 12]


def test_stages_share_the_updates():
    def shares(**unfreeze):
        phase = PhaseConfig(train=["all"], updates=40, unfreeze=unfreeze)
        (entry,) = plan(["all"], 3, updates=40, unfreeze=unfreeze)
        return [stage["updates"] for stage in stages_of(phase, entry)]

    assert shares() == [8] * 5, "head, three layers, embeddings"
    assert shares(layers=2) == [13, 14, 13]


def test_a_budget_of_whole_epochs_is_those_epochs_to_the_bit(bench):
    """With an evaluation for each epoch: one and the same training, its history and cost included."""
    for more in ({"pick": "best"}, {"unfreeze": {"layers": 2}}, {"schedule": "cosine", "patience": 1}):
        common = {"train": ["all"]} | more
        early = 0 if "unfreeze" not in more else 2  # head; two layers; the third; the embeddings: four stages
        epochs = bench.spec(common | {"epochs": 3 - early if early else 3})
        stages = len(epochs["phases"][0].get("stages", [1]))
        total = 6 * (stages if early else 3)
        budget = bench.spec(common | {"updates": total, "judge": total // 6})
        (_, one), (_, other) = bench.train(epochs), bench.train(budget)
        assert equal(tensors(one), tensors(other)) and one.cost == other.cost, more
        assert losses(one) == losses(other) and [n["rate"] for n in one.history] == [n["rate"] for n in other.history]
        assert one.outcome["scores"] == other.outcome["scores"]
        assert one.outcome["chosen"] == other.outcome["chosen"]


def test_a_budget_ends_within_an_epoch_and_goes_through_the_rows_evenly(bench, monkeypatch):
    seen, losses_of = [], ModelTrainer.losses

    def noted(self, positions):
        seen.append(self.rows[positions].tolist())
        return losses_of(self, positions)

    monkeypatch.setattr(ModelTrainer, "losses", noted)
    _, left = bench.train(bench.spec(TOP | {"updates": 15, "judge": 4}))
    assert len(seen) == 15 == left.cost["steps"]
    for first in (0, 6):
        assert len({row for batch in seen[first : first + 6] for row in batch}) == ROWS, "an epoch has each row once"
    assert set(Counter(row for batch in seen for row in batch).values()) == {2, 3}
    assert seen[:6] != seen[6:12], "each epoch has its own order"
    scored = {note["step"]: note["validation"] for note in left.history if note["validation"] is not None}
    assert list(scored) == [4, 8, 11, 15]
    assert left.history[-1]["rate"] < 0.1 * max(note["rate"] for note in left.history), "the schedule spans the budget"


def test_validation_is_scored_where_a_rule_or_judge_asks_for_it(bench):
    def scores(**given):
        left = bench.train(bench.spec(TOP | {"updates": 20} | given))[1]
        return [note["step"] for note in left.history[:-1] if note["validation"] is not None]

    assert scores() == [], "the last row has the score of the end"
    assert scores(judge=2) == [10]
    assert scores(pick="best") == list(range(2, 20, 2)), "ten times"


def test_the_best_evaluation_is_kept_and_patience_counts_evaluations(bench):
    wild = TOP | {"updates": 20, "judge": 5, "rate": 1.0, "head_rate": 1.0, "clip": None, "pick": "best"}
    _, left = bench.train(bench.spec(wild))
    scored = [note["validation"] for note in left.history if note["validation"] is not None]
    assert len(scored) == 5
    assert left.outcome["chosen"]["epochs"] == [scored.index(max(scored)) + 1]
    assert left.outcome["scores"]["validation"]["accuracy"] == max(scored)
    still = TOP | {"updates": 20, "judge": 10, "rate": 1e-30, "head_rate": 1e-30, "weight_decay": 0.0, "patience": 2}
    assert bench.train(bench.spec(still))[1].cost["steps"] == 6, "the first of ten evaluations, and two more"


def test_the_plan_counts_a_budget_by_the_rows():
    """400 updates of 16 on 800 rows are eight epochs, whatever the stages."""
    phase = PhaseConfig(train=["all"], updates=400, batch_size=16, unfreeze={})
    (entry,) = plan(["all"], 3, updates=400, batch_size=16, unfreeze={})
    assert [epochs_of(phase, stage, 800) for stage in stages_of(phase, entry)] == [1.6] * 5
    assert epochs_of(PhaseConfig(train=["all"], epochs=3), {"epochs": 3}, 800) == 3


def test_heads_of_several_seeds_train_as_alone(bench):
    wanted = [bench.spec({"train": ["head"], "updates": 15, "judge": 4, "pick": "best"}, seed=n) for n in (1, 2, 3)]
    alone = [bench.train(one)[1] for one in wanted]
    together = train_heads([bench.run(one) for one in wanted], Stopwatch(), Processes(1))
    for one, other in zip(alone, together, strict=True):
        assert equal(tensors(one), tensors(other)) and one.history == other.history
        assert one.cost == other.cost and one.cost["steps"] == 15
    assert alone[0].history != alone[1].history
