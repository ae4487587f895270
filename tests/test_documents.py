"""The pages show what the records say, drawn by today's code."""

import re

import pandas as pd
import pytest

import joint
import record
import record_tables
from command_line_page import SNAKEMAKE, command_line_page
from thaw.cli.main import COMMANDS
from thaw.core.errors import UserError
from thaw.core.failed_outputs import note_failure

PAGES = {str(page.relative_to(record.HOME)): page for page in record.PAGES}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_its_records_as_they_are(page):
    text = PAGES[page].read_text(encoding="utf-8")
    assert record.with_records(text) == text, "run scripts/record.py"


def test_a_page_with_an_old_table_is_written_again(monkeypatch):
    monkeypatch.setitem(record_tables.OTHERS, "first", lambda: [["a"], ["1"]])
    page = "Before\n<!-- table: first -->\n| a |\n|--:|\n| 0 |\n<!-- end -->\nafter\n"
    assert record.with_records(page) == (
        "Before\n<!-- table: first -->\n\n| a |\n| :-- |\n| 1 |\n\n<!-- end -->\nafter\n"
    )


KEPT = sorted({layout.record for layout in record_tables.LAYOUTS.values()} | {"read_before_thaw_cost", "grid_seeds"})


@pytest.mark.parametrize("name", KEPT)
def test_a_record_says_what_made_it(name):
    about = record_tables.about(name)
    assert about["runs"] > 0 and {"torch", "machine", "precision"} <= set(about["facts"])
    assert all(sum(counts.values()) == about["runs"] for counts in about["facts"].values())


@pytest.mark.parametrize(
    "name, file, strategies", [("grid_sizes", "grid/sizes", 4), ("unseen_sizes", "unseen_sizes", 3)]
)
def test_the_figure_of_sizes_is_drawn_of_its_record(tmp_path, name, file, strategies):
    points = record_tables.draw_sizes(tmp_path / "sizes.svg", name)
    assert (tmp_path / "sizes.svg").read_bytes() == (record.RECORDS / f"{file}.svg").read_bytes()
    assert len(points) == 3 * strategies * 4, "tasks, strategies, numbers of rows"


def test_the_figure_of_prices_is_drawn_of_its_record(tmp_path):
    record_tables.draw_prices(tmp_path / "unseen.svg")
    assert (tmp_path / "unseen.svg").read_bytes() == (record.RECORDS / "unseen.svg").read_bytes()


def test_the_figure_of_task_pairs_is_drawn_of_its_record(tmp_path):
    """Its gains are those of the runs, as the record of them has them."""
    rows = joint.draw_pairs(tmp_path / "task_pairs.svg")
    assert (tmp_path / "task_pairs.svg").read_bytes() == (record.RECORDS / "task_pairs.svg").read_bytes()
    runs = joint.read("task_pairs")
    first = dict(reversed(runs.columns()))
    for row in rows.itertuples():
        place = row.target, first[row.target]
        pair, control = (runs.values(place, arm, joint.THREE).mean() for arm in (row.strategy, "full_200"))
        assert row.gain == pytest.approx(pair - control, abs=1e-3)
    assert len(rows) == 24


def test_what_could_not_be_drawn_is_not_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "HOME", tmp_path)
    monkeypatch.setattr(record, "RECORDS", tmp_path / "records")
    made, kept = tmp_path / "results/outputs/first", tmp_path / "records/first.parquet"
    for path in (made / "report.html", made / "figures/layers.csv", kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old\n")
    note_failure(made / "figures/layers", "no run has a score")
    with pytest.raises(UserError, match="figures/layers could not be drawn: no run has a score; fix that and run"):
        record.record("first", "first")
    assert kept.read_text() == "old\n"


def test_a_written_record_is_read_again(tmp_path, monkeypatch):
    """60, 62 and 67 have the mean 63 and the deviation √13."""
    monkeypatch.setattr(record_tables, "RECORDS", tmp_path)
    monkeypatch.setattr(record.answers, "RECORDS", tmp_path)
    alike = {"task": "trec6", "subset": "n", "split": "test", "role": "test", "variant": "base"}
    alike |= {"trained_parameters": 1000.0, "train_seconds": 2.0, "peak_memory_mb": 800.0}
    values = {"full": (0.60, 0.62, 0.67), "linear_probe": (0.59, 0.63, 0.64)}
    rows = [
        alike | {"strategy": name, "seed": seed, "value": value}
        for name, scores in values.items()
        for seed, value in enumerate(scores, start=1)
    ]
    record.write(tmp_path / "written.parquet", pd.DataFrame(rows), {"runs": 6})
    layout = record_tables.Layout("written", ("trec6",), ("full",), costs=True)
    assert record_tables.about("written") == {"runs": 6}
    assert record_tables.by_layout(layout)[1] == ["Full fine-tuning", "63.0 ± 3.6", "1,000", "2.0", "800"]


def test_a_part_is_added_to_a_record_once(tmp_path):
    path, about = tmp_path / "whole.parquet", {"runs": 2, "facts": {"torch": {"2.13": 2}}}
    keys = {name: "a" for name in record.answers.KEYS} | {"value": 0.5, "first": [1, 0]}
    baseline = keys | {"kind": "baseline", "seed": None, "task": "trec6"}
    first, second = (pd.DataFrame([keys | {"seed": seed, "task": "trec6"}, baseline]) for seed in (1, 2))
    record.write(path, first, about | {"from": "2026-11-29", "to": "2026-11-29"})
    more = about | {"from": "2026-11-28", "to": "2026-11-28"}
    lines, said = record.added(record.parquet.read_table(path), second, more, path)
    assert lines["seed"].fillna(0).tolist() == [1, 0, 2], "the baseline once"
    assert [list(one) for one in lines["first"]] == [[1, 0]] * 3
    assert said == {"runs": 4, "from": "2026-11-28", "to": "2026-11-29", "facts": {"torch": {"2.13": 4}}}
    with pytest.raises(UserError, match="has a on trec6 already; it was recorded before"):
        record.added(record.parquet.read_table(path), first, more, path)


def test_the_readme_fits_two_screens_and_has_the_words_that_people_search_for():
    readme = (record.HOME / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 90
    words = ["linear probe", "LoRA", "fine-tuning", "BERT", "adapters", "git clone", "make demo", "make test"]
    assert [word for word in words if word not in readme] == []


COMMAND = re.compile(r"^(?:    |.*\| |.*&& )(thaw [^#|<>\\]*)", re.MULTILINE)
TUTORIALS = sorted((record.HOME / "docs").glob("tutorials/*.md")) + [record.HOME / "README.md"]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.name)
def test_a_tutorial_names_commands_and_options_that_exist(page):
    commands = [match.split() for match in COMMAND.findall(page.read_text(encoding="utf-8"))]
    assert commands
    reference = command_line_page()
    for _, name, *words in commands:
        if name.startswith("-"):
            continue
        assert name in COMMANDS, f"{page.name}: thaw {name}"
        section = reference.partition(f"\n## thaw {name}\n")[2].partition("\n## ")[0]
        unknown = [word for word in words if word.startswith("--") and f"`{word}" not in section]
        assert name in SNAKEMAKE or unknown == [], f"{page.name}: thaw {name} has no {unknown}"
