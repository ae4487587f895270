"""A table in its four formats: CSV, LaTeX (see `latex`), Markdown and HTML."""

import csv
import io
from pathlib import Path

from thaw.core.files import write_text
from thaw.decision import record
from thaw.outputs import templates, wording
from thaw.outputs.tables.latex import to_tex
from thaw.outputs.tables.table_model import Table, caption


def to_csv(table: Table) -> str:
    """Return the plain numbers behind a table."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(table.records())
    return file.getvalue()


def to_markdown(table: Table) -> str:
    """Return a pipe table with its caption above and its notes below."""
    heads = [
        wording.markdown(column.title) + f"<br>{wording.markdown(column.metric)}" * bool(column.metric)
        for column in table.columns
    ]
    width, side = len(heads), ":--|" if table.sentences else "--:|"
    lines = [f"**{wording.markdown(caption(table))}**", "", f"| | {' | '.join(heads)} |", "|:--|" + side * width]
    lines += [_markdown_row(row, "*") for row in table.baselines]
    for group in table.groups:
        lines += [f"| **{wording.markdown(group.name)}** |" + " |" * width] if group.name else []
        lines += [_markdown_row(row, "*") for row in group.baselines]
        lines += [_markdown_row(row) for row in group.rows]
    lines += [_markdown_row(row, "*") for row in table.external]
    return "\n".join([*lines, "", *(f"- {wording.markdown(note)}" for note in table.notes)]) + "\n"


def _markdown_row(row, mark: str = "") -> str:
    cells = (_markdown_cell(cell).replace("|", r"\|") if cell else "" for cell in row.cells)  # a bar would end the cell
    return f"| {mark}{wording.markdown(row.name)}{mark} | {' | '.join(cells)} |"


def _markdown_cell(cell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    return text + f" {cell.interval}" * bool(cell.interval) + f"; {cell.below}" * bool(cell.below)


def to_html(table: Table) -> str:
    """Return a whole small page, of which the report takes the body."""
    return templates.render("table.html.j2", table=table, caption=caption(table))


def html_body(page: str) -> str:
    """Return table and notes of a page that `to_html` wrote, without the caption; nothing of another page."""
    return page.partition("</figcaption>")[2].rpartition("</figure>")[0]


FORMATS = {"csv": to_csv, "tex": to_tex, "md": to_markdown, "html": to_html}


def write(table: Table, prefix) -> None:
    """Write a table in all formats under a path prefix, its answers as JSON where it has any; the HTML last."""
    values = Path(f"{prefix}.json")
    values.unlink(missing_ok=True)
    if answers := getattr(table, "answers", ()):
        record.write(values, answers)
    for ending, written in FORMATS.items():
        write_text(f"{prefix}.{ending}", written(table))
