"""Print the recommendation of a finished experiment and where its report is.

thaw show                  the only experiment, or the list of them
thaw show my.yaml          by its file, or by its name
thaw show my.yaml --open   opens the report in the browser
"""

import webbrowser
from pathlib import Path

from thaw.cli.selection import configuration, parser_of
from thaw.core.errors import UserError, suggestion
from thaw.decision import record
from thaw.planning.configuration import SUFFIXES
from thaw.words import answer_text

REPORT = "report.html"


def main(words: list[str]) -> None:
    parser = parser_of("show", __doc__)
    parser.add_argument("experiment", nargs="?", help="its file or its name")
    parser.add_argument("--open", action="store_true", help="open the report in the browser")
    given = parser.parse_args(words)
    folder = folder_of(given.experiment, Path("results"))
    print(summary(folder))
    page = folder / REPORT
    if given.open and page.exists():
        webbrowser.open(page.resolve().as_uri())


def summary(folder: Path) -> str:
    """Return the answers of an experiment, where it has any, and where its report is. Args: its folder of outputs."""
    said = [answer_text.in_terminal(answer) for answer in record.read(folder)]
    page = folder / REPORT
    where = f"report: {page}" if page.exists() else "there is no report yet; thaw run makes it"
    return "\n\n".join([*said, where])


def folder_of(experiment: str | None, results: Path) -> Path:
    """Return the folder of outputs of an experiment, given by its file or name; without one that of the only one."""
    folders = record.folders(results)
    if not folders:
        raise UserError(f"{results} has no report; thaw run my.yaml makes one")
    if experiment is None:
        if len(folders) > 1:
            raise UserError(f"{results} has the reports of several experiments: {', '.join(folders)}; name one")
        return next(iter(folders.values()))
    name = experiment
    if experiment.endswith(SUFFIXES):
        name = str(configuration([experiment], []).get("experiment", experiment))
    if name not in folders:
        raise UserError(f"{results} has no report of '{name}'{suggestion(name, folders)}")
    return folders[name]
