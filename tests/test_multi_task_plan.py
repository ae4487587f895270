"""Strategies of several tasks: what is planned and read, and what cannot be trained together."""

import pytest

from plans import plan_with
from thaw.core import layout
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.planning.cost_estimate import operations, training_updates
from thaw.planning.questions import Questions
from thaw.schema.multi_task import MultiTaskConfig

STRATEGIES = """  several:
    multi_task: {{tasks: [acceptability, paraphrase]{}}}
    keep: true
    phases: [{{train: [head, {{top: 1}}]}}]
  tuned: {{after: several, phases: [{{train: [all]}}]}}
"""
BOTH = {"tasks": ["acceptability", "paraphrase"], "strategies": ["several", "tuned"], "subsets": ["n100_d1"]}


def planned(folder, said: str = "", **changes):
    return plan_with(folder, STRATEGIES.format(said), **BOTH | changes)


def key(task: str, strategy: str = "several") -> str:
    return f"runs/{task}/n100_d1/minilm/linear/{strategy}/base/seed1"


def test_a_plan_has_one_training_and_a_run_for_each_task(tmp_path):
    plan = planned(tmp_path, ", sampling: power, power: 0.75")
    first, other = (plan.job("train", key(task)) for task in BOTH["tasks"])
    assert first.spec["multi_task"] == {"sampling": "power", "power": 0.75} and first.spec["keep"]
    (entry,) = first.spec["auxiliary"]
    assert entry["task"] == other.spec["task"] and entry["features"] == [other.spec["features"]]
    assert first.inputs["also_tokens"] == ["results/features/minilm/paraphrase/joint/tokens.json"]
    assert first.inputs["also_boundaries"] == ["results/features/minilm/paraphrase/joint/b5.json"]
    assert other.spec["multi_task"] == {"run": first.digest} and "auxiliary" not in other.spec
    assert other.inputs["multi_task"] == [f"results/{key('acceptability')}/metrics.json"]
    assert other.spec["phases"] == first.spec["phases"]
    for task, strategy in zip(BOTH["tasks"], (first, other), strict=True):
        tuned = plan.job("train", key(task, "tuned")).spec
        assert tuned["after"]["run"] == strategy.digest and tuned["phases"][0]["boundary"] is None


def test_the_forecast_has_the_training_once(tmp_path):
    """Epochs are those of each task; updates are shared, so that they cost the mean."""
    single = plan_with(tmp_path / "one", "  one: {phases: [{train: [all]}]}\n", **BOTH | {"strategies": ["one"]})
    alone = [operations(single, "train", key(task, "one")) for task in BOTH["tasks"]]
    entry = "  several: {multi_task: {tasks: [acceptability, paraphrase]}, phases: [{train: [all]}]}\n"
    for number, (said, expected) in enumerate([("", sum(alone)), (", updates: 12", 12 * 32 / 300 * sum(alone) / 2)]):
        text = entry.replace("[all]}]", f"[all]{said}}}]")
        plan = plan_with(tmp_path / str(number), text, **BOTH | {"strategies": ["several"]})
        first, other = (operations(plan, "train", key(task)) for task in BOTH["tasks"])
        assert (first, other) == (pytest.approx(expected), 0.0)
        specs = [plan.job("train", key(task)).spec for task in BOTH["tasks"]]
        made = [training_updates(plan, spec, "minilm/acceptability/joint")[0] for spec in specs]
        assert made == [pytest.approx(12 if said else 2 * 3 * 100 / 32), 0.0]


def test_a_task_that_is_not_shown_is_trained_and_its_rows_are_read(tmp_path):
    plan = planned(tmp_path, tasks=["paraphrase"], strategies=["several"])
    assert set(plan.jobs["train"]) == {key("acceptability"), key("paraphrase")}
    rows = Questions(plan).rows_read("minilm/acceptability/joint")
    spec = plan.job("train", key("acceptability")).spec
    assert rows == canonical([{"subset": {"rows": 100}, "task": spec["task"]}])
    plan = planned(tmp_path, tasks=["acceptability"], strategies=["several"])
    assert set(plan.jobs["train"]) == {key("acceptability")}
    (entry,) = plan.job("train", key("acceptability")).spec["auxiliary"]
    rows = Questions(plan).rows_read("minilm/paraphrase/joint")
    assert rows == canonical([{"subset": {"rows": 100}, "task": entry["task"]}])


def test_what_starts_after_a_training_is_run_on_its_tasks(tmp_path):
    plan = planned(tmp_path, tasks=["similarity", *BOTH["tasks"]], baselines=["majority"])
    assert {layout.names_in_key("train", name)["task"] for name in plan.jobs["train"]} == set(BOTH["tasks"])


def test_each_task_is_trained_with_the_one_that_is_named(tmp_path):
    """Of the named task itself it is a training of one task."""
    text = (
        STRATEGIES.format(", own: added")
        .replace("[acceptability, paraphrase]", "[acceptability]")
        .replace("keep: true", "")
    )
    plan = plan_with(tmp_path, text, **BOTH | {"strategies": ["several"]})
    first, other = (plan.job("train", key(task)).spec for task in BOTH["tasks"])
    assert first["auxiliary"] == [] and [entry["task"]["id"] for entry in other["auxiliary"]] == ["acceptability"]
    assert first["multi_task"] == other["multi_task"] == {"own": "added"} and not (first["keep"] or other["keep"])


TEACHER = """  both:
    multi_task: {tasks: [acceptability, paraphrase]}
    teacher: one
    phases: [{train: [all], distil: {logits: {}}}]
  one: {phases: [{train: [head, {top: 1}]}]}
"""


def test_each_task_has_a_teacher_of_its_own(tmp_path):
    plan = plan_with(tmp_path, TEACHER, **BOTH | {"strategies": ["both"]})
    first, other = (plan.job("train", key(task, "both")) for task in BOTH["tasks"])
    taught = [plan.job("teach", f"{key(task, 'one').removeprefix('runs/')}/n100_d1").digest for task in BOTH["tasks"]]
    assert first.spec["teacher"] == {"taught": taught[0]}
    assert first.spec["auxiliary"][0]["teacher"] == {"taught": taught[1]}
    assert len(first.inputs["teacher"]) == 2 and "teacher" not in other.inputs


def test_each_task_pays_for_its_own_teacher(tmp_path):
    plan = plan_with(tmp_path, TEACHER, **BOTH | {"strategies": ["both"]})
    (collect,) = plan.jobs["collect"].values()
    for task in BOTH["tasks"]:
        (run,) = (one for one in collect.spec["results"] if one["names"]["task"] == task and one["step"] == "train")
        taught = [need["names"]["task"] for need in run["needs"] if need["role"] in ("teacher", "taught")]
        assert taught == [task, task]


def test_a_task_that_cannot_be_read_as_the_strategy_says_is_refused(tmp_path):
    text = "  several: {{multi_task: {{tasks: [{}]}}, phases: [{{train: [all]}}]{}}}\n"
    pairs = text.format("paraphrase, acceptability", ", pairs: separate")
    with pytest.raises(UserError, match="acceptability has single texts"):
        plan_with(tmp_path, pairs, strategies=["several"], tasks=["paraphrase"])
    (tmp_path / "heads.yaml").write_text("head_sets:\n  linear_texts: {by_task: {classification: linear}}\n")
    for order in ("acceptability, entities", "entities, acceptability"):
        with pytest.raises(UserError, match="head linear_texts has none for tasks of type spans; leave entities out"):
            plan_with(
                tmp_path,
                text.format(order, ""),
                strategies=["several"],
                tasks=["acceptability"],
                heads=["linear_texts"],
            )


def test_sizes_far_apart_and_empty_tasks_are_said():
    several = MultiTaskConfig(tasks=["a", "b"])
    several.check_sizes({"a": 99, "b": 1}, "here")
    with pytest.raises(UserError, match="here: a has 100 training rows and b has 1; say sampling: size, power"):
        several.check_sizes({"a": 100, "b": 1}, "here")
    MultiTaskConfig(tasks=["a", "b"], sampling="size").check_sizes({"a": 100, "b": 1}, "here")
    with pytest.raises(UserError, match="here: b has no training row; leave it out of tasks:"):
        several.check_sizes({"a": 100, "b": 0}, "here")


HELD_OUT = """subsets:
  held: {rows: 100, validation: 0.2}
corpora:
  two: {texts: [sentence], targets: {label: label, more: label}, synthetic: acceptability}
tasks:
  a: {corpus: two, target: label, type: classification, metrics: [accuracy]}
  b: {corpus: two, target: more, type: classification, metrics: [accuracy]}
"""


def test_two_tasks_of_a_dataset_do_not_train_on_rows_that_the_other_holds_out(tmp_path):
    (tmp_path / "tasks.yaml").write_text(HELD_OUT)
    entry = "  several: {multi_task: {tasks: [a, b]}, phases: [{train: [all]}]}\n"
    with pytest.raises(UserError, match="a and b are of dataset two, and held holds out other rows for each"):
        plan_with(tmp_path, entry, strategies=["several"], tasks=["a"], subsets=["held"])
