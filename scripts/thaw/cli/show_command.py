"""Print the recommendation of a finished experiment and where its report is.

thaw show                  the only experiment, or the list of them
thaw show my.yaml          by its file, or by its name
thaw show my.yaml --open   opens the report in the browser
"""

import re
import webbrowser
from pathlib import Path

from thaw.cli.selection import configuration, parser_of
from thaw.core import layout
from thaw.core.advice_tables import advice_tables
from thaw.core.errors import UserError, suggestion
from thaw.planning.config_files import SUFFIXES


def main(words: list[str]) -> None:
    """Print, or open, the report of an experiment."""
    parser = parser_of("show", __doc__)
    parser.add_argument("experiment", nargs="?", help="its file or its name")
    parser.add_argument("--results", default="results", metavar="FOLDER", help="the folder of all results")
    parser.add_argument("--open", action="store_true", help="open the report in the browser")
    given = parser.parse_args(words)
    page = page_of(given.experiment, Path(given.results))
    print(summary(page))
    if given.open:
        webbrowser.open(page.resolve().as_uri())


def summary(page: Path) -> str:
    """Return the recommendation of an experiment, where it has one, and where its report is. Args: the report."""
    tables = [table.with_suffix(".md") for table in advice_tables(page.parent)]
    recommended = [_without_notes(table) for table in tables if table.is_file()]
    return "\n\n".join(
        [*recommended, f"report, with how this is decided: {page}" if recommended else f"report: {page}"]
    )


def _without_notes(table: Path) -> str:
    """Return a table for a terminal, which is no Markdown; its notes are longer than it, and in the report."""
    shown = [line for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("- ")]
    return re.sub(r"\\([_*|])", r"\1", "\n".join(shown).strip())


def page_of(experiment: str | None, results: Path) -> Path:
    """Return the report of an experiment, given by its file or name; without one that of the only experiment."""
    pages = {page.parent.name: page for page in sorted(results.glob(layout.pattern("report")))}
    if not pages:
        raise UserError(f"{results} has no report; thaw run my.yaml makes one")
    if experiment is None:
        if len(pages) > 1:
            raise UserError(f"{results} has the reports of several experiments: {', '.join(pages)}; name one")
        return next(iter(pages.values()))
    name = experiment
    if experiment.endswith(SUFFIXES):
        name = str(configuration([experiment], []).get("experiment", experiment))
    if name not in pages:
        raise UserError(f"{results} has no report of '{name}'{suggestion(name, pages)}")
    return pages[name]
