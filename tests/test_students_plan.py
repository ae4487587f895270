"""Students in a plan: what is made of what, what is made once, and the sentences for what can not be."""

import pytest

from plans import plan_with
from thaw.core.errors import UserError
from thaw.outputs.frame.collection import selected
from thaw.planning.cost_estimate import left_out
from thaw.schema.distillation import HiddenConfig
from thaw.schema.student import StudentConfig

TRAIN = "phases: [{train: [all], distil: {logits: {}}}]"
OF_ALL = "phases: [{train: [all], distil:"
SPREAD, LOW = "student: {layers: 2, keep: spread}", "student: {layers: 2}"
CHOSEN = {"tasks": ["acceptability"], "subsets": ["n100_d1"], "seeds": [1, 2], "outputs": ["main_table"]}


def planned(tmp_path, strategies: list, yaml: str = "", **changes):
    """Return the plan of some strategies on the demo's encoder. Args: yaml, entries of a catalogue of our own."""
    entries = yaml or "  mine_full: {base: full}\n"
    return plan_with(tmp_path / "mine", entries, **CHOSEN | {"strategies": strategies} | changes)


def test_a_teacher_keeps_its_encoder_for_a_student_that_only_an_ensemble_has(tmp_path):
    members = {"two": {"members": [{"strategy": "mine"}, {"strategy": "full"}]}}
    entry = f"  mine: {{{LOW}, teacher: full, {TRAIN}}}\n"
    plan = planned(tmp_path, ["full", "linear_probe"], entry, ensembles=members)
    teachers = [job for key, job in plan.jobs["train"].items() if "/full/" in key]
    assert len(plan.jobs["teach"]) == len(teachers) == 2 and all(job.spec["keep"] for job in teachers)


def test_probed_runs_have_the_order_of_the_seeds_though_another_run_needs_one_of_them_first(tmp_path):
    entry = f"  mine: {{teacher: {{strategy: full, seed: 2}}, {TRAIN}}}\n"
    probes = {"adapted": ["full"], "probes": ["linear"], "outputs": ["main_table", "probe_curves"]}
    plan = planned(tmp_path, ["mine", "full"], entry, **probes)
    (probe,) = (job for key, job in plan.jobs["probe"].items() if "full.base" in key)
    assert probe.spec["seeds"] == [1, 2]
    for name in ("runs", "adapted"):
        assert [f"/seed{seed}/" in file for seed, file in zip((1, 2), probe.inputs[name], strict=True)] == [True, True]


def test_a_run_that_only_a_student_needs_answers_no_claim(tmp_path, shared_data):
    entry = f"  mine: {{teacher: full, {TRAIN}}}\n"
    config = {"tasks": ["sst2_sentences"], "data_dir": str(shared_data), "outputs": ["findings"], "seeds": [1]}
    plan = planned(tmp_path, ["linear_probe", "mine", "full"], entry, **config)
    (finding,) = (one for one in plan.job("table", "demo/findings").spec["findings"] if "tests" in one)
    assert [term[2] for term in finding["tests"][0]["terms"]] == ["full", "linear_probe"]
    with pytest.raises(UserError, match="findings cannot be drawn: it needs all strategies of a claim"):
        planned(tmp_path, ["linear_probe", "mine"], entry, **config)


def test_a_teacher_may_have_another_encoder(tmp_path):
    """Then a smaller encoder of the catalogue is the student, and learns logits; tokens and widths are others."""
    of = "teacher: {strategy: full, encoder: bert_base_uncased}"
    plan = planned(tmp_path, ["mine"], f"  mine: {{{of}, {TRAIN}}}\n", seeds=[1])
    (student,) = (key for key in plan.jobs["train"] if "/mine/" in key)
    (taught,) = plan.jobs["teach"]
    assert "/bert_base_uncased/linear/full/" in taught and "/bert_base_uncased/" not in student
    job = plan.job("train", student)
    assert job.spec["teacher"] == {"taught": plan.jobs["teach"][taught].digest}
    assert plan.jobs["teach"][taught].spec["encoder"] != job.spec["encoder"]


def test_layers_of_a_smaller_encoder_are_matched_to_those_of_a_larger_one_at_their_depth(tmp_path):
    """As TinyBERT's, of twelve layers and a width of 768 to half of both: g(m) = m L / M."""
    of = "teacher: {strategy: full, encoder: bert_base_uncased}"
    terms = "hidden: {of: tokens, last: true, project: shared}, attention: {form: scores, heads: 12}"
    plan = planned(tmp_path, ["mine"], f"  mine: {{{of}, {OF_ALL} {{{terms}}}}}]}}\n", seeds=[1])
    (student,) = (job for key, job in plan.jobs["train"].items() if "/mine/" in key)
    assert student.spec["phases"][0]["pairs"] == student.spec["phases"][0]["attended"]
    assert student.spec["phases"][0]["pairs"] == [[n, 2 * n] for n in range(1, 7)]
    names = [file.rpartition("/")[2] for file in student.inputs["teacher_states"]]
    assert sorted(names) == sorted([f"{part}{n}.json" for part in ("b", "attention") for n in range(2, 13, 2)])
    assert HiddenConfig(map="last").pairs([2, 4, 6], 6, None, 12) == [(2, 10), (4, 11)]
    with pytest.raises(ValueError, match="layer 1 of 5 has none of 12 at its depth"):
        HiddenConfig().pairs([1, 2, 3], 5, None, 12)


def test_another_student_changes_no_digest_of_what_is_there(tmp_path):
    few, more = (planned(tmp_path, s) for s in ([{"hinton": [3]}], [{"hinton": [3]}, {"pkd_skip": [3]}]))
    for step in ("train", "teach", "features"):
        assert all(more.jobs[step][key].digest == job.digest for key, job in few.jobs[step].items())
    (key, *_) = few.jobs["teach"]
    assert len(more.files("teach", key)) > len(few.files("teach", key)) == 1


@pytest.mark.parametrize(
    "entry, kept, start",
    [
        ({"layers": 6}, [1, 2, 3, 4, 5, 6], {}),
        (
            {"layers": 6, "keep": "spread", "start": "bottom"},
            [2, 4, 6, 8, 10, 12],
            {2: 1, 4: 2, 6: 3, 8: 4, 10: 5, 12: 6},
        ),
        ({"layers": 3, "keep": "ends"}, [1, 2, 12], {}),
        ({"layers": 2, "top": 4}, [*range(1, 9), 9, 10], {}),
        ({"layers": 2, "top": 4, "keep": "spread"}, [*range(1, 9), 10, 12], {}),
        ({"layers": [1, 3, 5], "start": [1, 2, 3]}, [1, 3, 5], {3: 2, 5: 3}),
    ],
)
def test_layers_that_are_kept(entry, kept, start):
    assert StudentConfig.model_validate(entry).shape(12, {}) == (kept, start)


def test_a_student_of_all_layers_starts_from_others_or_ends_a_sweep():
    assert StudentConfig(layers=2, start=[2, 1]).shape(2, {}) == ([1, 2], {1: 2, 2: 1})
    assert StudentConfig(layers="n").shape(2, {"n": 2}) == ([1, 2], {})


@pytest.mark.parametrize(
    "entry, kept, pairs",
    [
        ({}, [2, 4, 6, 8, 10, 12], [(2, 2), (4, 4), (6, 6), (8, 8), (10, 10)]),  # fc_layer_idx 1,3,5,7,9 of PKD's code
        ({"map": "last"}, [2, 4, 6, 8, 10, 12], [(2, 7), (4, 8), (6, 9), (8, 10), (10, 11)]),
        ({"map": "last"}, [4, 8, 12], [(4, 10), (8, 11)]),  # 9,10 in their script for three layers
        ({"map": "last", "last": True}, [4, 8, 12], [(4, 10), (8, 11), (12, 12)]),
        ({"map": "top"}, [2, 4, 6, 8, 10, 12], [(12, 12)]),
        ({"last": True}, [1, 2, 3], [(1, 1), (2, 2), (12, 12)]),  # the output, which a last norm may change
    ],
)
def test_boundaries_that_are_matched(entry, kept, pairs):
    assert HiddenConfig.model_validate(entry).pairs(kept, 12, None) == pairs


def test_what_does_not_train_is_matched_to_nothing():
    assert HiddenConfig(last=True).pairs([1, 2, 3, 4], 6, 2) == [(3, 3), (6, 6)]


def test_a_budget_that_holds_no_boundary_of_the_trunk_is_said(tmp_path):
    """The branch then starts lower down, here from text: in its spec and in what the plan prints."""
    for gib, boundary in ((20, 4), (1e-5, None)):
        plan = planned(tmp_path, [{"wei_kd_1": [2]}], seeds=[1], store={"max_gib": gib})
        (student,) = (job for key, job in plan.jobs["train"].items() if "/wei_kd_1/" in key)
        assert student.spec["phases"][0].get("boundary") == boundary
        said = [line for line in left_out(plan) if "minilm/acceptability/joint" in line]
        expected = [f"store: max_gib: {gib:g} holds no boundary"] if gib < 1 else []
        assert [line.partition(" of ")[0] for line in said] == expected


def test_a_teacher_of_fewer_rows_teaches_rows_whose_labels_nobody_reads(tmp_path):
    entry = "  mine: {teacher: {strategy: full, subset: n100_d1}, student: {layers: 2}, "
    entry += "phases: [{train: [all], distil: {hard: 0, logits: {}}}]}\n"
    plan = planned(tmp_path, ["mine"], entry, subsets=["n250_d1"], seeds=[1])
    (taught,), runs = plan.jobs["teach"], plan.jobs["train"]
    (student,) = (job for key, job in runs.items() if "/mine/" in key)
    (teacher,) = (job for key, job in runs.items() if "/full/" in key)
    assert teacher.spec["subset"] == {"rows": 100} and student.spec["subset"] == {"rows": 250}
    assert plan.jobs["teach"][taught].spec["subset"] == {"rows": 250}
    assert plan.jobs["teach"][taught].spec["run"] == teacher.digest
    held = f"  mine: {{teacher: {{strategy: full, subset: n100_d1}}, {TRAIN}}}\n"
    with pytest.raises(UserError, match="n100_d1 may train on rows that n1000_r1 holds out or reserves"):
        planned(tmp_path, ["mine"], held, subsets=["n1000_r1"], seeds=[1])


def test_the_costs_of_a_teacher_are_those_of_the_rows_that_each_student_reads(tmp_path):
    """Of several subsets each has a teacher of its own, or all have one that has read the rows of each."""
    of_few = "  mine: {base: hinton, teacher: {strategy: full, subset: n100_d1}}\n"
    chosen = [{"hinton": [3]}, {"mine": [3]}]
    plan = planned(tmp_path, chosen, of_few, subsets=["n100_d1", "n250_d1"], seeds=[1])
    made = {
        plan.files("teach", key)[0].removeprefix("results/").replace("card.json", "cost.json")
        for key in plan.jobs["teach"]
    }
    ((_, collect),) = plan.jobs["collect"].items()
    read = {file for result in selected(collect.spec) for file in result.files}
    assert {file for file in read if file.startswith("taught/")} == made and len(made) == 3


def test_a_student_of_scores_alone_says_that_it_reads_no_label(tmp_path):
    for hard, said in ((0, True), (1, False)):
        entry = f"  mine: {{teacher: full, phases: [{{train: [all], distil: {{hard: {hard}, logits: {{}}}}}}]}}\n"
        for task, scores in (("acceptability", False), ("similarity", True)):
            plan = planned(tmp_path, ["mine"], entry, tasks=[task], seeds=[1])
            (job,) = (job for key, job in plan.jobs["train"].items() if "/mine/" in key)
            assert job.spec.get("unlabelled", False) == (said and scores)


def test_a_teacher_with_dropout_is_read_itself(tmp_path):
    entry = f"  mine: {{teacher: {{strategy: full, dropout: true}}, {TRAIN}}}\n"
    plan = planned(tmp_path, ["mine"], entry, seeds=[1])
    (student,) = (job for key, job in plan.jobs["train"].items() if "/mine/" in key)
    (teacher,) = (job for key, job in plan.jobs["train"].items() if "/full/" in key)
    assert not plan.jobs.get("teach")
    assert student.spec["teacher"] == {"run": teacher.digest, "dropout": True} and teacher.spec["keep"]
    (file,) = student.inputs["live_teacher"]
    assert file.endswith("/full/base/seed1/metrics.json")
