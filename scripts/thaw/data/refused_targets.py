"""Why a column cannot be predicted, in words: objects, lists written as text, a single label, numbers with gaps."""

import re

from thaw.core.errors import UserError
from thaw.core.phrases import listing, plural
from thaw.data.file_profile import is_number

Name = str | int
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d{1,2}")
SHOWN_KEYS = 3
WRITTEN_LIST = re.compile(r"""\s*\[\s*((['"]).*\2|\d+(\s*,\s*\d+)*)?\s*\]\s*""", re.DOTALL)


def refuse_objects(columns: dict[Name, list], path: str) -> None:
    """Raise UserError for the first column that holds objects: nobody looks for a text or label inside of them."""
    for name, values in columns.items():
        if inside := next((list(value) for value in values if isinstance(value, dict) and value), None):
            advice = f"write {listing(map(str, inside[:SHOWN_KEYS]))} as keys of the line itself"
            raise UserError(f"{path}: column '{name}' holds objects, whose keys are no columns; {advice}")


def refuse_written_lists(columns: dict[Name, list], path: str) -> None:
    """Raise UserError for the first column with lists as Python or JSON write them, which are no lists in CSV."""
    for name, values in columns.items():
        if are_written_lists(values):
            shown = max(values, key=len)
            advice = "write the file as JSONL, or several labels without brackets and quotes, as food;room"
            raise UserError(f"{path}: column '{name}' holds lists written as text, as {shown:.60}; {advice}")


def are_written_lists(values: list) -> bool:
    """Return whether all values are texts such as ['food', 'room'] and one of them at least is no empty list."""
    strings = all(isinstance(value, str) and WRITTEN_LIST.fullmatch(value) for value in values)
    return strings and any(value.strip("[] \t\n") for value in values)


def single_label(columns: dict[Name, list]) -> str:
    """Return which column has the same label in all rows; nothing where none has."""
    for name, values in columns.items():
        labels = {str(label) for value in values for label in (value if isinstance(value, list) else [value])}
        if len(labels) == 1 and None not in values:
            return f"column '{name}' has only one label, {labels.pop()!r:.60}; expected at least two"
    return ""


def almost_scores(columns: dict[Name, list]) -> str:
    """Return which column would be scores but for a few rows, and the first of them; nothing where none would."""
    for name, values in columns.items():
        if sum(bool(DECIMAL_COMMA.fullmatch(str(value))) for value in values) > len(values) / 2:
            return f"column '{name}' has decimal commas; write points, as 3.75"
        others = [row for row, value in enumerate(values) if not is_number(value)]
        if 0 < len(others) <= len(values) / 5:
            value = "nothing" if values[others[0]] in (None, "") else repr(values[others[0]])
            return (
                f"column '{name}' has numbers but for {plural(len(others), 'row')}, as row {others[0] + 1} with "
                f"{value}; give these a number, or leave them out"
            )
    return ""
