"""What was measured is kept, with the tables that pages show."""

import sys

import pytest

from bench import __main__ as command
from bench import printed, record, report
from bench.options import Options
from test_bench import MACHINE
from thaw.core.files import read_json, write_json


def test_growth_and_lengths_are_kept_as_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RECORD", tmp_path / "kept")
    options = Options(out=tmp_path)
    common = {"took": 9.0, "machine": MACHINE, "options": {"rows": 9, "seeds": 1, "rounds": 1}, "numbers": {}}
    axis = {"points": [1, 2, 4], "seconds": {"ours": [8.0, 9.0, 16.0]}, "exponents": {"ours": 0.5}}
    write_json(options.part("growth"), common | {"part": "growth", "growth": {"seeds": axis}})
    each = {n: {"seconds": {"ours": 1.0 * n}, "engine_seconds": {"ours": 0.5 * n}} for n in (14, 64)}
    write_json(options.part("lengths"), common | {"part": "lengths", "lengths": each})
    record.keep(["growth", "lengths"], options)
    read = {path.stem: path.read_text() for path in (tmp_path / "kept/tables").glob("*.md")}
    assert "| seeds | 4 | 16 |\n| seeds | exponent | 0.50 |" in read["growth"]
    assert "| side | 14 tokens | 64 tokens |" in read["lengths_seconds"]
    assert "| Thaw | 14 | 64 |" in read["lengths_seconds"] and "| Thaw | 7 | 32 |" in read["lengths_engine"]


def test_ratios_are_the_other_sides_seconds_divided_by_ours():
    table = {"options": {"rows": 1320}, "seconds": {"ours": 2.0, "boundary_loop": 1.5, "tuned": 5.0}}
    grid = {"options": {"rows": 600}, "seconds": {"ours": 1.0, "cached_loop": 2.0}}
    assert report.ratios({"table": table, "grid": grid}) == [
        "| work | other side | its seconds / Thaw's |",
        "|:--|:--|--:|",
        "| seven strategies, 1,320 rows | Trainer, tuned | 2.5 |",
        "| seven strategies, 1,320 rows | torch loop that keeps frozen layers' states | 0.75 |",
        "| 40 heads on the frozen encoder, 600 rows | torch loop on kept features | 2 |",
    ]


def test_the_tables_that_are_kept_are_those_of_the_parts_that_are_kept():
    tables = record.tables()
    assert {"goals", "table_seconds", "table_fp32_seconds"} <= set(tables)
    for name, text in tables.items():
        assert (record.RECORD / f"tables/{name}.md").read_text(encoding="utf-8") == text, "python -m tests.bench record"


def test_only_the_parts_that_are_named_are_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "RECORD", tmp_path / "kept")
    options = Options(out=tmp_path)
    part = {"machine": MACHINE, "options": {"rows": 9, "seeds": 2, "rounds": 1}, "took": 9.0, "numbers": {}}
    for name in ("probes", "store"):
        write_json(options.part(name), part | {"part": name, "seconds": {"ours": 1.0}})
    with pytest.raises(SystemExit, match="steps was not measured: there is no "):
        record.keep(["probes", "steps"], options)
    uncommitted = {"machine": MACHINE | {"thaw": "0.9.0 (12ab34cd-dirty)"}, "part": "table"}
    write_json(options.part("table"), part | uncommitted)
    with pytest.raises(SystemExit, match=r"table was measured by 0.9.0 \(12ab34cd-dirty\); commit the changes"):
        record.keep(["probes", "table"], options)
    assert not (tmp_path / "kept").exists()
    monkeypatch.setattr(sys, "argv", ["bench", "record", "probes", "--out", str(tmp_path)])
    command.main()
    assert "- probes: a, 2 cores" in capsys.readouterr().out
    names = {"probes.json", "probes_seconds.md", "goals.md", "ratios.md"}
    assert {path.name for path in (tmp_path / "kept").rglob("*.*")} == names


def test_a_part_of_other_rows_is_kept_next_to_the_first_whose_goals_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RECORD", tmp_path / "kept")
    options = Options(out=tmp_path)
    for rows, ratio in ((9, 1.5), (18, 2.5), (18, 3.5), (9, 1.25)):
        part = {"part": "store", "machine": MACHINE, "options": {"rows": rows, "seeds": 2, "rounds": 1}, "took": 9.0}
        write_json(options.part("store"), part | {"numbers": {"store_read_vs_memcpy": ratio}})
        record.keep(["store"], options)
    kept = {path.stem: read_json(path) for path in (tmp_path / "kept/parts").glob("*.json")}
    assert {name: part["numbers"]["store_read_vs_memcpy"] for name, part in kept.items()} == {
        "store": 1.25,
        "store_18": 3.5,
    }
    assert report.summarised(kept)["store_read_vs_memcpy"] == 1.25
    assert (tmp_path / "kept/tables/store_18.md").is_file()


def test_what_another_processor_gave_is_kept_next_to_the_first_and_has_tables_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RECORD", tmp_path / "kept")
    options = Options(out=tmp_path)
    for cpu, ours in (("Intel(R) Xeon(R)", 2.0), ("AMD EPYC", 4.0)):
        part = {"part": "probes", "machine": MACHINE | {"cpu": cpu}, "options": {"rows": 9, "seeds": 2, "rounds": 1}}
        part |= {"took": 9.0, "numbers": {"probes_vs_sklearn": 8 / ours}}
        write_json(options.part("probes"), part | {"seconds": {"ours": ours, "sklearn_loop": 8.0}})
        record.keep(["probes"], options)
    read = {path.name: path.read_text() for path in (tmp_path / "kept").rglob("*.*")}
    assert {"probes.json", "probes_amd.json", "ratios.md", "ratios_amd.md", "goals_amd.md"} <= set(read)
    assert "scikit-learn loop | 4 |" in read["ratios.md"] and "| 2 |" in read["ratios_amd.md"]
    assert "not measured" not in read["goals_amd.md"] and "| 2 | 5 | no |" in read["goals_amd.md"]


def test_rows_have_the_names_of_strategies_and_of_tasks_where_there_are_several():
    assert printed.of_rows(["shared", "one/bench_top_2"]) == {"shared": "shared", "one/bench_top_2": "Top 2"}
    several = printed.of_rows(["bench_sst2_sentences/bench_top_2", "other/bench_top_2"])
    assert list(several.values()) == ["SST-2: Top 2", "other: Top 2"]
    assert {printed.name(side) for side in report.PEERS}.isdisjoint(report.PEERS), "each has words"
