"""What the plan says before anything runs: the size of the user's own files, operations and seconds."""

import os
import statistics

import pytest

from plans import plan_of
from thaw.cli import plan_command
from thaw.core.digests import canonical, file_sha256
from thaw.core.files import write_json
from thaw.data import sources
from thaw.planning import cost_estimate
from thaw.schema.corpora import CorpusConfig
from thaw.schema.entry import spec_of

STORE = "minilm/paraphrase/joint"
ENTRY = {"texts": ["text"], "targets": {"label": "label"}}


def counted(folder, content: str, view: str = "{}", **files):
    """Return the size of a corpus of one CSV file."""
    (folder / "a.csv").write_text(content, encoding="utf-8")
    entry = ENTRY | {"files": {"format": "csv", "splits": {"train": "a.csv"}, **files}}
    entry = canonical(spec_of(CorpusConfig.model_validate(entry)))
    return sources.count_texts("mine", entry, (("a.csv", file_sha256(folder / "a.csv")),), str(folder), view)


def test_rows_and_words_of_a_file_are_counted(tmp_path):
    size = counted(tmp_path, 'text,label\n"one, two three.",a\nfour,b\n')
    assert size.examples == 2 and size.tokens == round(sources.PIECES * 6) + 2 * 2


def test_long_texts_are_counted_as_far_as_they_are_read(tmp_path):
    """Of 3,000 words an encoder reads 512 tokens, or 128 where the view says nothing; windows read all of them."""
    content = "text,label\n" + f"{'word ' * 3000},a\n" * 120 + "one two,b\n"
    short = sources.PIECES * 2 + 2
    assert counted(tmp_path, content, '{"max_length": 512}').tokens == round(120 * 512 + short)
    assert counted(tmp_path, content).tokens == round(120 * 128 + short)
    assert counted(tmp_path, content, '{"stride": 64}').tokens == round(120 * (sources.PIECES * 3000 + 2) + short)


def test_a_file_that_was_edited_is_counted_again(tmp_path):
    assert [counted(tmp_path, "text,label\n" + "one,a\n" * rows).examples for rows in (1, 2)] == [1, 2]


def test_a_file_that_cannot_be_read_has_no_size_yet(tmp_path):
    assert counted(tmp_path, "text,label\none\n") is None


def test_large_files_are_left_to_prepare(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MOST_BYTES", 10)
    assert counted(tmp_path, "text,label\none,a\ntwo,b\n", encoding="ascii") is None


@pytest.fixture(scope="module")
def plan():
    """Return a plan of full fine-tuning."""
    return plan_of(tasks=["paraphrase"], seeds=[1], outputs=["main_table"], baselines=[], strategies=["bert_full"])


def test_all_cores_are_timed_by_the_processor_and_not_the_clock(monkeypatch):
    """Cores beyond those that are timed count as much as these, and an idle wait counts nothing."""
    monkeypatch.setattr(cost_estimate, "MOST_TIMED", 1)
    cores, found = os.cpu_count() or 1, []
    for _ in range(3):  # a shared machine's speed changes from second to second: each pair is timed at once
        monkeypatch.setattr(os, "cpu_count", lambda: cores)
        one = cost_estimate.machine_rate() / cores
        assert 1e8 < one < 1e12
        monkeypatch.setattr(os, "cpu_count", lambda: 50)
        found.append(cost_estimate.machine_rate() / one)
    assert statistics.median(found) == pytest.approx(50, rel=0.5)


@pytest.mark.parametrize(
    ("step", "operations", "jobs", "threads", "due"),
    [
        ("train", 12e9, 1, 4, 25.5),  # 12e9 at 48 % of 1e9 a second are 25 s, and 0.5 s to begin
        ("train", 12e9, 10, 2, 27.5),  # two jobs of two threads at a time: half of 10 x 0.5 s
        ("features", 24e9, 2, 4, 51.0),  # 50 s, and twice 0.5 s
        ("features_adapted", 0.0, 8, 1, 1.0),  # four at a time: a quarter of 8 x 0.5 s
        ("fit_heads", 0.0, 4, 1, 3.0),  # four at a time, each 3 s
        ("search_heads", 2.4e9, 1, 4, 8.0),  # 5 s, and 3 s
        ("table", 0.0, 12, 2, 6.0),  # two at a time: half of 12 x 1 s
        ("train", 12e9, 1, 8, 25.5),  # more threads than cores: one job at a time
    ],
)
def test_seconds_are_those_worked_out_by_hand_for_four_cores(step, operations, jobs, threads, due, monkeypatch):
    """At 1e9 operations a second of a matrix product, all cores together."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert cost_estimate.seconds(step, operations, jobs, threads, 1e9) == pytest.approx(due)


def test_updates_and_seconds_on_a_gpu_are_those_worked_out_by_hand(plan):
    """Four epochs of 0.6 x 1,812 rows in batches of 32 pass six layers and, on the way back, twelve more.

    5e12 operations a second make 1.24 s, and 0.2 ms for a layer 0.49 s.
    """
    (key,) = plan.jobs["train"]
    updates, passed = cost_estimate.training_updates(plan, plan.job("train", key).spec, STORE)
    assert (updates, passed) == (pytest.approx(4 * 0.6 * 1812 / 32), pytest.approx(updates * 18))
    assert cost_estimate.seconds_on_gpu(plan, "train", key) == pytest.approx(6_193_265_246_208 / 5e12 + passed * 2e-4)


def test_what_finished_runs_took_on_a_gpu_counts(plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (key,) = plan.jobs["train"]
    metrics = tmp_path / plan.file("train", key)
    write_json(metrics, {"digest": plan.job("train", key).digest})
    for device, took in (("cpu", 1.0), ("NVIDIA H100", 0.25)):
        assumed = cost_estimate.seconds_on_gpu(plan, "train", key)
        seconds = {"train": assumed / 4}
        write_json(metrics.with_name("cost.json"), {"hardware": {"device": device}, "seconds": seconds})
        assert cost_estimate.measured_on_gpu(plan) == (pytest.approx(took), int(device != "cpu"))


def test_operations_are_those_worked_out_by_hand(plan):
    """A layer of width 384 multiplies 12 x 384 x 384 = 1,769,472 numbers for a token, two operations each.

    The corpus has 40,510 tokens by the catalogue, of which six in ten are training text: 24,306. One pass through six
    layers reads all of them. Four epochs of training go forward through six layers, and backward through six at twice
    the cost: 18 layers.
    """
    (key,), layer = plan.jobs["train"], 2 * 1_769_472
    probe = plan_of(tasks=["paraphrase"], seeds=[1], outputs=["main_table"], baselines=[], strategies=["frozen"])
    assert cost_estimate.operations(probe, "features", STORE) == 40_510 * 6 * layer == 860_175_728_640
    found = cost_estimate.operations(plan, "train", key)
    assert found == pytest.approx(4 * 24_306 * 18 * layer) == pytest.approx(6_193_265_246_208)


def test_a_teacher_reads_the_rows_of_its_own_subset():
    """They are 100 of 1,087 training rows, 2,236 of 24,306 tokens, and the 16,204 of validation and test."""
    chosen = {"subsets": ["n100_d1"], "strategies": [{"hinton": [3]}]}
    plan = plan_of(tasks=["paraphrase"], seeds=[1], outputs=["main_table"], baselines=[], **chosen)
    (key,) = plan.jobs["teach"]
    assert cost_estimate.operations(plan, "teach", key) == (2_236 + 16_204) * 6 * 2 * 1_769_472


def test_of_a_store_that_is_there_the_tokens_count(plan, tmp_path, monkeypatch):
    (key,), store = plan.jobs["train"], plan.file("features", STORE)
    write_json(tmp_path / store, {"splits": {"train": {"examples": 1, "tokens": 1}}})
    due = cost_estimate.operations(plan, "train", key)
    monkeypatch.chdir(tmp_path)
    assert cost_estimate.operations(plan, "train", key) == pytest.approx(due / 24_306)


def test_a_ladder_has_operations_though_no_layer_is_computed():
    plan = plan_of(tasks=["paraphrase"], seeds=[1], outputs=["main_table"], baselines=[], strategies=["ladder"])
    (key,) = plan.jobs["train"]
    assert cost_estimate.operations(plan, "train", key) > 0


def test_a_plan_says_what_one_thread_a_job_saves_where_there_is_a_job_for_each_core(capsys, monkeypatch):
    monkeypatch.setattr(plan_command.os, "cpu_count", lambda: 2)
    for threads, seeds, said in ((2, [1, 2], True), (1, [1, 2], False), (2, [1], False)):
        chosen = {"tasks": ["paraphrase"], "seeds": seeds, "baselines": [], "strategies": ["full"]}
        plan_command.print_time(plan_of(**chosen, compute={"threads": threads}, outputs=["main_table"]))
        assert ("would save about" in capsys.readouterr().out) == said
