"""The pages show what docs/results holds, and every record is whole."""

import pytest

import record
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


@pytest.mark.parametrize("folder", sorted(record.RECORDS.glob("*")), ids=lambda folder: folder.name)
def test_a_record_says_what_made_it(folder):
    about = read_json(folder / "record.json")
    assert about["runs"] > 0 and {"torch", "machine", "precision"} <= set(about["facts"])
    assert all(sum(counts.values()) == about["runs"] for counts in about["facts"].values())
    assert (folder / "runs.csv").exists() and any((folder / "tables").glob("*.md"))
