"""The last fit of a run before its export: to all rows that trained or chose it, with the chosen settings."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from thaw.core.files import read_json, save_tensors, write_parquet
from thaw.core.runtime import set_threads
from thaw.evaluation.result_files import predictions_frame
from thaw.exporting.all_rows import trained_on_all_rows
from thaw.exporting.finished_run import FinishedRun, Refit, finished, open_run
from thaw.schema.experiment import threads_of
from thaw.training.head_fitting import HeadFit
from thaw.training.rows_read import read_rows
from thaw.training.run_inputs import Inputs, open_store


def last_fit(run: Path, folder: Path, all_rows: bool = False, catalogues: Sequence[Path] = ()) -> FinishedRun:
    """Return a run as it is exported: its head fitted once more where it was fitted to convergence.

    Args: its folder; an empty folder for what is made; whether a run that trained layers trains once more too; folders
    of catalogues with plug-ins that it uses. Where validation is a test split too a head stays: test rows never train.
    """
    *_, metrics = finished(run)
    if metrics["spec"]["phases"][0].get("optimizer") != "lbfgs":
        return trained_on_all_rows(run, folder, catalogues) if all_rows else open_run(run)
    source = open_run(run)
    return source if source.task["validation"] in source.task["test"] else _refitted(source, folder)


def _refitted(source: FinishedRun, folder: Path) -> FinishedRun:
    """Return a run with its head fitted once more, from the cached states."""
    spec, task = source.spec, source.task
    set_threads(threads_of(spec))
    expected, rows = read_json(source.features / "tokens.json")["digest"], read_rows(spec, source.corpus)
    store = open_store(source.features, expected, spec, source.encoder, rows)
    fit = HeadFit(spec, Inputs(source.corpus, store, source.encoder))
    head, predictions = fit.refit(source.metrics["chosen"])
    save_tensors(folder / "head.safetensors", head.state_dict())
    write_parquet(folder / "predictions.parquet", predictions_frame(task, source.corpus, predictions))
    return replace(source, refit=Refit(folder, {split: len(rows) for split, rows in fit.context.joint_rows.items()}))
