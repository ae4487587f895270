"""Step `latency`: the times of a merged folder against its runs as one model each. latency.json is written last."""

from thaw.core import layout
from thaw.core.digests import digest
from thaw.core.files import read_json, write_json, write_text
from thaw.core.runtime import hardware, log, run_step, set_threads
from thaw.core.step_arguments import parse_arguments, required


def main() -> None:
    """Check that the folder is the one planned for, measure it, and write the times."""
    cores = required("--cores", "the cores that the job has", int)
    arguments = parse_arguments(__doc__, required("--merge", "the merged folder"), cores, out="folder of the result")
    import pandas
    import torch

    from thaw.core.files import check_digest
    from thaw.merging import call_times
    from thaw.schema.experiment import LatencyConfig, threads_of

    spec, folder = arguments.spec, arguments.merge
    check_digest(folder / "merge.json", spec["merge"])
    threads = threads_of(spec)
    set_threads(threads)
    if arguments.cores < threads:
        log(f"{threads} threads on cores: {arguments.cores}: times are longer than they need be; give more --cores")
    settings = spec | {"latency": LatencyConfig.model_validate(spec["latency"]).model_dump()}
    results = layout.results_folder(folder.absolute(), ("merge",))
    assert results
    measured, rows = call_times.measure(folder, results, settings)
    frame = pandas.DataFrame(rows, columns=call_times.COLUMNS)
    write_text(arguments.out / "latency.csv", frame.to_csv(index=False, lineterminator="\n"))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    record = {
        "spec": spec,
        "digest": digest(spec),
        "rows": rows,
        "threads": threads,
        "cores": arguments.cores,
        "hardware": hardware(device),
    }
    counts = {"parameters": read_json(folder / "merge.json")["parameters"]}
    write_json(arguments.out / "latency.json", record | counts | measured)
    log(f"{len(rows)} settings measured, {settings['latency']['calls']} calls each")


if __name__ == "__main__":
    run_step(main)
