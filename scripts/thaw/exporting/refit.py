"""The last fit of a head on a frozen encoder: to all rows that trained or chose it, with the chosen settings."""

from dataclasses import replace
from pathlib import Path

from thaw.core.files import read_json, save_tensors, write_parquet
from thaw.core.runtime import set_threads
from thaw.evaluation.result_files import predictions_frame
from thaw.exporting.finished_run import FinishedRun, Refit
from thaw.schema.experiment import threads_of
from thaw.training.head_fitting import HeadFit
from thaw.training.rows_read import read_rows
from thaw.training.run_inputs import Inputs, open_store


def refitted(source: FinishedRun, folder: Path) -> FinishedRun:
    """Return a run with its head fitted once more, from the cached states; a run that trained otherwise as it is.

    Where validation is a test split too the run stays as it is: test rows are never fitted. Args: where to write the
    new head and its predictions.
    """
    spec, task = source.spec, source.task
    if spec["phases"][0].get("optimizer") != "lbfgs" or task["validation"] in task["test"]:
        return source
    set_threads(threads_of(spec))
    expected, rows = read_json(source.features / "tokens.json")["digest"], read_rows(spec, source.corpus)
    store = open_store(source.features, expected, spec, source.encoder, rows)
    fit = HeadFit(spec, Inputs(source.corpus, store, source.encoder))
    head, predictions = fit.refit(source.metrics["chosen"])
    save_tensors(folder / "head.safetensors", head.state_dict())
    write_parquet(folder / "predictions.parquet", predictions_frame(task, source.corpus, predictions))
    return replace(source, refit=Refit(folder, {split: len(rows) for split, rows in fit.context.joint_rows.items()}))
