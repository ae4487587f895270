"""Step `merge`: runs of several tasks, chosen on validation, as one folder on one trunk. merge.json comes with it."""

import shutil

from thaw.core import layout
from thaw.core.digests import digest
from thaw.core.runtime import log, run_step, set_threads
from thaw.core.step_arguments import at_least_one, parse_arguments


def main() -> None:
    """Check that the runs are those planned for, choose one for each task, and write and prove the folder."""
    arguments = parse_arguments(
        __doc__, at_least_one("--runs", "metrics.json of each run that may be a branch"), out="folder of the result"
    )
    from thaw.core.files import check_digest
    from thaw.merging import merge_runs
    from thaw.merging.merge_runs import merge, merge_summary

    spec, out = arguments.spec, arguments.out
    planned = [run for _, points in sorted(spec["tasks"].items()) for point in points for run in point["runs"]]
    for metrics, expected in zip(arguments.runs, planned, strict=True):
        check_digest(metrics, expected)
    set_threads(1)
    served = merge_runs.select(spec, arguments.runs)
    for task, run in served.items():
        log(f"{task}: {run.strategy} {run.variant}, {run.size.frozen} + {run.size.own} layers, {run.validation:.2f}")
    shutil.rmtree(out, ignore_errors=True)  # of an earlier spec
    results = layout.results_folder(arguments.runs[0].absolute(), ("train",))
    assert results
    record = merge_runs.record(spec, digest(spec), served, results)
    report = merge([run.folder for run in served.values()], out, record)
    log(merge_summary(out, report))


if __name__ == "__main__":
    run_step(main)
