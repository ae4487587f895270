"""Step `report`: pages of an experiment and its runs, an article with its references."""

from thaw.core.files import write_text
from thaw.core.runtime import log, run_step
from thaw.core.step_arguments import any_number, parse_arguments, required
from thaw.outputs.frame.runs_frame import read_runs
from thaw.outputs.report import report_page, runs_page


def main() -> None:
    """Read runs.csv, cards, and the tables and figures in the folder of --out; write pages and article."""
    arguments = parse_arguments(
        __doc__,
        required("--runs", "runs.csv"),
        any_number("--records", "what probes and merges recorded"),
        required("--results", "where runs and cards are"),
        required("--logs", "where jobs wrote what they printed, to which pages link"),
        required("--command", "what makes files again, up to their names", str),
        out="the page; tables, figures and the article are in its folder",
    )
    runs = read_runs(arguments.runs)
    content = report_page.content(runs, arguments.spec, arguments.results, arguments.out.parent)
    page, paper = report_page.page(content, arguments.command), report_page.paper(content)
    places = (arguments.results, arguments.logs, arguments.out.parent)
    written = runs_page.pages(runs_page.content(runs, arguments.spec, *places, arguments.records))
    for name, text in written.items():
        write_text(arguments.out.with_name(name), text)
    for old in arguments.out.parent.glob("runs-*.html"):
        if old.name not in written:
            old.unlink()
    write_text(arguments.out.with_name("paper.tex"), paper)
    write_text(arguments.out.with_name("references.bib"), report_page.bibliography(content))
    write_text(arguments.out, page)
    log(str(arguments.out))


if __name__ == "__main__":
    run_step(main)
