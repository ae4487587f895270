"""Folders of texts and Excel sheets, which become a CSV file before anything else looks at them."""

from contextlib import ExitStack
from pathlib import Path

import pandas

from thaw.core.errors import UserError
from thaw.core.files import write_text
from thaw.core.phrases import listing
from thaw.data.file_profile import SPLITS

EXCEL = (".xlsx", ".xlsm")
NAMES = {name for names in SPLITS.values() for name in names}
FORM = "write them as LABEL/NAME.txt or SPLIT/LABEL/NAME.txt, with the splits train, validation and test"


def is_table(path: Path) -> bool:
    """Tell whether a path is a folder or an Excel file."""
    return path.is_dir() or path.suffix.lower() in EXCEL and path.is_file()


def as_csv(path: Path, undo: ExitStack) -> Path:
    """Return the CSV file of the same name in the working folder, written unless it is there with the same rows.

    Args: a folder of texts or an Excel file; deletes what was written, if an error follows. Raises UserError where a
    file with other rows is there.
    """
    content = (of_folder(path) if path.is_dir() else of_sheets(path)).to_csv(index=False)
    target = Path(f"{path.resolve().stem}.csv")
    if target.exists() and target.read_bytes() != content.encode():
        raise UserError(f"{target}: is there with other rows than {path}; delete or rename it")
    if not target.exists():
        write_text(target, content)
        undo.callback(target.unlink)
        print(f"{path} is read as {target}")
    return target


def of_folder(folder: Path) -> pandas.DataFrame:
    """Return the texts of a folder with the columns text, label and, where its folders are splits, split; by file name.

    Texts that lie elsewhere are left out, and their number is printed.
    """
    every, rows = sorted(folder.rglob("*.txt")), []
    named = {part.name for part in folder.iterdir() if part.is_dir()}
    by_split = bool(named) and named <= NAMES
    files = [file for file in every if len(file.relative_to(folder).parts) == 2 + by_split]
    if not files:
        raise UserError(f"{folder}: has no texts in folders by label; {FORM}")
    if others := [file for file in every if file not in set(files)]:
        print(f"left out {others[0]}" + f" and {len(others) - 1} other texts that lie elsewhere" * (len(others) > 1))
    for file in files:
        *split, label, _ = file.relative_to(folder).parts
        try:
            rows.append([file.read_text("utf-8-sig").strip(), label, *split])
        except UnicodeDecodeError as error:
            raise UserError(f"{file}: not UTF-8 text") from error
    return pandas.DataFrame(rows, columns=["text", "label", "split"][: len(rows[0])])


def of_sheets(path: Path) -> pandas.DataFrame:
    """Return the sheets of an Excel file that have rows; the first row names the columns.

    It is one sheet, or several that are called as splits are: their rows get a column split.
    """
    try:
        sheets = pandas.read_excel(path, sheet_name=None, dtype=object, keep_default_na=False, na_values=[""])
    except Exception as error:  # of whatever the file is in truth
        raise UserError(f"{path}: cannot be read as Excel ({' '.join(str(error).split())}); save it as CSV") from error
    filled = {str(name): sheet for name, sheet in sheets.items() if len(sheet)}
    if len(filled) > 1 and {name.lower() for name in filled} <= NAMES:
        return pandas.concat([sheet.assign(split=name.lower()) for name, sheet in filled.items()])
    if len(filled) != 1:
        found = f"several sheets have rows: {listing([*filled])}" if filled else "no sheet has rows"
        raise UserError(f"{path}: {found}; save the one with the texts as CSV, or call them train and test")
    return next(iter(filled.values()))
