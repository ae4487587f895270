"""A run that trained layers, trained once more on all rows that trained or chose it, in a results folder of its own.

Its steps run as in the workflow, on a dataset whose training split has the validation rows too. So nothing may depend
on validation but settings that are chosen already.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from thaw.core import layout
from thaw.core.boundaries import stored_parts_read
from thaw.core.digests import canonical, digest
from thaw.core.errors import UserError
from thaw.core.files import read_json, save_tensors, write_json, write_parquet
from thaw.core.phrases import listing
from thaw.core.runtime import log, set_threads
from thaw.core.steps import STEPS
from thaw.data.corpus import Corpus, numbered_groups
from thaw.decision import record
from thaw.declarations.needs import NEEDS, stated_needs
from thaw.declarations.objective_kinds import texts_read
from thaw.evaluation.result_files import predictions_frame, read_rows, whole_task
from thaw.exporting.finished_run import (
    FinishedRun,
    Refit,
    check_exported,
    command_of,
    dataset_and_encoder,
    finished,
    open_run,
    result_with,
)
from thaw.schema.experiment import threads_of
from thaw.schema.phases import PhaseConfig
from thaw.training.head_fitting import HeadFit
from thaw.training.run_inputs import Inputs, open_store
from thaw.words.wording import seconds


def trained_on_all_rows(run: Path, folder: Path, catalogues: Sequence[Path]) -> FinishedRun:
    """Train a run once more on the rows of train and validation together, and return it with its earlier scores.

    Args: its folder; an empty folder for the results; folders of catalogues with plug-ins that it uses. Raises
    UserError for what cannot be exported, starts from other runs, or needs validation rows while it trains.
    """
    run, results, metrics = finished(run)
    check_exported(run, metrics)
    spec = metrics["spec"]
    task = whole_task(spec)
    if why := _obstacle(spec, task):
        raise UserError(f"{run}: {why}; export it without --all-rows")
    data, encoder = dataset_and_encoder(results, spec)
    corpus = Corpus(data)
    rows = read_rows(spec | {"subset": spec["subset"] | {"scored": None}}, corpus)
    rows = {"train": rows["train"], task["validation"]: rows[task["validation"]]}
    log(f"training layers and head once more on {sum(map(len, rows.values()))} rows, {_forecast(run, spec, rows)}")
    spec = {key: value for key, value in spec.items() if key != "also"}  # transfer sets are scored, and no more
    spec |= {"data": _write_dataset(corpus, rows, spec, folder / corpus.folder.relative_to(results))}
    spec |= {"subset": {key: spec["subset"][key] for key in ("draw", "scored") if key in spec["subset"]}, "keep": True}
    link = folder / encoder.relative_to(results)
    link.parent.mkdir()
    link.symlink_to(encoder)
    spec |= {"features": _extract(results, folder, spec)}
    if chosen := NEEDS["settings"].stated(spec):
        place = result_with(results, NEEDS["settings"].step, chosen, "search")
        copy = folder / place.relative_to(results)
        copy.parent.mkdir(parents=True)
        shutil.copyfile(place, copy)
    again = folder / run.relative_to(results)
    _run([*command_of(spec, folder, catalogues), "--out", str(again)], run)
    source = open_run(again)
    refit = Refit(again, {split: len(part) for split, part in rows.items()}, layers=True)
    return replace(source, run=run, results=results, metrics=metrics | {"spec": source.spec}, refit=refit)


def _phases(spec: dict) -> list[PhaseConfig]:
    return [PhaseConfig.of_spec(phase) for phase in spec["phases"]]


def _obstacle(spec: dict, task: dict) -> str | None:
    phases = _phases(spec)
    if task["validation"] in task["test"]:
        return f"{task['validation']} is a test split, which never trains"
    if stated_needs(spec).keys() - {"settings"} or spec.get("auxiliary") or texts_read(spec["phases"]):
        return "other runs or datasets have a part in it"
    if any(phase.pick == "best" or phase.patience or phase.stop or phase.schedule == "plateau" for phase in phases):
        return "validation says when its training ends, and would train; updates: and checkpoint: last do without"
    return None


def _forecast(run: Path, spec: dict, rows: dict[str, np.ndarray]) -> str:
    took = read_json(run / "cost.json")["seconds"]["total"]
    if any(phase.updates is None for phase in _phases(spec)):
        took *= sum(map(len, rows.values())) / len(rows["train"])
    return f"in about {seconds(took)}, as its run took"


def _write_dataset(corpus: Corpus, rows: dict[str, np.ndarray], spec: dict, out: Path) -> str:
    """Write a dataset whose train has some rows of several splits, the last of which is its validation split.

    Returns the digest on its card. Test splits are the dataset's own.
    """
    import pandas

    parts = [corpus.frame(split).iloc[chosen].drop(columns="seen", errors="ignore") for split, chosen in rows.items()]
    train = pandas.concat(parts, ignore_index=True)
    task = whole_task(spec | {"subset": {}})
    frames = {
        "train": train.assign(row=np.arange(len(train)), group=numbered_groups(corpus, rows)),
        task["validation"]: parts[-1],
    }
    frames |= {split: corpus.frame(split) for split in task["test"]}
    known = corpus.card["splits"]
    splits = {split: known.get(split, known["train"]) | {"rows": len(frame)} for split, frame in frames.items()}
    card = corpus.card | {"digest": digest({"all_rows": spec}), "splits": splits}
    for split, frame in frames.items():
        write_parquet(out / f"{split}.parquet", frame.reset_index(drop=True))
    write_json(out / "card.json", card)
    return card["digest"]


def _extract(results: Path, folder: Path, spec: dict) -> str:
    """Extract what a run reads of the dataset in a folder of results; return the digest of the store."""
    store = result_with(results, "features", spec["features"], "store of features").parent
    card, parts = read_json(store / "tokens.json"), stored_parts_read(spec["phases"])
    form = read_json(Path(layout.stored_part(str(store), parts[0]))) if parts else {"dtype": "fp32"}
    wanted = {"version": STEPS["features"].version, "view": card["settings"], "compute": {"threads": card["threads"]}}
    wanted |= {key: form[key] for key in ("dtype", "precision") if key in form}
    wanted |= {key: spec[key] for key in ("data", "encoder")}
    data, encoder = dataset_and_encoder(folder, spec)
    command = [sys.executable, "-m", "thaw.steps.features", "--spec", canonical(wanted), "--data", str(data)]
    command += ["--encoder", str(encoder), "--rows", canonical([{key: spec[key] for key in ("task", "subset")}])]
    command += ["--boundaries", *map(str, parts), "--out", str(folder / store.relative_to(results))]
    _run(command, store)
    return digest(wanted)


def _run(command: list[str], what: Path) -> None:
    if subprocess.run(command, check=False).returncode:
        raise UserError(f"{what}: training on all rows failed, see above; --no-all-rows exports the run as it is")


def last_fit(run: Path, folder: Path, all_rows: bool | None = None, catalogues: Sequence[Path] = ()) -> FinishedRun:
    """Return a run as it is exported: trained once more on the rows of train and validation together, or as it is.

    Args: its folder; an empty folder for what is made; whether it trains once more, None for yes where its head was
    fitted to convergence or an answer takes its strategy; folders of catalogues with plug-ins that it uses. Where
    validation is a test split too a head stays: test rows never train.
    """
    place, results, metrics = finished(run)
    if metrics["spec"]["phases"][0].get("optimizer") == "lbfgs":
        source = open_run(run)
        stays = all_rows is False or source.task["validation"] in source.task["test"]
        return source if stays else _refitted(source, folder)
    if all_rows is None:
        all_rows = _is_taken(place, results, metrics["spec"])
    return trained_on_all_rows(run, folder, catalogues) if all_rows else open_run(run)


def _is_taken(run: Path, results: Path, spec: dict) -> bool:
    taking = [name for name, _ in record.answers_that_take(run, results)]
    if not taking:
        return False
    if why := _obstacle(spec, whole_task(spec)):
        log(f"{listing(taking)} takes this strategy, and it is exported as it was trained: {why}")
        return False
    log(f"{listing(taking)} takes this strategy, which trains on all rows; --no-all-rows exports the run as it is")
    return True


def fit_of(source: FinishedRun) -> HeadFit:
    """Return the fit of a run's head, ready to be made again."""
    spec = source.spec
    set_threads(threads_of(spec))
    expected, rows = read_json(source.features / "tokens.json")["digest"], read_rows(spec, source.corpus)
    store = open_store(source.features, expected, spec, source.encoder, rows)
    return HeadFit(spec, Inputs(source.corpus, store, source.encoder))


def _refitted(source: FinishedRun, folder: Path) -> FinishedRun:
    fit = fit_of(source)
    head, predictions = fit.refit(source.metrics["chosen"])
    save_tensors(folder / "head.safetensors", head.state_dict())
    write_parquet(folder / "predictions.parquet", predictions_frame(source.task, source.corpus, predictions))
    return replace(source, refit=Refit(folder, {split: len(rows) for split, rows in fit.context.joint_rows.items()}))
