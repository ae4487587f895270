"""Folders of texts and Excel sheets, which become a CSV file before anything else looks at them."""

from pathlib import Path

import pandas

from thaw.core.errors import UserError
from thaw.core.files import write_text
from thaw.core.phrases import listing
from thaw.data.file_profile import SPLITS

EXCEL = (".xlsx", ".xlsm")
FORM = "write them as LABEL/NAME.txt or SPLIT/LABEL/NAME.txt, with the splits train, validation and test"


def is_table(path: Path) -> bool:
    """Tell whether a path is a folder or an Excel file."""
    return path.is_dir() or path.suffix.lower() in EXCEL and path.is_file()


def as_csv(path: Path) -> Path:
    """Return the CSV file of the same name in the working folder, written unless it is there with the same rows.

    Raises UserError where one with other rows is there.
    """
    content = (of_folder(path) if path.is_dir() else of_sheet(path)).to_csv(index=False)
    target = Path(f"{path.resolve().stem}.csv")
    if target.exists() and target.read_text("utf-8") != content:
        raise UserError(f"{target}: is there with other rows than {path}; delete or rename it")
    if not target.exists():
        write_text(target, content)
        print(f"wrote {target} from {path}")
    return target


def of_folder(folder: Path) -> pandas.DataFrame:
    """Return the texts of a folder with the columns text, label and, where folders are splits, split; by file name."""
    files = sorted(folder.rglob("*.txt"))
    rows, depths = [], {len(file.relative_to(folder).parts) for file in files}
    splits = {name for names in SPLITS.values() for name in names}
    if not files or len(depths) > 1 or not depths <= {2, 3}:
        raise UserError(f"{folder}: has no texts in folders by label; {FORM}")
    for file in files:
        *split, label, _ = file.relative_to(folder).parts
        if split and split[0] not in splits:
            raise UserError(f"{folder / split[0]}: is no split; {FORM}")
        try:
            rows.append([file.read_text("utf-8-sig").strip(), label, *split])
        except UnicodeDecodeError as error:
            raise UserError(f"{file}: not UTF-8 text") from error
    return pandas.DataFrame(rows, columns=["text", "label", "split"][: len(rows[0])])


def of_sheet(path: Path) -> pandas.DataFrame:
    """Return the only sheet of an Excel file that has rows; its first row names the columns."""
    try:
        sheets = pandas.read_excel(path, sheet_name=None, dtype=object)
    except Exception as error:  # of whatever the file is in truth
        raise UserError(f"{path}: cannot be read as Excel ({' '.join(str(error).split())}); save it as CSV") from error
    filled = {name: sheet for name, sheet in sheets.items() if len(sheet)}
    if len(filled) != 1:
        found = f"several sheets have rows: {listing([*map(str, filled)])}" if filled else "no sheet has rows"
        raise UserError(f"{path}: {found}; save the one with the texts as CSV")
    return next(iter(filled.values()))
