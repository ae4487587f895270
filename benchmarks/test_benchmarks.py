"""The benchmark: the same work on both sides, right ratios, and a report of what was measured and no more."""

import subprocess
import sys

import pytest

from benchmarks import record, report, work
from benchmarks.inside import products
from benchmarks.measuring import Failed, at_a_terminal, interleaved, times_faster
from benchmarks.parts import advise, cold, grid, growth, memory, steps
from benchmarks.quality import compared, of_cells, of_runs, over_rows
from benchmarks.texts import Texts
from thaw.adaptation.selectors import everything
from thaw.compute_cost.flops import Shape, training_flops
from thaw.schema.strategy import StrategyConfig

MACHINE = {"cpu": "a", "cores": 2, "computes_in_bf16": False, "load": [0.5], "load_after": [0.7]}
MINILM = {"hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 12, "num_hidden_layers": 6}


def texts(rows: int = 12) -> Texts:
    split = [{"text": f"word {i} of {i % 3}", "label": "ab"[i % 2]} for i in range(rows)]
    return Texts("t", ["text"], ["a", "b"], dict.fromkeys(("train", "validation", "test"), split))


def test_what_the_peers_train_is_what_the_catalogue_says():
    strategies = work.table(6)
    for entry in strategies.values():
        StrategyConfig.model_validate(entry)
    assert set(strategies) == {f"bench_{n}" for n in ("frozen", "top_1", "top_2", "top_3", "full", "stack", "gradual")}
    (gradual,) = work.peer_phases("bench_gradual", strategies, 6)
    stages = gradual["stages"]
    assert [len(stage["components"]) for stage in stages] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert stages[2]["components"] == ["head", "layer.5", "layer.6"] and {s["epochs"] for s in stages} == {1}
    first, second = work.peer_phases("bench_stack", strategies, 6)
    assert [first] == work.peer_phases("bench_frozen", strategies, 6)
    assert second["stages"] == [{"epochs": 3, "components": everything(6)}]


def test_the_grid_has_the_same_cells_on_both_sides():
    (entry,) = work.grid().values()
    search = StrategyConfig.model_validate(entry).search
    cells = work.grid_cells("t", search.seeds)
    assert len(cells) == grid.CELLS == 40
    assert {cell["phases"][0]["rate"] for cell in cells} == {trial["rate"] for trial in search.trials()}


def test_each_side_runs_once_a_round_and_begins_one_in_turn():
    calls = []
    sides = {name: lambda name=name: calls.append(name) or {"wall": len(calls)} for name in "abc"}
    found = interleaved(sides, 3)
    assert calls == list("abcbcacab") and [r["wall"] for r in found["a"]] == [1, 6, 8]


def test_ratios_are_those_of_medians():
    ours, theirs = ([{"wall": wall} for wall in walls] for walls in ([2, 100, 4], [30, 40, 20]))
    assert times_faster(ours, theirs) == 30 / 4
    record = {"wall": 20, "found": {"cells": [{"seconds": {"load": 1, "train": 3}}, {"seconds": {"train": 6}}]}}
    assert grid.scaled(record, 40, 20) == 10 + 5 * 40 and grid.scaled(record, 40, 15, "load") == 6 + 4.5 * 40
    assert grid.scaled(record | {"processes": 2}, 40, 20) == 15 + 5 * 20
    assert growth.exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2)


def test_resume_is_measured_against_theory():
    seconds = {str(k): 2.0 * (6 - k) for k in range(6)} | {"full": 15.0}
    found = steps.gains(seconds, "0")
    assert [found[k]["gain"] for k in (1, 3, 5)] == pytest.approx([1.2, 2, 6])
    assert [one["of_theory"] for one in found.values()] == pytest.approx([1] * 5)
    assert steps.gains(seconds, "full")[3] == pytest.approx({"gain": 2.5, "theory": 2, "of_theory": 1.25})


def test_trainings_are_summed_by_round_and_updates_are_of_full_fine_tuning():
    each = [
        {"strategy": name, "seconds": {"train": train, "total": train + 1}, "whole": train + 2, "updates": updates}
        for train in (3, 5)
        for name, updates in ((work.FULL, [0.2] * 10 + [0.1] * 20), (work.FROZEN, [9.0] * 30))
    ]
    found = cold._summary([each[:2], each[2:]])
    assert (found["train"], found["total"], found["whole"]) == (8, 10, 12)
    assert (found["ms, first 10 updates"], found["ms, last 10"]) == pytest.approx((200, 100))


@pytest.mark.parametrize(("machine", "place"), [({"amx": False}, "t_noamx"), ({"amx": True}, "t"), ({}, "t")])
def test_a_record_of_intel_without_amx_replaces_none_with_it(machine, place):
    part = {"options": {"rows": 5}, "machine": {"cpu": "Intel(R) Xeon(R)"}}
    assert record._place("t", part | {"machine": part["machine"] | machine}, {"t": part}) == place


def test_equivalent_is_an_interval_within_a_point():
    rows = [{"strategy": "s", "role": role, "value": v} for role, v in (("test", 0.80), ("test", 0.82), ("train", 1.0))]
    cells = [{"strategy": "s", "scores": {"test": score}} for score in (0.79, 0.81)]
    ours, theirs = of_runs(rows, ("strategy",), "test"), of_cells(cells, ("strategy",), "test")
    found = compared(ours, theirs)["s"]
    # Welch's 90 % interval: t(0.95; 2) = 2.920 times sqrt(2 x 0.0002 / 2)
    assert found["difference"] == pytest.approx(0.01) and found["interval"] == pytest.approx(2.91999 * 0.0141421, 1e-4)
    assert not found["equivalent"] and compared(ours, {"s": [0.8]})["s"]["equivalent"] is None
    assert compared({"s": [0.800, 0.801]}, {"s": [0.8005, 0.8015]})["s"]["equivalent"]
    assert not compared({"s": [0.800, 0.801]}, {"s": [0.82, 0.821]})["s"]["equivalent"]
    pooled = over_rows({"a": [0.8, 0.6], "b": [0.6, 0.8]}, {"a": [0.7, 0.7], "b": [0.7, 0.7]})
    assert pooled["equivalent"] and pooled["ours"]["seeds"] == 2


def test_scores_are_compared_seed_by_seed_whatever_their_order():
    cells = [{"s": name, "seed": seed, "scores": {"test": seed / 10}} for name in "ab" for seed in (3, 1, 10, 2)]
    assert of_cells(cells, ("s",), "test") == {"a": [0.1, 0.2, 0.3, 1.0], "b": [0.1, 0.2, 0.3, 1.0]}
    rows = [{"s": "a", "role": "test", "value": cell["seed"], "seed": cell["seed"]} for cell in cells[:4]]
    assert of_runs(rows, ("s",), "test") == {"a": [1, 2, 3, 10]}
    assert compared({"a": [0.8, 0.81]}, {"a": [0.5, 0.51]})["a"]["different"]


def test_products_are_those_that_a_full_step_is_counted_to_have():
    counted = products.operations(products.shapes(32, 20, MINILM)) * 6
    shape = Shape.of(MINILM | {"model_type": "bert"})
    assert counted == training_flops(shape, [20] * 32, None, everything(6))


def test_a_goal_in_seconds_is_met_by_less():
    assert report.met("first_result", 7.9) and not report.met("first_result", 8.1)
    assert report.met("single_run_vs_trainer_tuned", 1.1) and not report.met("single_run_vs_trainer_tuned", 0.9)
    assert report.met("passes_per_split", 1) and not report.met("passes_per_split", 2)


def test_commands_of_one_shell_have_a_terminal_and_say_when_they_fail(tmp_path):
    with at_a_terminal() as typed:
        first, second = (typed(["sh", "-c", "test -t 0 && echo $PPID"], tmp_path / name, tmp_path) for name in "ab")
        with pytest.raises(Failed, match="ended with 3"):
            typed(["sh", "-c", "exit 3"], tmp_path / "c", tmp_path)
    assert first["started"] < second["started"] and first["wall"] > 0
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() != "", "both have one shell"


def test_a_line_is_stamped_when_it_is_printed(tmp_path):
    (first, one), (second, two) = advise.stamped(["sh", "-c", "echo ' one'; sleep 0.3; echo two >&2"], tmp_path)
    assert (one, two) == (" one", "two") and second - first > 0.2 and first > 0
    assert report.moments({"late": second, "early": first}, "until")[2].startswith("| early |")
    with pytest.raises(Failed, match="lines.log"):
        advise.stamped(["false"], tmp_path)


def test_memory_is_that_of_processes_in_a_folder_without_pages_of_files(tmp_path):
    (tmp_path / "file").write_bytes(bytes(80 * 2**20))
    hold = "import mmap, time; own = bytes(range(256)) * (40 * 2**12); opened = open('file', 'rb'); "
    hold += "pages = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ); sum(pages[::4096]); time.sleep(0.5)"
    with memory.own_memory(tmp_path) as held:
        subprocess.run([sys.executable, "-c", hold], cwd=tmp_path, check=True)
    assert 40 < max(held) < 80
    with memory.own_memory(tmp_path / "other") as held:
        subprocess.run([sys.executable, "-c", hold], cwd=tmp_path, check=True)
    assert held == [0.0]
