"""Step `ensemble`: several runs combined, their predictions or weights, and scored like a run.

metrics.json is written last.
"""

from argparse import Namespace

from thaw.core import plugins
from thaw.core.runtime import log, run_step
from thaw.core.step_arguments import CATALOGUES, DATA, any_number, at_least_one, parse_arguments


def main() -> None:
    """Check that corpus and members are those planned for, combine them, and write the records."""
    arguments = parse_arguments(
        __doc__,
        at_least_one("--members", "metrics.json of each run"),
        DATA,
        CATALOGUES,
        any_number("--encoder", "card.json of the encoder whose weights are averaged"),
        any_number("--features", "tokens.json of the store that the runs read"),
        any_number("--also-data", "card.json of the corpus of a transfer set, by store"),
        any_number("--also-tokens", "tokens.json of its stores"),
        out="folder of the result",
    )
    from thaw.core.files import check_digest

    spec = arguments.spec
    check_digest(arguments.data / "card.json", spec["data"])
    plugins.verify_plugins(spec, arguments.catalogues)
    for path, expected in zip(arguments.members, spec["members"], strict=True):
        check_digest(path, expected)
    if "ends" in spec:
        from thaw.core.devices import run_again_if_needed

        run_again_if_needed(lambda: average(spec, arguments))
    else:
        combine(spec, arguments)


def combine(spec: dict, arguments: Namespace) -> None:
    """Combine predictions. Args: spec; the parsed arguments, for their folders."""
    from thaw.data.corpus import Corpus
    from thaw.evaluation.result_files import (
        averaged,
        evaluate,
        predictions_frame,
        scored_rows,
        scores_line,
        whole_task,
        write_result,
    )

    corpus, task = Corpus(arguments.data), whole_task(spec)
    files = [path.with_name("predictions.parquet") for path in arguments.members]
    predictions = averaged(files, task, corpus, scored_rows(task, corpus, spec["subset"]))
    outcome = evaluate(task, corpus, predictions)
    write_result(arguments.out, spec, outcome, None, predictions_frame(task, corpus, predictions))
    log(f"{spec['ensemble']}, {len(files)} runs, on {task['id']}: {scores_line(task, outcome)}")


def average(spec: dict, arguments: Namespace) -> None:
    """Average weights, and predict all that the runs have predicted. Args: as of `combine`."""
    from thaw.compute_cost.stopwatch import Stopwatch, claimed
    from thaw.core.files import read_json
    from thaw.core.runtime import set_threads
    from thaw.evaluation.result_files import evaluate, scores_line, write_result
    from thaw.evaluation.transfer_sets import all_predictions, with_transfer_scores
    from thaw.schema.experiment import threads_of
    from thaw.training.averages import Averaged
    from thaw.training.run_inputs import open_inputs

    of_run = read_json(arguments.members[0])["spec"] | {"phases": [], "auxiliary": []}
    set_threads(threads_of(of_run))
    arguments.encoder = arguments.encoder[0].parent
    arguments.features = [file.parent for file in arguments.features]
    (inputs,) = open_inputs(of_run, arguments)
    runs = list(zip(arguments.members, spec["members"], strict=True))
    ends = [runs[start:end] for start, end in spec["ends"]]
    with claimed(Stopwatch()) as device:
        model = Averaged(inputs.on(device), ends)
        chosen = {"share": model.choose()} if len(ends) > 1 else {}
        task, corpus = model.context.task, inputs.corpus
        predictions = {split: model.predict_rows(split) for split in model.context.scored}
        transfer = model.context.transfer_predictions(model.predict)
    outcome = with_transfer_scores(evaluate(task, corpus, predictions), task, transfer) | {"chosen": chosen}
    write_result(arguments.out, spec, outcome, None, all_predictions(task, corpus, predictions, transfer))
    log(f"{spec['ensemble']}, {len(runs)} runs, on {task['id']}: {scores_line(task, outcome)} {chosen or ''}".strip())


if __name__ == "__main__":
    run_step(main)
