"""The benchmark: the same work on both sides, right ratios, and a report of what was measured and no more."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench import __main__ as command
from bench import report, rivals, work
from bench.inside import products
from bench.measuring import Failed, interleaved, machine, timed, times_faster
from bench.options import HOME, QUICK, Options
from bench.ours import Place
from bench.parts import grid, growth, probes, steps, target
from bench.quality import compared, of_cells, of_runs, over_rows
from bench.texts import Texts, cut, joined
from thaw.adaptation.selectors import everything
from thaw.compute_cost.flops import training_flops
from thaw.compute_cost.model_shape import Shape
from thaw.core.files import read_json, write_json
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


def test_the_mark_is_reached_by_the_first_that_lies_on_disk():
    notes = [(9.0, 0.81, "full"), (4.0, 0.80, "top"), (2.0, 0.70, "frozen")]
    assert target.first(notes, 0.8) == (4.0, "top") and target.first(notes, 0.9) == (None, None)


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


def test_processes_side_by_side_share_the_cells_and_take_as_long_as_the_slowest():
    cells = [{"task": task, "seed": seed, "strategy": name} for task in "tu" for name in "ab" for seed in (1, 2, 3, 4)]
    parts = rivals.shared(cells, 2)
    assert sorted(map(str, parts[0] + parts[1])) == sorted(map(str, cells)), "each cell once"
    assert [{cell["seed"] for cell in part} for part in parts] == [{1, 3}, {2, 4}]
    of_one_seed = [{"task": "t", "seed": 1, "phases": phases} for phases in (["a"], ["b"], ["a", "c"], ["d"])]
    assert [[cell["phases"] for cell in part] for part in rivals.shared(of_one_seed, 2)] == [
        [["a"], ["a", "c"], ["d"]],
        [["b"]],
    ], "what begins with the same phase stays together"
    assert len(rivals.shared(of_one_seed[:1], 8)) == 1
    records = [
        {
            "wall": wall,
            "cpu": 2.0,
            "memory_mb": wall,
            "found": {"seconds": {"t": wall}, "memory_mb": 7.0, "cells": [wall]},
        }
        for wall in (3.0, 5.0)
    ]
    found = rivals.merged(records)
    assert (found["wall"], found["cpu"], found["memory_mb"], found["processes"]) == (5.0, 4.0, 5.0, 2)
    assert found["found"]["cells"] == [3.0, 5.0] and rivals.engine(found) == 5.0


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


def test_long_texts_are_of_one_label_and_reach_the_length():
    found = joined(texts(), 64, 10)
    assert found.max_length == 64 and {split: len(rows) for split, rows in found.rows.items()}["train"] == 10
    own = {
        label: {w for row in texts().rows["train"] if row["label"] == label for w in row["text"].split()}
        for label in "ab"
    }
    for row in found.rows["train"]:
        words = row["text"].split()
        assert len(words) >= 64 and set(words) <= own[row["label"]]


@pytest.mark.parametrize("rows, left", [(8, (8, 2, 2)), (100, (12, 12, 12))])
def test_rows_are_cut_to_what_is_asked_for_or_there(rows, left):
    found = {split: len(given) for split, given in cut(texts(), rows).rows.items()}
    assert found == dict(zip(("train", "validation", "test"), left, strict=True))


def test_a_process_is_timed_with_its_children_and_a_failed_one_is_told(tmp_path):
    busy = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(3 * 10**6))'])"
    found = timed([sys.executable, "-c", busy], tmp_path / "log", tmp_path)
    alone = timed([sys.executable, "-c", "pass"], tmp_path / "log", tmp_path)
    assert found["cpu"] > alone["cpu"] and found["wall"] > 0 and found["memory_mb"] > 1
    with pytest.raises(Failed, match="ended with 3; see .*log"):
        timed([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "log", tmp_path)
    assert machine()["cores"] >= 1


def test_what_a_fork_server_computes_is_counted(tmp_path):
    """It outlives who started it, whose usage has nothing of it; it imports pandas and matplotlib while nobody asks."""
    scripts = str(HOME / "scripts")
    start = f"from thaw.core import fork_server; fork_server.start({scripts!r}, 1, ('outputs',))"
    code = {"alone": "import time; from thaw.core import fork_server; time.sleep(2)"}
    code["server"] = f"{start}; import time; time.sleep(2)"
    found = {
        name: timed([sys.executable, "-c", one], tmp_path / "log", tmp_path, {"PYTHONPATH": scripts})
        for name, one in code.items()
    }
    assert found["server"]["cpu"] - found["alone"]["cpu"] > 0.3


@pytest.mark.parametrize("rule, seconds", [("train_1_2_3", 30.0), ("fit_heads", 10.0)])
def test_runs_that_train_in_turn_count_each_and_heads_of_one_fit_once(tmp_path, rule, seconds):
    place = object.__new__(Place)  # whose folder holds three runs of one job
    place.folder, place.options = tmp_path, Options(cores=1)
    files = [f"seed{seed}/cost.json" for seed in (1, 2, 3)]
    for file in files:
        write_json(tmp_path / file, {"seconds": {"total": 10.0}, "hardware": {"device": "cpu"}})
    assert place._of_runs({"rule": rule, "files": files}) == seconds


def test_a_process_that_ended_before_its_starter_is_counted(tmp_path):
    """As a fork server does for which its starter does not wait."""
    busy = "import time\nwhile time.process_time() < 1: pass"
    start = f"os.posix_spawn(sys.executable, [sys.executable, '-c', {busy!r}], os.environ, "
    code = f"child = {start}setsid=True); os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)"
    found = timed([sys.executable, "-c", f"import os, sys; {code}"], tmp_path / "log", tmp_path)
    assert found["cpu"] > 1


def test_a_part_that_fails_is_told_and_leaves_nothing(tmp_path, capsys):
    options = Options(out=tmp_path)
    assert command._measured("nothing", options) is False
    assert "nothing" in capsys.readouterr().err and not options.part("nothing").exists()


def test_the_report_has_one_number_for_each_goal_and_says_what_is_met(tmp_path):
    rows = {"t/bench_full": {"ours": 2.0, "default": 30.0}, "shared": {"ours": 1.0, "default": 3.0}}
    verdict = {
        "ours": {"mean": 0.8},
        "peer": {"mean": 0.81},
        "difference": -0.01,
        "interval": 0.02,
        "equivalent": False,
    }
    seconds = {"seconds": {"ours": 3.0, "default": 33.0}, "engine_seconds": {"ours": 1.0, "default": 31.0}}
    common = {"took": 9.0, "machine": MACHINE, "options": {"rows": 9, "seeds": 1, "rounds": 1}}
    table = {
        "part": "table",
        "numbers": {"table_vs_trainer_default": 11.0},
        "rows": rows,
        "passes": {"m c v train": 1},
    } | seconds
    write_json(tmp_path / "parts/table.json", common | table | {"quality": {"default": {"t/bench_full": verdict}}})
    axis = {
        "points": [1, 2],
        "seconds": {"ours": [1.0, 1.5], "default": [2.0, 4.0]},
        "exponents": {"ours": 0.58, "default": 1.0},
    }
    write_json(tmp_path / "parts/growth.json", common | {"part": "growth", "numbers": {}, "growth": {"seeds": axis}})
    report.write(tmp_path)
    found = read_json(tmp_path / "bench.json")
    assert set(report.GOALS) | {"goals", "quality", "environment", "parts"} == set(found)
    assert found["table_vs_trainer_default"] == 11.0 and found["goals"]["table_vs_trainer_default"]["met"]
    assert found["passes_per_split"] == 1 and found["goals"]["passes_per_split"]["met"]
    assert found["probes_vs_sklearn"] is None and found["goals"]["probes_vs_sklearn"]["met"] is None
    text = (tmp_path / "bench.md").read_text()
    assert (
        "| Full | 2 | 30 | 15 |" in text
        and "not measured" in text
        and "| Full | Trainer, defaults | 80.0 | 81.0 | -1.0 ± 2.0 | not shown |" in text
    )
    assert all(
        (tmp_path / f"{name}.{kind}").stat().st_size > 1000 for name in ("bench", "growth") for kind in ("svg", "png")
    )


def test_the_trainers_clock_begins_with_its_process():
    cell = {"strategy": "s", "watched": [{"second": 107.5, "score": 0.8}]}
    assert target.watched({"started": 100.0, "found": {"cells": [cell]}}) == [(7.5, 0.8, "s")]


def test_probes_are_paired_by_what_they_are():
    ours = [{"task": "t", "layer": n, "strength": 0.1, "scores": {"test": 0.5 + n / 10}} for n in range(2)]
    assert probes.differences(ours, ours[::-1])["largest_difference"] == 0
    with pytest.raises(AssertionError, match="the same probes"):
        probes.differences(ours, ours[:1])


def test_a_goal_in_seconds_is_met_by_less():
    assert report.met("first_result", 7.9) and not report.met("first_result", 8.1)
    assert report.met("single_run_vs_trainer_tuned", 1.1) and not report.met("single_run_vs_trainer_tuned", 0.9)
    assert report.met("passes_per_split", 1) and not report.met("passes_per_split", 2)


def test_what_a_part_sets_itself_is_what_its_record_says(tmp_path, monkeypatch):
    module = SimpleNamespace(measure=lambda options: {"numbers": {}, "used": {"seeds": 8, "rounds": 1}})
    monkeypatch.setattr(command.importlib, "import_module", lambda name: module)
    options = Options(out=tmp_path, seeds=2, rounds=3, rows=500)
    assert command._measured("quality", options)
    kept = read_json(options.part("quality"))["options"]
    assert (kept["seeds"], kept["rounds"], kept["rows"]) == (8, 1, 500)


def test_test_stays_whole_where_quality_is_compared():
    counts = {split: len(rows) for split, rows in cut(texts(40), 12, whole_test=True).rows.items()}
    assert counts == {"train": 12, "validation": 3, "test": 40}


def test_two_passes_over_a_split_are_not_one():
    assert report.met("passes_per_split", 1) and not report.met("passes_per_split", 2)


@pytest.mark.slow
def test_a_tiny_run_of_the_table_measures_all_sides(tmp_path):
    options = replace(Options(**QUICK), rows=32, out=tmp_path)
    assert command._measured("table", options) and command._measured("table_fp32", options)
    report.write(tmp_path)
    found = json.loads((tmp_path / "bench.json").read_text())
    assert all(found[f"table_vs_{name}"] > 0 for name in ("trainer_default", "trainer_tuned", "boundary_loop"))
    assert found["passes_per_split"] == 1
    assert {name for name in found["parts"]["table"]["rows"] if name.startswith("bench_sst2")} == {
        f"bench_sst2_sentences/{name}" for name in work.table(6)
    }
