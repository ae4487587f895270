"""Step `baseline`: what needs no encoder, scored like a run. metrics.json is written last."""

from thaw.core import layout, plugins
from thaw.core.runtime import log, run_step
from thaw.core.step_arguments import CATALOGUES, DATA, parse_arguments

SEED = 0  # draws the training rows that are scored; a baseline has no other randomness


def main() -> None:
    """Check that the corpus is the one planned for, predict, and write the records."""
    arguments = parse_arguments(__doc__, DATA, CATALOGUES, out="folder of the result")
    from thaw.compute_cost.stopwatch import Stopwatch
    from thaw.core.files import check_digest, write_parquet
    from thaw.data.corpus import Corpus, subset_rows
    from thaw.evaluation.baselines import fit_baseline
    from thaw.evaluation.result_files import (
        evaluate,
        predictions_frame,
        result_line,
        scored_rows,
        scored_training_rows,
        whole_task,
        write_result,
    )
    from thaw.schema.corpora import SubsetConfig

    spec, watch = arguments.spec, Stopwatch()
    check_digest(arguments.data / "card.json", spec["data"])
    plugins.verify_plugins(spec, arguments.catalogues)
    with watch("train"):
        corpus, task = Corpus(arguments.data), whole_task(spec)
        rows = subset_rows(corpus, task, spec["subset"])
        wanted = {"train": scored_training_rows(rows, SEED)} | scored_rows(task, corpus, spec["subset"])
        draw = SubsetConfig.model_validate(spec["subset"]).draw
        baseline = fit_baseline(spec["baseline"], task, corpus, rows, wanted, draw)
    outcome = evaluate(task, corpus, baseline.predictions) | {"chosen": baseline.chosen}
    outcome |= {"folds": baseline.folds} if baseline.folds else {}
    left_out = predictions_frame(task, corpus, baseline.left_out or baseline.predictions, train=True)
    write_parquet(arguments.out / layout.FOLDS, left_out if baseline.left_out else left_out.iloc[:0])
    cost = {"seconds": watch.seconds()}
    write_result(arguments.out, spec, outcome, cost, predictions_frame(task, corpus, baseline.predictions))
    log(result_line(task, outcome, cost["seconds"]["total"]))


if __name__ == "__main__":
    run_step(main)
