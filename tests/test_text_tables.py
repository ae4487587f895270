"""Folders of texts and Excel sheets as CSV files."""

from contextlib import ExitStack
from functools import partial

import pandas as pd
import pytest

from thaw.cli import new_command
from thaw.core.errors import UserError
from thaw.data import text_tables
from thaw.data.text_tables import is_table

as_csv = partial(text_tables.as_csv, undo=ExitStack())


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def texts(folder, **files: str):
    """Write text files; two underscores stand between the parts of a path."""
    for name, text in files.items():
        path = folder.joinpath(*name.split("__")).with_suffix(".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def test_a_folder_by_label_and_one_by_split_and_label(tmp_path, capsys):
    made = as_csv(texts(tmp_path / "films", pos__a="It was\nfine.", neg__b="No, never.\n"))
    assert pd.read_csv(made).to_numpy().tolist() == [["No, never.", "neg"], ["It was\nfine.", "pos"]]
    assert as_csv(tmp_path / "films") == made, "the same rows are there already"
    assert capsys.readouterr().out.count("films is read as films.csv") == 1
    split = pd.read_csv(as_csv(texts(tmp_path / "parts", train__pos__a="one", test__neg__a="two")))
    assert split.to_dict("list") == {"text": ["two", "one"], "label": ["neg", "pos"], "split": ["test", "train"]}
    texts(tmp_path / "parts", train__urls="no text", readme="no text")
    assert pd.read_csv(as_csv(tmp_path / "parts")).equals(split), "texts that lie elsewhere are left out"
    assert "left out " in capsys.readouterr().out
    texts(tmp_path / "films", pos__c="another")
    with pytest.raises(UserError, match=r"films\.csv: is there with other rows than .*; delete or rename it"):
        as_csv(tmp_path / "films")


def test_an_excel_file_with_one_sheet_of_rows(tmp_path):
    rows = pd.DataFrame({"text": ["one, two", "None", "drei"], "stars": [5, 1, 3]})
    with pd.ExcelWriter(tmp_path / "reviews.xlsx") as book:
        rows.to_excel(book, sheet_name="rows", index=False)
        rows[:0].to_excel(book, sheet_name="empty", index=False)
    assert is_table(tmp_path / "reviews.xlsx") and pd.read_csv(
        as_csv(tmp_path / "reviews.xlsx"), keep_default_na=False
    ).equals(rows)
    for book, names in ((tmp_path / "two.xlsx", "ab"), (tmp_path / "parts.xlsx", ("Train", "test"))):
        with pd.ExcelWriter(book) as sheets:
            for name in names:
                rows.to_excel(sheets, sheet_name=name, index=False)
    with pytest.raises(UserError, match="several sheets have rows: a and b; save the one .* or call them train and"):
        as_csv(tmp_path / "two.xlsx")
    assert pd.read_csv(as_csv(tmp_path / "parts.xlsx"))["split"].tolist() == ["train"] * 3 + ["test"] * 3
    rows[["text"]].to_excel(tmp_path / "work/few.xlsx", index=False)
    with pytest.raises(UserError, match=r"^few\.xlsx: has 3 rows"):
        new_command.main(["task", "few.xlsx"])
    assert not (tmp_path / "work/few.csv").exists(), "it goes with an error that follows"


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(UserError, match="cannot be read as Excel .*; save it as CSV"):
        as_csv(tmp_path / "broken.xlsx")
    for files in ({}, {"a": "flat"}, {"train__a": "a split without labels"}, {"some__pos__a": "too deep"}):
        folder = tmp_path / f"folder{'-'.join(files)}"
        folder.mkdir()
        with pytest.raises(UserError, match="has no texts in folders by label; write them as LABEL/NAME.txt"):
            as_csv(texts(folder, **files))
    (texts(tmp_path / "latin", pos__a="one") / "pos/b.txt").write_bytes(b"caf\xe9")
    with pytest.raises(UserError, match=r"b\.txt: not UTF-8 text"):
        as_csv(tmp_path / "latin")
    assert not is_table(tmp_path / "absent.xlsx") and not is_table(tmp_path / "latin/pos/a.txt")
