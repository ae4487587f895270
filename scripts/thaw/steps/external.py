"""Step `external`: predictions that were made elsewhere, scored like a run's. metrics.json is written last."""

import argparse
import json
from pathlib import Path

from thaw import parts
from thaw.records import UserError, file_sha256
from thaw.runtime import log, run_step


def main() -> None:
    """Check that corpus and file are those planned for, match the file to the task's rows, and write the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    parser.add_argument("--predictions", required=True, type=Path, help="the file of predictions")
    parser.add_argument("--data", required=True, type=Path, help="folder of the corpus, as prepare writes it")
    parser.add_argument("--catalogues", type=Path, nargs="*", default=[], help="folders in which own parts lie")
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    from thaw.analysis.external import read_answers
    from thaw.analysis.results import assess, check_digest, predictions_frame, whole_task, write_result
    from thaw.data.corpus import Corpus

    spec, path = arguments.spec, arguments.predictions
    check_digest(arguments.data / "card.json", spec["data"])
    parts.admit(spec, arguments.catalogues)
    if file_sha256(path) != spec["sha256"]:
        raise UserError(f"{path} is not the file that was planned with; run the workflow again")
    corpus, task = Corpus(arguments.data), whole_task(spec["task"])
    answers = read_answers(path, spec["format"], task, corpus)
    outcome = assess(task, corpus, answers)
    write_result(arguments.out, spec, outcome, None, predictions_frame(task, corpus, answers))
    main_metric = task["metrics"][0]
    shown = ", ".join(f"{split} {scores[main_metric]}" for split, scores in outcome["scores"].items())
    log(f"{spec['external']} on {task['id']}: {main_metric} on {shown}")


if __name__ == "__main__":
    run_step(main)
