"""A table in its four formats: CSV, LaTeX, Markdown and HTML."""

import csv
import io

from thaw.core.files import write_text
from thaw.outputs import templates, wording
from thaw.outputs.tables.table_model import Table


def to_csv(table: Table) -> str:
    """Return the plain numbers behind a table."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(table.records())
    return file.getvalue()


def to_tex(table: Table) -> str:
    """Return a LaTeX table; it needs the packages booktabs, array and, of sentences, longtable."""
    width = len(table.columns)
    lines = [f"% table {table.id}; in the preamble: \\usepackage{{booktabs,array,longtable}}", *_tex_opening(table)]
    lines.append(" & ".join(["", *(wording.tex(column.label) for column in table.columns)]) + r" \\")
    if table.synthetic:
        marks = (wording.SYNTHETIC if column.synthetic else "" for column in table.columns)
        lines.append(" & ".join(["", *(f"\\scriptsize {mark}" if mark else "" for mark in marks)]) + r" \\")
    if any(column.metric for column in table.columns):
        metrics = (f"\\footnotesize {wording.tex(column.metric)}" for column in table.columns)
        lines.append(" & ".join(["", *metrics]) + r" \\")
    lines += [r"\midrule" + r" \endhead" * table.sentences]
    lines += [_tex_row(row) for row in table.baselines]
    for index, group in enumerate(table.groups):
        lines += [r"\midrule"] if table.baselines or index else []
        lines += (
            [f"\\multicolumn{{{width + 1}}}{{l}}{{\\emph{{{wording.tex(group.name)}}}}} \\\\"] if group.name else []
        )
        lines += [_tex_row(row) for row in group.baselines]
        lines += [f"\\cmidrule(l){{1-{width + 1}}}"] if group.baselines else []
        lines += [_tex_row(row) for row in group.rows]
    lines += [r"\midrule", *(_tex_row(row) for row in table.external)] if table.external else []
    notes = wording.tex(" ".join(table.notes))
    environment = "longtable" if table.sentences else "tabular"
    lines += [r"\bottomrule", f"\\end{{{environment}}}", f"\\par\\smallskip\\footnotesize {notes}"]
    return "\n".join([*lines, r"\endgroup" if table.sentences else r"\end{table}"]) + "\n"


def _tex_opening(table: Table) -> list[str]:
    """Return the opening of a table: a float for numbers, a longtable for sentences."""
    named = [f"\\caption{{{wording.tex(caption(table))}}}", f"\\label{{tab:{table.id}}}"]
    if not table.sentences:
        return [
            r"\begin{table}[t]",
            r"\centering\small",
            *named,
            f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            r"\toprule",
        ]
    return [
        r"\begingroup\footnotesize",
        f"\\begin{{longtable}}{{{_tex_widths(table)}}}",
        f"{''.join(named)} \\\\",
        r"\toprule",
    ]


def _tex_widths(table: Table) -> str:
    """Return columns of a table of sentences, broken into lines, wider where texts are longer."""
    rows = [row for group in table.groups for row in group.rows]
    texts = [[row.name, *(cell.text if cell else "" for cell in row.cells)] for row in rows]
    texts.append([table.of, *(column.label for column in table.columns)])
    roots = [_need(column) for column in zip(*texts, strict=True)]
    room = 0.99 - 0.026 * len(roots)  # the gaps between columns take the rest
    shares = (room * root / sum(roots) for root in roots)
    return "".join(f">{{\\raggedright\\arraybackslash}}p{{{share:.3f}\\linewidth}}" for share in shares)


def _need(column: tuple[str, ...]) -> float:
    """Return the relative width of a column of texts, so that no word is broken."""
    longest = max(len(word) for text in column for word in text.split())
    return max(max(map(len, column)) ** 0.5, 0.55 * longest)


def _tex_row(row) -> str:
    cells = (wording.tex(cell.text) if cell else "" for cell in row.cells)
    marked = (
        f"\\textbf{{{text}}}" if cell and cell.best else text for cell, text in zip(row.cells, cells, strict=True)
    )
    return " & ".join([wording.tex(row.name), *marked]) + r" \\"


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
    cells = (("**%s**" if cell.best else "%s") % cell.text if cell else "" for cell in row.cells)
    return f"| {mark}{wording.markdown(row.name)}{mark} | {' | '.join(cells)} |"


def to_html(table: Table) -> str:
    """Return a whole small page, of which the report takes the body."""
    return templates.render("table.html.j2", table=table, caption=caption(table))


def html_body(page: str) -> str:
    """Return table and notes of a page that `to_html` wrote, without the caption; nothing of another page."""
    return page.partition("</figcaption>")[2].rpartition("</figure>")[0]


def caption(table: Table) -> str:
    """Return the caption, which says SYNTHETIC first where any column is."""
    return f"[{wording.SYNTHETIC} data] {table.caption}" if table.synthetic else table.caption


FORMATS = {"csv": to_csv, "tex": to_tex, "md": to_markdown, "html": to_html}


def write(table: Table, prefix) -> None:
    """Write a table in all formats under a path prefix; the HTML last."""
    for ending, written in FORMATS.items():
        write_text(f"{prefix}.{ending}", written(table))
