"""All results on disk as one tidy table, for notebooks: `from thaw.api import results; results.table()`."""

from pathlib import Path

from thaw.adaptation.selectors import most_thawed, thawed_layers, trains_embeddings
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.declarations.splits import role, splits_of
from thaw.declarations.task_types import PAIR_TYPES
from thaw.outputs.frame.collection import Cards, joined
from thaw.outputs.frame.runs_frame import value

# The step that made the records of each kind, and which columns the names in their paths are.
KINDS = {
    "run": ("train", {}),
    "baseline": ("baseline", {"baseline": "strategy"}),
    "ensemble": ("ensemble", {"ensemble": "strategy"}),
}
COLUMNS = (
    "kind task subset encoder head strategy variant seed thawed embeddings optimizer precision pairs split role metric "
    "main value n train_seconds total_seconds flops trained_parameters peak_memory_mb flags protocol device digest path"
).split()
WHOLE = dict.fromkeys(["seed", "thawed", "n", "trained_parameters"], "Int64")  # may lack a value, unlike int64
NUMBERS = WHOLE | dict.fromkeys(["value", "train_seconds", "total_seconds", "flops", "peak_memory_mb"], "float64")


def table(folder="results"):
    """Return all scores of all runs, baselines and ensembles, of all experiments, as a frame.

    One row per result, split and metric, with those columns of runs.csv (docs/reference/files.md) that depend on no
    experiment; `path` is the folder of the result. Scores are fractions, NaN where undefined; what a baseline does not
    have is empty or NaN. Raises UserError where the folder holds no results, and for a record that is broken.
    """
    import pandas

    # How pairs are read in each store of features, by the digest under which a run's spec names it.
    stores = (read_json(path) for path in Path(folder).glob(layout.pattern("features")))
    views = {card["digest"]: "separate" if card.get("apart") else "joint" for card in stores}
    rows, cards = [], Cards(folder)
    for kind, (step, _) in KINDS.items():
        for path in sorted(Path(folder).glob(layout.pattern(step))):
            rows += _rows(kind, path, views, cards)
    if not rows:
        raise UserError(f"{Path(folder).resolve()} holds no results; run the workflow, or name its results folder")
    return pandas.DataFrame(rows, columns=COLUMNS).astype(NUMBERS)


def _rows(kind: str, path: Path, views: dict[str, str], cards: Cards) -> list[dict]:
    record = read_json(path)
    spec, task = value(record, path, "spec"), value(record, path, "spec", "task")
    step, columns = KINDS[kind]
    names = layout.names_in_folder(step, path.parent.relative_to(cards.results))
    common: dict[str, object] = dict.fromkeys((name for name in COLUMNS if name not in NUMBERS), "")
    common |= {"kind": kind, "path": str(path.parent), "variant": "base", "thawed": 0, "embeddings": False}
    common |= {columns.get(name, name): of for name, of in names.items()}
    common |= {"protocol": task.get("protocol", "clean")}
    flags = value(record, path, "flags") + (cards.warnings(record, path.parent) if kind == "run" else [])
    common |= {"flags": ";".join(flags), "digest": value(record, path, "digest")}
    if kind == "run":
        common |= _run(spec, path) | {"seed": int(names["seed"])}
    if kind == "run" and value(task, path, "type") in PAIR_TYPES:
        common["pairs"] = value(record, path, "chosen").get("pairs") or views.get(spec["features"], "")
    rows, metrics = [], value(record, path, "spec", "task", "metrics")
    task = splits_of(task, spec.get("subset", {}))
    for split, scores in value(record, path, "scores").items():
        split_columns = {
            "split": split,
            "role": role(split, task),
            "n": value(record, path, "rows", split),
        }
        for metric, score in scores.items():
            rows.append({**common, **split_columns, "metric": metric, "main": metric == metrics[0], "value": score})
    return rows


def _run(spec: dict, path: Path) -> dict:
    """Return the columns that a run alone has: what it trained and how, and what that took."""
    phases, cost = value(spec, path, "phases"), path.with_name("cost.json")
    most, record = most_thawed([phase["components"] for phase in phases]), read_json(cost)
    return {
        "thawed": thawed_layers(most),
        "embeddings": trains_embeddings(most),
        "optimizer": joined(phases, "optimizer", "adamw"),
        "precision": record.get("precision") or joined(phases, "precision", "fp32"),
        "train_seconds": value(record, cost, "seconds", "train"),
        "total_seconds": value(record, cost, "seconds", "total"),
        "flops": value(record, cost, "flops"),
        "trained_parameters": value(record, cost, "parameters", "trained"),
        "peak_memory_mb": value(record, cost, "peak_memory_mb"),
        "device": value(record, cost, "hardware", "device"),
    }
