"""Step `table`: one table of an experiment, as JSON, and from that CSV, LaTeX, Markdown and HTML."""

from thaw.core.runtime import log, run_step
from thaw.core.step_arguments import any_number, parse_arguments, required
from thaw.declarations.tables import TABLES
from thaw.outputs import gaps
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats


def main() -> None:
    """Read runs.csv, and write the table under the path prefix --out; the declared HTML last."""
    arguments = parse_arguments(
        __doc__,
        required("--runs", "runs.csv"),
        any_number("--probes", "metrics.json of each probe"),
        any_number("--merges", "merge.json of each merge"),
        required("--results", "where the predictions of runs are"),
        out="path without the ending",
    )
    spec, first = arguments.spec, arguments.spec.get("first_draws")
    data = OutputData(arguments.results, arguments.runs, arguments.probes, first, arguments.merges)

    def draw() -> None:
        table = TABLES[spec["kind"]].load()(data, spec)
        table.notes += data.notes_of_draws
        table_formats.write(table, arguments.out)

    gaps.draw_or_gap(draw, lambda why: table_formats.write(gaps.table(spec, why), arguments.out), arguments.out)
    log(f"{arguments.out}.{{json,{','.join(table_formats.FORMATS)}}}")


if __name__ == "__main__":
    run_step(main)
