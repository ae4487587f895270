"""Step `figure`: one figure of an experiment, as PDF, SVG and PNG, with the numbers behind it as JSON and CSV."""

from thaw.core.runtime import log, run_step
from thaw.core.step_arguments import any_number, parse_arguments, required
from thaw.declarations.figures import FIGURES
from thaw.outputs import gaps
from thaw.outputs.frame.output_data import OutputData


def main() -> None:
    """Read runs.csv, or what probes found, and write the figure under the path prefix --out."""
    arguments = parse_arguments(
        __doc__,
        required("--runs", "runs.csv"),
        any_number("--probes", "metrics.json of each probe"),
        any_number("--merges", "merge.json of each merge"),
        required("--results", "where histories, predictions and trials are"),
        out="path without the ending",
    )
    spec = arguments.spec
    data = OutputData(arguments.results, arguments.runs, arguments.probes, spec.get("first_draws"), arguments.merges)

    def draw() -> None:
        FIGURES[spec["kind"]].load()(data, spec).write(arguments.out)

    gaps.draw_or_gap(draw, lambda why: gaps.figure(spec, why).write(arguments.out), arguments.out)
    log(f"{arguments.out}.{{json,csv,pdf,png,svg}}")


if __name__ == "__main__":
    run_step(main)
