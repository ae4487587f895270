"""Step `collect`: all runs of an experiment in one long table, runs.csv, and runs.json, where each of them is."""

from thaw.core.files import write_json, write_text
from thaw.core.runtime import log, run_step
from thaw.core.step_arguments import parse_arguments, required
from thaw.outputs.frame import collection
from thaw.outputs.frame.runs_frame import COLUMNS


def main() -> None:
    """Read the records that the spec selects and write one row per run, split and metric."""
    arguments = parse_arguments(
        __doc__,
        required("--results", "folder of all results"),
        required("--logs", "where a missing result's log would be"),
        out="runs.csv",
    )
    import pandas

    rows = collection.rows(arguments.spec, arguments.results, arguments.logs)
    table = pandas.DataFrame(rows, columns=COLUMNS)
    write_json(arguments.out.with_name("runs.json"), arguments.spec["results"])
    write_text(arguments.out, table.to_csv(index=False, lineterminator="\n"))
    log(f"{table['digest'].nunique()} results of {arguments.spec['experiment']}, {len(table)} scores")


if __name__ == "__main__":
    run_step(main)
