"""Tasks on one trunk: what is executed and stored, by closed form, and the choice of branches against brute force."""

import itertools
import random

import pytest

from thaw.core import branch_choice
from thaw.core.branch_choice import BranchSize, EncoderSize, Offer, choose, executed

# Frozen and own layers as Wei et al. 2022 state them for RTE (7 + 5), CoLA (4 + 8), MNLI (4 + 3) and QQP (2 + 1); those
# of the other four are ours, such that there are 26 own layers on a trunk of 7, as in the paper.
WEI = [BranchSize(7 - down, own) for down, own in ((0, 5), (3, 8), (3, 3), (5, 1), (0, 3), (1, 2), (2, 2), (2, 2))]
BERT = EncoderSize(23_837_184, 7_087_872, 12)
MINILM = EncoderSize(11_918_592, 1_774_464, 6)


def top_k(k: int, layers: int) -> BranchSize:
    """Return the branch of a run that trains the last k of L layers."""
    return BranchSize(layers - k, k)


def offers(rng: random.Random, layers: int, tasks: int, each: int) -> dict[str, list[Offer]]:
    """Return random offers; scores are of few values, so that ties occur."""
    drawn = {}
    for task in range(tasks):
        sizes = [BranchSize(f := rng.randint(0, layers), rng.randint(0, layers - f)) for _ in range(each)]
        drawn[f"t{task}"] = [Offer(f"{task}.{n}", size, rng.randint(70, 76)) for n, size in enumerate(sizes)]
    return drawn


def layers_of(choice: dict[str, Offer]) -> int:
    return executed(offer.size for offer in choice.values())


def test_the_papers_overhead_is_33_of_96_layers():
    assert executed(WEI) == 33 and sum(branch.own for branch in WEI) == 26 and 12 * len(WEI) == 96


def test_stored_parameters_of_the_papers_choice():
    poolers = [590_592] * 8
    merged, separate = branch_choice.stored_merged(WEI, BERT, poolers), branch_choice.stored_separate(BERT, poolers)
    assert (merged, separate) == (262_461_696, 875_857_920)
    assert merged / separate == pytest.approx(0.300, abs=5e-4)


def test_seven_tasks_of_minilm_with_one_layer_each():
    branches = [BranchSize(3, 1)] * 7
    share = branch_choice.stored_merged(branches, MINILM, [0] * 7) / branch_choice.stored_separate(MINILM, [0] * 7)
    assert executed(branches) == 10 and share == pytest.approx(0.188, abs=5e-4)


def test_lora_stores_little_and_is_no_branch():
    size = EncoderSize(100, 10, 4)
    assert branch_choice.stored_inserted(size, [3, 3], [2, 2]) == 100 + 40 + 6 + 4


def test_only_tasks_that_read_the_same_input_share_a_pass():
    branches = {"sick_e": BranchSize(4, 2), "sick_r": BranchSize(3, 2), "trec6": BranchSize(5, 1)}
    counted = branch_choice.executed_by_input(branches, {"sick_e": "pair", "sick_r": "pair", "trec6": "text"})
    assert counted == {"pair": 8, "text": 6}
    assert sum(counted.values()) > executed(branches.values())


def test_the_cheapest_choice_is_that_of_brute_force():
    for seed in range(200):
        rng = random.Random(seed)
        drawn = offers(rng, rng.choice([4, 6, 12]), rng.randint(1, 4), rng.randint(1, 5))
        margin = rng.choice([0, 1, 2.5, 10])
        near = [[o for o in some if o.score >= max(p.score for p in some) - margin] for some in drawn.values()]
        expected = min(executed(offer.size for offer in choice) for choice in itertools.product(*near))
        chosen = choose(drawn, "cheapest", margin)
        assert layers_of(chosen) == expected and list(chosen) == list(drawn)
        for task, offer in chosen.items():
            assert offer.score >= max(other.score for other in drawn[task]) - margin
        assert expected >= layers_of(choose(drawn, "cheapest", margin + 1))


def test_one_task_that_needs_a_long_trunk_gives_it_to_all():
    """Alone, task b has 2 layers at boundary 3, as cheap as 1 layer at 5; the trunk is there for task a."""
    drawn = {"a": [Offer("a", BranchSize(6, 0), 80)]}
    drawn["b"] = [Offer("low", BranchSize(3, 2), 80), Offer("high", BranchSize(5, 1), 80)]
    assert choose(drawn, "cheapest")["b"].id == "high"


def test_exactly_the_margin_is_within_it_whatever_floats_make_of_it():
    """100 * 0.57 is 56.99999999999999, which is less than 100 * 0.58 - 1."""
    pairs = [(100 * (below / 100), 100 * ((below + 1) / 100)) for below in range(1, 99)]
    assert any(low < high - 1 for low, high in pairs) and any(high - low < 1 for low, high in pairs)
    for low, high in pairs:
        drawn = {"t": [Offer("l1", BranchSize(4, 1), low), Offer("l2", BranchSize(4, 2), high)]}
        assert [choose(drawn, rule, 1)["t"].id for rule in ("cheapest", "mixed")] == ["l1", "l2"]


def test_mixed_adds_layers_while_each_step_gains_enough():
    steps = {1: 80, 2: 81.5, 3: 82, 6: 90}
    drawn = {"t": [Offer(f"l{own}", BranchSize(6 - own, own), score) for own, score in steps.items()]}
    assert choose(drawn, "mixed", 1.0)["t"].id == "l2"
    assert choose(drawn, "mixed", 0.5)["t"].id == "l6"
    assert choose(drawn, "mixed", 2.0)["t"].id == "l1"


STUDENTS = {1: 50.0, 2: 52.0, 3: 54.0}


@pytest.mark.parametrize(("margin", "expected"), [(1, "teacher"), (2, "teacher"), (3, "teacher"), (7, "kd1")])
def test_mixed_keeps_the_teacher_where_it_gains_enough_over_its_students(margin, expected):
    """As the paper's CoLA, which keeps eight layers; branches of other trunks do not count, however good they are."""
    drawn = [Offer(f"kd{own}", BranchSize(4, own), score) for own, score in STUDENTS.items()]
    drawn += [Offer("teacher", BranchSize(4, 8), 60.0), Offer("top6", BranchSize(6, 6), 57.0)]
    drawn += [Offer("kd1_elsewhere", BranchSize(8, 1), 55.0), Offer("kd2_elsewhere", BranchSize(6, 2), 59.9)]
    later = {7: {"kd1": 56.5}}.get(margin, {})
    drawn = [Offer(one.id, one.size, later.get(one.id, one.score)) for one in drawn]
    assert choose({"t": drawn}, "mixed", margin)["t"].id == expected


def test_mixed_takes_a_student_that_is_about_as_good_as_its_teacher():
    drawn = [Offer(f"kd{own}", BranchSize(7, own), score) for own, score in {1: 80.0, 2: 81.5, 3: 82.0}.items()]
    drawn += [Offer("teacher", BranchSize(7, 5), 82.3), Offer("top8", BranchSize(4, 8), 82.1)]
    assert choose({"t": drawn}, "mixed", 1)["t"].id == "kd2"


def test_best_goes_by_validation():
    drawn = {"t": [Offer(f"k{k}", top_k(k, 6), score) for k, score in ((1, 70), (2, 79.5), (3, 80))]}
    assert choose(drawn, "best")["t"].id == "k3"
