"""The formats of a table: CSV, LaTeX, Markdown and HTML, all from its JSON.

LaTeX is a float with notes for numbers, a longtable for sentences: packages booktabs, threeparttable, and for sentences
array and longtable. A float of numbers spans both columns of a two-column page where it has more than NARROW columns. A
standard deviation is padded to the longest one of its column, so that the ± are aligned, and marks take no room.
"""

from collections.abc import Sequence

from thaw.core.files import write_text
from thaw.outputs import templates
from thaw.outputs.render import typed_table
from thaw.outputs.render.typed_table import Row, Table
from thaw.words import wording


def to_csv(table: Table) -> str:
    return typed_table.to_csv(table.records())


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


NARROW = 3  # columns of scores that fit one of two columns of text
END = r" \\"


def to_tex(table: Table) -> str:
    width = len(table.columns)
    titles = " & ".join(["", *(wording.tex(column.label) for column in table.columns)]) + END
    lines = [*_opening(table), titles]
    if table.synthetic:
        marks = (wording.SYNTHETIC if column.synthetic else "" for column in table.columns)
        lines.append(" & ".join(["", *(f"\\scriptsize {mark}" if mark else "" for mark in marks)]) + END)
    if any(column.metric for column in table.columns):
        metrics = (f"\\footnotesize {wording.tex(column.metric)}" for column in table.columns)
        lines.append(" & ".join(["", *metrics]) + END)
    lines += (
        [r"\midrule \endfirsthead", r"\toprule", titles, r"\midrule \endhead"] if table.sentences else [r"\midrule"]
    )
    cells = ([row.cells[index] for row in table.rows] for index in range(len(table.columns)))
    widest = [max((_sd(cell) for cell in column if cell), key=len, default="") for column in cells]
    lines += [_row(row, widest) for row in table.baselines]
    for index, group in enumerate(table.groups):
        lines += [r"\midrule"] if table.baselines or index else []
        named = f"\\multicolumn{{{width + 1}}}{{l}}{{\\emph{{{wording.tex(group.name)}}}}}{END}"
        lines += [named] if group.name else []
        lines += [_row(row, widest) for row in group.baselines]
        lines += [f"\\cmidrule(l){{1-{width + 1}}}"] if group.baselines else []
        lines += [_row(row, widest) for row in group.rows]
    lines += [r"\midrule", *(_row(row, widest) for row in table.ensembles)] if table.ensembles else []
    return "\n".join([*lines, r"\bottomrule", *_closing(table)]) + "\n"


def _float(table: Table) -> str:
    return "table" if len(table.columns) <= NARROW else "table*"


def _opening(table: Table) -> list[str]:
    named = [f"\\caption{{{wording.tex(table.title)}}}", f"\\label{{tab:{table.id}}}"]
    if not table.sentences:
        return [
            f"% table {table.id}; in the preamble: \\usepackage{{booktabs,threeparttable}}",
            f"\\begin{{{_float(table)}}}[t]",
            r"\centering\small\setlength{\tabcolsep}{4pt}",
            r"\begin{threeparttable}",
            *named,
            f"\\begin{{tabular}}{{l{''.join('l' if words else 'r' for words in table.texts)}}}",
            r"\toprule",
        ]
    return [
        f"% table {table.id}; in the preamble: \\usepackage{{booktabs,array,longtable}}. In a two-column style put",
        r"% \onecolumn before it: a longtable needs a page of one column.",
        r"\begingroup\footnotesize",
        f"\\begin{{longtable}}{{{_widths(table)}}}",
        f"{''.join(named)}{END}",
        r"\toprule",
    ]


def _closing(table: Table) -> list[str]:
    """Return the end with the notes: those that have room below a float, all of them below sentences."""
    if table.sentences:
        notes = wording.tex(" ".join(table.notes))
        return [r"\end{longtable}", f"\\par\\smallskip\\footnotesize {notes}", r"\endgroup"]
    items = [f"\\item {wording.tex(note)}" for note in table.short_notes or table.notes]
    listed = [r"\begin{tablenotes}[flushleft]\footnotesize", *items, r"\end{tablenotes}"] if items else []
    return [r"\end{tabular}", *listed, r"\end{threeparttable}", f"\\end{{{_float(table)}}}"]


def _widths(table: Table) -> str:
    """Return columns of a table of sentences, broken into lines, wider where texts are longer."""
    rows = [row for group in table.groups for row in group.rows]
    cells = [[max((c.text, c.interval, c.below), key=len) if c else "" for c in row.cells] for row in rows]
    texts = [[row.name, *found] for row, found in zip(rows, cells, strict=True)]
    texts.append([table.of, *(column.label for column in table.columns)])
    roots = [_need(column) for column in zip(*texts, strict=True)]
    room = 0.99 - 0.026 * len(roots)  # the gaps between columns take the rest
    shares = (room * root / sum(roots) for root in roots)
    return "".join(f">{{\\raggedright\\arraybackslash}}p{{{share:.3f}\\linewidth}}" for share in shares)


def _need(column: Sequence[str]) -> float:
    """Return the relative width of a column of texts, so that no word is broken."""
    longest = max(len(word) for text in column for word in text.split())
    return max(max(map(len, column)) ** 0.5, 0.55 * longest)


def _sd(cell) -> str:
    return "" if cell.written is not None or cell.runs == 0 else cell.spread


def _row(row: Row, widest: list[str]) -> str:
    cells = (_cell(cell, wide) if cell else "" for cell, wide in zip(row.cells, widest, strict=True))
    line = " & ".join([wording.tex(row.name), *cells]) + END
    below = [[wording.tex(getattr(cell, part)) if cell else "" for cell in row.cells] for part in ("interval", "below")]
    small = [
        " & ".join(f"\\scriptsize {{{text}}}" if text else "" for text in ["", *texts]) for texts in below if any(texts)
    ]
    return "\n".join([line, *(f"{text}{END}" for text in small)]) + "[2pt]" * bool(small)


def _cell(cell, widest: str) -> str:
    """Return a cell; of a number with the longest standard deviation of its column."""
    if cell.runs == 0:
        return wording.tex(cell.signs)
    sd, given = _sd(cell), cell.written is not None
    text = wording.tex(cell.written if given else cell.number)
    text = f"\\textbf{{{text}}}" if cell.best else text
    if sd:
        pad = f"\\phantom{{{'0' * (len(widest) - len(sd))}}}" if len(sd) < len(widest) else ""
        text += rf" $\pm$ {pad}{sd}"
    text += f"\\rlap{{{wording.tex(cell.signs)}}}" if cell.signs else ""
    return text + (rf"\phantom{{ $\pm$ {widest}}}" if widest and not sd and not given else "")


FORMATS = {"csv": to_csv, "tex": to_tex, "md": to_markdown, "html": to_html}


def write(table: Table, prefix) -> None:
    """Write a table as JSON under a path prefix, and from that in all formats; the HTML last."""
    typed_table.write_output(f"{prefix}.json", table.content)
    written = Table.read(f"{prefix}.json")
    for ending, form in FORMATS.items():
        write_text(f"{prefix}.{ending}", form(written))
