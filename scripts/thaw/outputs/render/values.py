"""Values of outputs as JSON and CSV hold them: plain numbers, None for what is undefined."""

import csv
import io
import json
import math

from thaw.core.errors import UserError
from thaw.core.files import read_json, write_text
from thaw.decision.record import VERSION


def plain(value):
    """Return a value as JSON holds it: floats with ten digits, None for NaN; inside lists and dicts too."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    return value


def to_csv(records: list[dict]) -> str:
    """Return records as CSV; the columns are their keys, in the order in which they first occur."""
    file = io.StringIO()
    names = dict.fromkeys(name for record in records for name in record)
    lines = csv.DictWriter(file, list(names), restval="", lineterminator="\n")
    lines.writeheader()
    lines.writerows(records)
    return file.getvalue()


def write_output(path, content: dict) -> None:
    """Write the values of a table or figure as JSON, keys in the order of the CSV's columns."""
    write_text(path, json.dumps(content | {"version": VERSION}, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_output(path) -> dict:
    """Return the values of a table or figure. Args: its JSON file; one of another version is a UserError."""
    content = read_json(path)
    if content.get("version") != VERSION:
        raise UserError(f"{path} is of another version of Thaw; delete it so that it is made again")
    return content
