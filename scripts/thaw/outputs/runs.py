"""The runs of an experiment as one long table: read from the records, written by `collect`, read by all outputs.

One row per run, split and metric. Baselines stand in it as strategies without encoder, head and seed.

    value               score as a fraction, empty where it is undefined; n: rows that it was computed on
    main                True for the task's main metric; role: train, validation, test, or unseen (test rows that share
                        no sentence with train)
    optimizer           of the run's phases; lbfgs means that all seeds share one convex fit
    train_seconds       this run's own training; after_seconds and after_flops: of the runs that it started from
    extraction_seconds  the run's equal share of the encoder passes that wrote the boundaries which it and its
                        neighbours in this experiment read; 0 where it read none
"""

from itertools import product
from pathlib import Path

from thaw.records import UserError, read_json

COLUMNS = (
    "task subset encoder head strategy variant seed thawed embeddings optimizer split role metric main value n "
    "train_seconds after_seconds total_seconds extraction_seconds flops after_flops trained_parameters peak_memory_mb "
    "flags synthetic protocol device digest"
).split()
BASELINE = {"encoder": "", "head": "", "variant": "base", "thawed": 0, "embeddings": False, "optimizer": ""}


def run_folder(results, run: dict, seed: int) -> Path:
    """Return the folder of a run below the results folder."""
    parts = (run[key] for key in ("task", "subset", "encoder", "head", "strategy", "variant"))
    return Path(results, "runs", *parts, f"seed{seed}")


def listed(spec: dict) -> list[dict]:
    """Return one entry per variant of the grid that a spec spans.

    Keys: task, subset, encoder, head, strategy, variant, thawed, embeddings, after ([[strategy, variant], ...]),
    corpus, view. Spec: tasks {id: {corpus, view, ...}}, subsets, heads, grid [{encoder, strategies}].
    """
    return [
        {"task": task, **spec["tasks"][task], "subset": subset, "encoder": cell["encoder"], "head": head, **point}
        for cell in spec["grid"]
        for task, subset, head in product(spec["tasks"], spec["subsets"], spec["heads"])
        for point in cell["strategies"]
    ]


def collect(spec: dict, results) -> list[dict]:
    """Return the rows of runs.csv for the runs and baselines that a spec selects.

    Args: spec as step `collect` gets it; results: the results folder. Raises UserError for a record that is missing
    or lacks a key, naming the file.
    """
    synthetic = {task: _synthetic(results, entry["corpus"]) for task, entry in spec["tasks"].items()}
    rows = []
    for task, subset, name in product(spec["tasks"], spec["subsets"], spec["baselines"]):
        path = Path(results, "baselines", task, subset, name, "metrics.json")
        common = {"task": task, "subset": subset, **BASELINE, "strategy": name, "synthetic": synthetic[task]}
        rows += _score_rows(path, common)
    runs = listed(spec)
    shares = extraction_shares(runs, spec["seeds"], results)
    for run, seed in product(runs, spec["seeds"]):
        folder = run_folder(results, run, seed)
        common = {**run, "seed": seed, "extraction_seconds": shares.get(folder, 0.0), **_costs(run, seed, results)}
        rows += _score_rows(folder / "metrics.json", {**common, "synthetic": synthetic[run["task"]]})
    return rows


def _synthetic(results, corpus: str) -> bool:
    """Return whether a prepared corpus was written by Thaw itself, as its card says."""
    path = Path(results, "data", corpus, "card.json")
    return bool(_value(read_json(path), path, "synthetic"))


def extraction_shares(runs: list[dict], seeds: list[int], results) -> dict[Path, float]:
    """Return for each run folder that reads cached states its share of their extraction, in seconds.

    The seconds of the encoder passes that wrote the boundaries which the listed runs read, per folder of features,
    divided equally among the runs that read any of them. All cards of one pass state its seconds (to the
    millisecond), so that equal seconds within a folder are one pass.
    """
    readers: dict[Path, list[Path]] = {}
    boundaries: dict[Path, set[int]] = {}
    for run in runs:
        features = Path(results, "features", run["encoder"], run["corpus"], run["view"])
        for seed in seeds:
            folder = run_folder(results, run, seed)
            read = _boundaries(folder / "metrics.json")
            if read:
                readers.setdefault(features, []).append(folder)
                boundaries.setdefault(features, set()).update(read)
    shares = {}
    for features, folders in readers.items():
        cards = [features / f"b{n}.json" for n in sorted(boundaries[features])]
        spent = sum({float(_value(read_json(card), card, "seconds")) for card in cards})
        shares.update({folder: spent / len(folders) for folder in folders})
    return shares


def read_runs(path):
    """Read runs.csv into a pandas frame; ids are text, empty scores NaN. A file without runs is a UserError."""
    import pandas

    text = {name: str for name in ("task", "subset", "encoder", "head", "strategy", "variant", "flags", "device")}
    try:
        frame = pandas.read_csv(path, dtype={**text, "digest": str, "split": str, "metric": str, "optimizer": str})
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: run step collect") from error
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, ValueError) as error:
        raise UserError(f"{path}: not a table of runs ({error}); delete it so that it is made again") from error
    missing = [column for column in COLUMNS if column not in frame]
    if missing:
        raise UserError(f"{path}: column {missing[0]} is missing; delete the file so that it is made again")
    if frame.empty:
        raise UserError(f"{path}: holds no runs")
    return frame.fillna({name: "" for name in [*text, "digest", "optimizer"]})


def _value(record, path, *keys):
    """Return a value inside a record; a missing key is a UserError that names the file and the key."""
    value = record
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            raise UserError(f"{path}: '{'.'.join(keys)}' is missing; delete the file so that it is made again")
        value = value[key]
    return value


def _boundaries(path) -> set[int]:
    """Return the stored boundaries that a run's phases resumed from."""
    phases = _value(read_json(path), path, "spec", "phases")
    return {phase["boundary"] for phase in phases if phase.get("boundary") is not None}


def _costs(run: dict, seed: int, results) -> dict:
    """Return a run's cost columns, with those of the runs that it started from, run["after"]."""
    path = run_folder(results, run, seed) / "cost.json"
    record = read_json(path)
    spent = {"after_seconds": 0.0, "after_flops": 0.0}
    for strategy, variant in run.get("after", []):
        earlier = run_folder(results, {**run, "strategy": strategy, "variant": variant}, seed) / "cost.json"
        found = read_json(earlier)
        spent["after_seconds"] += _value(found, earlier, "seconds", "train")
        spent["after_flops"] += _value(found, earlier, "flops")
    return {
        "train_seconds": _value(record, path, "seconds", "train"),
        "total_seconds": _value(record, path, "seconds", "total"),
        "flops": _value(record, path, "flops"),
        "trained_parameters": _value(record, path, "parameters", "trained"),
        "peak_memory_mb": _value(record, path, "peak_memory_mb"),
        "device": _value(record, path, "hardware", "device"),
        **spent,
    }


def _score_rows(path, common: dict) -> list[dict]:
    """Return one row per split and metric of a metrics.json."""
    record = read_json(path)
    optimizers = {phase.get("optimizer", "adamw") for phase in record.get("spec", {}).get("phases", [])}
    common = {
        **{column: "" for column in COLUMNS},
        **{key: value for key, value in common.items() if key in COLUMNS},
        "flags": ";".join(_value(record, path, "flags")),
        "digest": _value(record, path, "digest"),
        "optimizer": "+".join(sorted(optimizers)),
    }
    task, rows = _value(record, path, "spec", "task"), []
    common["protocol"] = task.get("protocol", "clean")
    main = _value(record, path, "spec", "task", "metrics")[0]
    for split, scores in _value(record, path, "scores").items():
        for metric, value in scores.items():
            place = {"split": split, "role": _role(split, task), "metric": metric, "main": metric == main}
            rows.append({**common, **place, "value": value, "n": _value(record, path, "rows", split)})
    return rows


def _role(split: str, task: dict) -> str:
    """Return what a scored split is for: train, validation, test, or unseen (the unseen part of a test split)."""
    if split in task.get("test", ["test"]):
        return "test"
    if split.endswith("_unseen"):
        return "unseen"
    return "train" if split == "train" else "validation"
