"""Step `ensemble`: the predictions of several runs combined and scored like a run's. metrics.json is written last."""

from thaw.core import plugins
from thaw.core.runtime import log, run_step
from thaw.core.step_arguments import CATALOGUES, DATA, at_least_one, parse_arguments


def main() -> None:
    """Check that corpus and members are those planned for, combine their predictions, and write the records."""
    arguments = parse_arguments(
        __doc__, at_least_one("--members", "metrics.json of each run"), DATA, CATALOGUES, out="folder of the result"
    )
    from thaw.core.files import check_digest
    from thaw.data.corpus import Corpus
    from thaw.evaluation.result_files import (
        combined,
        evaluate,
        predictions_frame,
        scored_rows,
        scores_line,
        task_with_defaults,
        write_result,
    )

    spec = arguments.spec
    check_digest(arguments.data / "card.json", spec["data"])
    plugins.verify_plugins(spec, arguments.catalogues)
    for path, expected in zip(arguments.members, spec["members"], strict=True):
        check_digest(path, expected)
    corpus, task = Corpus(arguments.data), task_with_defaults(spec["task"], spec["subset"])
    files = [path.with_name("predictions.parquet") for path in arguments.members]
    predictions = combined(files, spec["by"], task, corpus, scored_rows(task, corpus, spec["subset"]))
    outcome = evaluate(task, corpus, predictions)
    write_result(arguments.out, spec, outcome, None, predictions_frame(task, corpus, predictions))
    log(f"{spec['ensemble']}, {len(files)} runs, on {task['id']}: {scores_line(task, outcome)}")


if __name__ == "__main__":
    run_step(main)
