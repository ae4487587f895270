"""The formats of a table: CSV, LaTeX (see `latex`), Markdown and HTML, all from its JSON."""

from thaw.core.files import write_text
from thaw.outputs import templates
from thaw.outputs.render import values
from thaw.outputs.render.latex import to_tex
from thaw.outputs.render.typed_table import Table
from thaw.words import wording


def to_csv(table: Table) -> str:
    """Return the plain numbers behind a table."""
    return values.to_csv(table.records())


def to_markdown(table: Table) -> str:
    """Return a pipe table with its caption above and its notes below."""
    heads = [
        wording.markdown(column.title) + f"<br>{wording.markdown(column.metric)}" * bool(column.metric)
        for column in table.columns
    ]
    width, sides = len(heads), (":--|" if words or table.sentences else "--:|" for words in table.texts)
    lines = [f"**{wording.markdown(table.title)}**", "", f"| | {' | '.join(heads)} |", "|:--|" + "".join(sides)]
    lines += [_markdown_row(row, "*") for row in table.baselines]
    for group in table.groups:
        lines += [f"| **{wording.markdown(group.name)}** |" + " |" * width] if group.name else []
        lines += [_markdown_row(row, "*") for row in group.baselines]
        lines += [_markdown_row(row) for row in group.rows]
    lines += [_markdown_row(row, "*") for row in table.ensembles]
    return "\n".join([*lines, "", *(f"- {wording.markdown(note)}" for note in table.notes)]) + "\n"


def _markdown_row(row, mark: str = "") -> str:
    cells = (_markdown_cell(cell).replace("|", r"\|") if cell else "" for cell in row.cells)  # a bar would end the cell
    return f"| {mark}{wording.markdown(row.name)}{mark} | {' | '.join(cells)} |"


def _markdown_cell(cell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    return text + f" {cell.interval}" * bool(cell.interval) + f"; {cell.below}" * bool(cell.below)


def to_html(table: Table) -> str:
    """Return a whole small page."""
    return templates.render("table.html.j2", table=table)


FORMATS = {"csv": to_csv, "tex": to_tex, "md": to_markdown, "html": to_html}


def write(table: Table, prefix) -> None:
    """Write a table as JSON under a path prefix, and from that in all formats; the HTML last."""
    values.write_output(f"{prefix}.json", table.content)
    written = Table.read(f"{prefix}.json")
    for ending, form in FORMATS.items():
        write_text(f"{prefix}.{ending}", form(written))
