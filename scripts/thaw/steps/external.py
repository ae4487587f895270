"""Step `external`: predictions that were made elsewhere, scored like a run's. metrics.json is written last."""

from thaw.core import plugins
from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.runtime import log, run_step
from thaw.core.step_arguments import CATALOGUES, DATA, parse_arguments, required


def main() -> None:
    """Check that corpus and file are those planned for, match the file to the task's rows, and write the records."""
    arguments = parse_arguments(
        __doc__, required("--predictions", "the file of predictions"), DATA, CATALOGUES, out="folder of the result"
    )
    from thaw.core.files import check_digest
    from thaw.data.corpus import Corpus
    from thaw.evaluation.external_predictions import read_predictions
    from thaw.evaluation.log_lines import scores_line
    from thaw.evaluation.result_files import evaluate, predictions_frame, task_with_defaults, write_result

    spec, path = arguments.spec, arguments.predictions
    check_digest(arguments.data / "card.json", spec["data"])
    plugins.verify_plugins(spec, arguments.catalogues)
    if file_sha256(path) != spec["sha256"]:
        raise UserError(f"{path} is not the file that was planned with; run the workflow again")
    corpus, task = Corpus(arguments.data), task_with_defaults(spec["task"], {})
    predictions = read_predictions(path, spec["format"], task, corpus)
    outcome = evaluate(task, corpus, predictions)
    write_result(arguments.out, spec, outcome, None, predictions_frame(task, corpus, predictions))
    log(f"{spec['external']} on {task['id']}: {scores_line(task, outcome)}")


if __name__ == "__main__":
    run_step(main)
