"""The pages show what docs/results holds, and every record is whole."""

import re

import pandas as pd
import pytest

import record
from thaw.cli.help_page import SNAKEMAKE, command_line_page
from thaw.cli.main import COMMANDS
from thaw.core.errors import UserError
from thaw.core.failed_outputs import note_failure
from thaw.core.files import read_json

PAGES = {str(page.relative_to(record.HOME)): page for page in record.PAGES}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_its_records_as_they_are(page):
    text = PAGES[page].read_text(encoding="utf-8")
    assert record.with_records(text) == text, "run scripts/record.py"


def test_a_page_with_an_old_table_is_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RECORDS", tmp_path)
    (tmp_path / "first/tables").mkdir(parents=True)
    (tmp_path / "first/tables/main.md").write_text("**Caption.**\n\n| a |\n|--:|\n| 1 |\n\n- a note\n")
    page = "\n".join(["Before", "<!-- table: first/main -->", "| a |", "|--:|", "| 0 |", "<!-- end -->", "after", ""])
    assert record.with_records(page) == page.replace("| a |", "\n| a |").replace("| 0 |\n", "| 1 |\n\n")
    notes = "<!-- notes: first/main -->\n"
    assert record.with_records(f"{notes}<!-- end -->") == f"{notes}\n- a note\n\n<!-- end -->"
    again = f"{notes}<!-- end -->\n{notes}<!-- end -->"
    assert record.with_records(again).count("- a note") == 1, "a page has a note once"


@pytest.mark.parametrize("page", PAGES)
def test_every_mark_of_a_table_is_explained_below_it(page):
    text = PAGES[page].read_text(encoding="utf-8")
    shown = [(match[2], match[3], match[4], set(match[0]) & record.MARKS) for match in record.SHOWN.finditer(text)]
    for kind, *of, marks in shown:
        if kind == "table" and marks:
            explained = set().union(*(found for other, *same, found in shown if other == "notes" and same == of))
            assert marks <= explained, f"{'/'.join(of)}: {sorted(marks - explained)} without a note"


OF_NO_EXPERIMENT = {"benchmark", "planned_time", "resumed_states"}  # records of measurements
KEPT = sorted(path for path in record.RECORDS.iterdir() if path.is_dir() and path.name not in OF_NO_EXPERIMENT)


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_a_record_says_what_made_it(folder):
    about = read_json(folder / "record.json")
    assert about["runs"] > 0 and {"torch", "machine", "precision"} <= set(about["facts"])
    assert all(sum(counts.values()) == about["runs"] for counts in about["facts"].values())
    assert (folder / "runs.csv").exists() and any([*folder.glob("tables/*.md"), *folder.glob("figures/*.csv")])


def test_what_could_not_be_drawn_is_not_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "HOME", tmp_path)
    monkeypatch.setattr(record, "RECORDS", tmp_path / "records")
    made, kept = tmp_path / "results/outputs/first", tmp_path / "records/first/tables/main.md"
    for path in (made / "report.html", made / "figures/layers.csv", kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old\n")
    note_failure(made / "figures/layers", "no run has a score")
    with pytest.raises(UserError, match="figures/layers could not be drawn: no run has a score; fix that and run"):
        record.record("first")
    assert kept.read_text() == "old\n"


def test_a_small_table_has_means_with_their_deviation_and_median_costs(tmp_path, monkeypatch):
    """60, 62 and 67 have the mean 63 and the deviation √13. Costs are 1, 2 and 9 s on one task, 10 s on the other."""
    monkeypatch.setattr(record, "RECORDS", tmp_path)
    (tmp_path / "first").mkdir()
    columns = [*record.COLUMNS, *record.COSTS, "role", "main", "digest"]
    draws = [("0.60", "1.0", "700"), ("0.62", "9.0", "900"), ("0.67", "2.0", "800")]
    other = {"task": "two", "train_seconds": "10.0", "peak_memory_mb": "1000"}
    rows = [
        *({"strategy": "full", "value": v, "train_seconds": s, "peak_memory_mb": m} for v, s, m in draws),
        *({"strategy": "full", "value": value} | other for value in ("0.1", "0.2", "0.3")),
        {"strategy": "full", "value": "0.99", "train_seconds": "2.0", "role": "validation"},
        {"strategy": "full", "value": "0.99", "train_seconds": "2.0", "main": "False"},
        {"strategy": "majority", "value": "0.30", "trained_parameters": ""},
        {"strategy": "top_k", "variant": "k01", "value": "0.10", "train_seconds": "1.0"},
        *({"strategy": "top_k", "variant": "k02", "value": value} for value in ("0.50", "0.52", "0.54")),
    ]
    alike = dict.fromkeys(columns, "") | {
        "variant": "base",
        "task": "one",
        "role": "test",
        "main": "True",
        "trained_parameters": "1000",
    }
    kept = record.main_scores(pd.DataFrame([alike | row for row in rows]))
    kept.to_csv(tmp_path / "first/runs.csv", index=False)
    shown = {"majority": "Majority", "full": "Full", "top_k k02": "Top 2"}
    table = record.small("first", {"one": "One"}, shown).splitlines()
    assert table[2:4] == ["| Majority | – | – | – | – |", "| Full | 63.0 ± 3.6 | 1,000 | 2.0 | 800 |"]
    assert table[4].startswith("| Top 2 | 52.0 ± 2.0 |"), "a point of a sweep alone"
    both = record.small("first", {"one": "One", "two": "Two"}, shown).splitlines()
    assert both[3] == "| Full | 63.0 ± 3.6 | 20.0 ± 10.0 | 1,000 | 6.0 | 900 |", "a mean over tasks of medians"


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
