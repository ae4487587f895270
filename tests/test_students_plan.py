"""Students in a plan: what is made of what, what is made once, and the sentences for what can not be."""

import pytest

from thaw.core.errors import UserError
from thaw.planning.configuration import load_plan, read_config
from thaw.schema.student import StudentConfig

TRAIN = "phases: [{train: [all], distil: {logits: {}}}]"
CHOSEN = {"tasks": ["acceptability"], "subsets": ["n100_d1"], "seeds": [1, 2], "outputs": ["main_table"]}


def planned(home, tmp_path, strategies: list, yaml: str = "", **changes):
    """Return the plan of some strategies on the demo's encoder. Args: yaml, entries of a catalogue of our own."""
    folder = tmp_path / "mine"
    folder.mkdir(exist_ok=True)
    (folder / "strategies.yaml").write_text("strategies:\n" + (yaml or "  mine_full: {base: full}\n"))
    config = read_config([str(home / "config/config.yaml")], CHOSEN | {"strategies": strategies} | changes)
    return load_plan(config | {"catalogues": [*config.get("catalogues", []), str(folder)]}, home)


def refused(home, tmp_path, entry: str, strategy="mine") -> str:
    """Return the sentence with which a strategy of one's own is refused."""
    with pytest.raises(UserError) as raised:
        planned(home, tmp_path, [strategy], f"  mine: {{{entry}}}\n")
    return str(raised.value)


def test_all_students_of_a_teacher_read_the_same_outputs(home, tmp_path):
    plan = planned(home, tmp_path, [{"hinton": [2, 3]}, {"pkd_skip": [3]}, "born_again"])
    assert len(plan.jobs["teach"]) == 2  # one for each seed
    students = [job for key, job in plan.jobs["train"].items() if "/full/" not in key]
    assert len({job.spec["teacher"]["taught"] for job in students}) == 2 and len(students) == 8
    teachers = [job for key, job in plan.jobs["train"].items() if "/full/" in key]
    assert all(job.spec["keep"] for job in teachers) and len(teachers) == 2


def test_another_student_changes_no_digest_of_what_is_there(home, tmp_path):
    few, more = (planned(home, tmp_path, s) for s in ([{"hinton": [3]}], [{"hinton": [3]}, {"pkd_skip": [3]}]))
    for step in ("train", "teach", "features"):
        assert all(more.jobs[step][key].digest == job.digest for key, job in few.jobs[step].items())
    (key, *_) = few.jobs["teach"]
    assert len(more.files("teach", key)) > len(few.files("teach", key)) == 1


def test_a_branch_is_resumed_at_its_trunk(home, tmp_path):
    plan = planned(home, tmp_path, [{"wei_kd_1": [3]}], seeds=[1])
    student = next(job for key, job in plan.jobs["train"].items() if "wei_kd_1/k03/" in key)
    layers = student.spec["layers"]
    assert student.spec["student"] == {"layers": list(range(1, layers - 1))}
    assert student.spec["phases"][0]["components"] == ["head", f"layer.{layers - 2}"]
    assert student.spec["phases"][0]["boundary"] == layers - 3
    teacher = next(job for key, job in plan.jobs["train"].items() if "wei_top_k/k03/" in key)
    assert student.spec["after"] == {"run": teacher.digest, "epoch": "best"} and teacher.spec["keep"]


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


@pytest.mark.parametrize(
    "entry, sentence",
    [
        (f"teacher: ful, {TRAIN}", "no 'ful' in strategies; did you mean 'full'?"),
        (f"teacher: mine, {TRAIN}", "after or teacher leads back to mine"),
        (f"teacher: {{strategy: top_k, variant: k99}}, {TRAIN}", "top_k has no variant k99; there are k00"),
        ("teacher: full, phases: [{train: [all]}]", "teacher: no phase reads it"),
        (TRAIN, "distil: logits: needs a teacher; name a strategy as teacher:"),
        ("teacher: full, phases: [{train: [all], distil: {hard: 0}}]", "all weights are 0, and nothing would train"),
        ("student: {layers: k}, phases: [{train: [all]}]", "k is neither a number nor a variable of sweep:"),
        ("student: {layers: 4, top: 2}, phases: [{train: [all]}]", "4 of the last 2 can not be kept"),
        ("student: {layers: [1, 99]}, phases: [{train: [all]}]", "99 is none of the encoder's layers 1 to"),
        ("student: {layers: [3, 1]}, phases: [{train: [all]}]", "must rise, each layer once"),
        ("student: {layers: [1], keep: top}, phases: [{train: [all]}]", "keep has no meaning with a list of layers"),
        ("student: {layers: 1}, phases: [{train: [{top: 1}]}]", "and nothing is left to train"),
        ("student: {layers: 1}, phases: [{train: [head], optimizer: lbfgs}]", "leave out student: and teacher:"),
        ("student: {layers: 1}, phases: [{train: [all], replace: {}}]", "replace: needs a student:, and after:"),
        ("after: {strategy: drop_top, variant: n02}, phases: [{train: [all]}]", "keep"),
    ],
)
def test_what_can_not_be_is_said_in_one_sentence(home, tmp_path, entry, sentence):
    assert sentence in refused(home, tmp_path, entry)
