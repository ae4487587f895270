"""Step `ensemble`: the answers of several runs put together and scored like a run's. metrics.json is written last."""

import argparse
import json
from pathlib import Path

from thaw.core import plugins
from thaw.core.runtime import log, run_step


def main() -> None:
    """Check that corpus and members are those planned for, put their answers together, and write the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    parser.add_argument("--members", required=True, type=Path, nargs="+", help="metrics.json of each run")
    parser.add_argument("--data", required=True, type=Path, help="folder of the corpus, as prepare writes it")
    parser.add_argument("--catalogues", type=Path, nargs="*", default=[], help="folders in which own parts lie")
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    from thaw.data.corpus import Corpus
    from thaw.evaluation.ensembling import combined
    from thaw.evaluation.result_files import (
        check_digest,
        evaluate,
        predictions_frame,
        scored_rows,
        task_with_defaults,
        write_result,
    )

    spec = arguments.spec
    check_digest(arguments.data / "card.json", spec["data"])
    plugins.verify_plugins(spec, arguments.catalogues)
    for path, due in zip(arguments.members, spec["members"], strict=True):
        check_digest(path, due)
    corpus, task = Corpus(arguments.data), task_with_defaults(spec["task"])
    files = [path.with_name("predictions.parquet") for path in arguments.members]
    answers = combined(files, spec["by"], task, corpus, scored_rows(task, corpus, spec["subset"]))
    outcome = evaluate(task, corpus, answers)
    write_result(arguments.out, spec, outcome, None, predictions_frame(task, corpus, answers))
    main_metric = task["metrics"][0]
    shown = ", ".join(f"{split} {scores[main_metric]}" for split, scores in outcome["scores"].items())
    log(f"{spec['ensemble']}, {len(files)} runs, on {task['id']}: {main_metric} on {shown}")


if __name__ == "__main__":
    run_step(main)
