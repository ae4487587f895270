"""The results that an experiment selects, and the rows of runs.csv that they make."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.declarations.needs import NEEDS
from thaw.declarations.splits import role, splits_of, stored_split
from thaw.outputs.frame import sanity_flags
from thaw.outputs.frame.price import drawn_rows, extraction_costs, of_training, search_costs, searches_of
from thaw.outputs.frame.runs_frame import COLUMNS, value
from thaw.words import wording

OTHERWISE = "made under other settings"  # why a result that is there is missing
ERROR = re.compile(r"^(?:error|[\w.]*Error): (.+)$", flags=re.MULTILINE)


@dataclass(frozen=True)
class CollectedNeed:
    """What a run that a spec selects needs: in which role, and the step and the names of the job that makes it."""

    role: str
    step: str
    names: dict

    @property
    def folder(self) -> str:
        return layout.folder(self.step, self.names)


@dataclass(frozen=True)
class CollectedResult:
    """A result that a spec selects.

    step and names: of the job that makes it. row: the columns that the spec alone decides. For runs: stores, the
    folders of features that it may read, by how pairs are read in them; needs, what else it is made from.
    """

    step: str
    names: dict
    row: dict
    stores: dict[str, str] = field(default_factory=dict)
    needs: tuple[CollectedNeed, ...] = ()

    @classmethod
    def of(cls, entry: dict) -> "CollectedResult":
        """Return a result as the plan lists it."""
        needs = tuple(CollectedNeed(**need) for need in entry.get("needs", []))
        return cls(entry["step"], entry["names"], entry["row"], entry.get("stores", {}), needs)

    @property
    def folder(self) -> str:
        return layout.folder(self.step, self.names)

    @property
    def paid(self) -> list[str]:
        """The folders of what it needs whose cost counts as its own."""
        return list(dict.fromkeys(need.folder for need in self.needs if NEEDS[need.role].costs))

    @property
    def files(self) -> list[str]:
        costs = [self.folder, *self.paid] if self.stores else []
        return [f"{self.folder}/metrics.json", *(f"{folder}/cost.json" for folder in costs)]


def selected(spec: dict) -> list[CollectedResult]:
    """Return every result that the spec of `collect` lists: baselines, runs, ensembles."""
    return [CollectedResult.of(entry) for entry in spec["results"]]


def rows(spec: dict, results, logs) -> list[dict]:
    """Return the rows of runs.csv.

    Args: spec as step `collect` gets it; results and logs: folders. Raises UserError for a record that is missing or
    lacks a key, naming the file; where the spec says `missing`, a missing result has rows that say why instead.
    """
    everything, stale = selected(spec), set(spec.get("stale", []))
    there = {result.folder for result in everything if all(Path(results, file).exists() for file in result.files)}
    gap = {result.folder for result in everything} - (there - stale) if spec.get("missing") else set()
    present = [result for result in everything if result.folder not in gap]
    if not any(result.row["kind"] == "run" for result in present):
        raise UserError(f"{results}: no run of this experiment has a result yet; run the workflow first")
    passes, cards, made = extraction_costs(present, results), Cards(results), []
    searches = Counter(folder for result in present for folder in searches_of(result.needs))
    trained = [(Path(results, result.folder), result.row) for result in present if result.stores]
    repeated = sanity_flags.identical_runs([folder for folder, _ in trained])
    compared = {"same_seeds": repeated, "underfit": sanity_flags.underfit_runs(trained)}
    for result in everything:
        subset = spec.get("own_splits", {}).get(result.row["subset"], {})
        task = splits_of(spec["tasks"][result.row["task"]], subset)
        common = {name: "" for name in COLUMNS} | {"folder": result.folder} | cards.facts(task)
        common |= {name: value for name, value in result.row.items() if name in COLUMNS}
        if result.folder in gap:
            reason = OTHERWISE if result.folder in stale else _why_missing(result, task, logs)
            bare = {"metric": task["metrics"][0], "main": True, "n": 0}
            splits = dict.fromkeys([task["validation"], *task["test"]])
            made += [{**common | {"missing": reason}, **bare, **_split_facts(split, task)} for split in splits]
        else:
            flags = [flag for flag, folders in compared.items() if Path(results, result.folder) in folders]
            if result.stores:
                common |= _costs(result, results, passes[result.folder], searches)
            made += _score_rows(result, common, results, cards, flags)
    return made


class Cards:
    """The cards of corpora and tokens, each read once."""

    def __init__(self, results):
        self.results = Path(results)
        self._read: dict[Path, dict] = {}

    def facts(self, task: dict) -> dict:
        """Return the columns about a row's dataset; none if it was never prepared."""
        path = self.results / layout.file("prepare", {"corpus": task["corpus"]})
        if not path.exists():
            return {}
        card = self.read(path)
        held = stored_split(task["validation"], value(card, path, "splits"))
        carved = held == "train" or value(card, path, "splits", held, "carved_from") is not None
        total = value(card, path, "splits", "train", "rows")
        return {"synthetic": bool(value(card, path, "synthetic")), "carved": carved, "train_rows": total}

    def truncated(self, store: str) -> dict[str, int]:
        """Return the number of truncated texts of each split of a store."""
        path = self.results / store / "tokens.json"
        return {name: split["truncated"] for name, split in value(self.read(path), path, "splits").items()}

    def read(self, path: Path) -> dict:
        if path not in self._read:
            self._read[path] = read_json(path)
        return self._read[path]


def _costs(result: CollectedResult, results, extraction: dict[str, float], searches: Counter) -> dict:
    """Return a run's cost columns, with those of what it needs: earlier runs, further pretraining, a search.

    Args: extraction, its columns of `extraction_costs`; how many runs need each search, by its folder.
    """
    path, spent = Path(results, result.folder, "cost.json"), {"after_seconds": 0.0, "after_flops": 0.0}
    record = read_json(path)
    price = of_training(record, path).seconds + extraction["extraction_price_seconds"]
    for folder in result.paid:
        earlier = Path(results, folder, "cost.json")
        paid = read_json(earlier)
        spent["after_seconds"] += value(paid, earlier, "seconds", "train")
        spent["after_flops"] += value(paid, earlier, "flops")
        price += of_training(paid, earlier).seconds
    searched = search_costs(result.needs, results, searches)
    if searched:
        spent |= {"search_seconds": searched[0], "search_flops": searched[1].flops}
        price += searched[1].seconds
    return (
        extraction
        | spent
        | {
            "price_seconds": price,
            "train_seconds": value(record, path, "seconds", "train"),
            "total_seconds": value(record, path, "seconds", "total"),
            "processor_seconds": record.get("processor_seconds", ""),
            "flops": value(record, path, "flops"),
            "trained_parameters": value(record, path, "parameters", "trained"),
            "peak_memory_mb": value(record, path, "peak_memory_mb"),
            "updates": record.get("steps", ""),
            "device": value(record, path, "hardware", "device"),
            **({"precision": record["precision"]} if "precision" in record else {}),
            **{f"inference_{key}": record.get("inference", {}).get(key, "") for key in ("layers", "flops")},
        }
    )


def _score_rows(result: CollectedResult, common: dict, results, cards: Cards, compared: list) -> list[dict]:
    """Return one row per split and metric of a present result. Args: compared: flags that other runs lead to."""
    path = Path(results, result.folder, "metrics.json")
    record = read_json(path)
    phases, task = record.get("spec", {}).get("phases", []), value(record, path, "spec", "task")
    subset = record["spec"].get("subset", {})
    task = splits_of(task, subset)
    common = common | {
        "digest": value(record, path, "digest"),
        "optimizer": joined(phases, "optimizer", "adamw"),
        "precision": joined(phases, "precision", "fp32"),
        "protocol": task.get("protocol", "clean"),
        "train_rows": drawn_rows(subset, task, cards.results) or common["train_rows"],
    }
    cut, flags = {}, value(record, path, "flags") + compared
    if result.stores:
        flags += sanity_flags.sanity_flags(record, path.parent, cards.results, cards.read)
        common["pairs"] = record.get("chosen", {}).get("pairs", common["pairs"])
        cut = cards.truncated(result.stores.get(common["pairs"]) or next(iter(result.stores.values())))
    common["flags"] = ";".join(flags)
    rows, main = [], value(record, path, "spec", "task", "metrics")[0]
    for split, scores in value(record, path, "scores").items():
        split_facts = _split_facts(split, task) | {"n": value(record, path, "rows", split)}
        for metric, score in scores.items():
            measured = {"metric": metric, "main": metric == main, "value": score}
            rows.append({**common, **split_facts, **measured, "truncated": cut.get(split, "")})
    return rows


def _split_facts(split: str, task: dict) -> dict:
    own, chosen = role(split, task), task.get("validation", "validation")
    return {"split": split, "role": own, "also_validation": own == "test" and split == chosen}


def joined(phases: list[dict], key: str, default: str) -> str:
    """Return the values of a key over a run's phases, each once."""
    return "+".join(sorted({phase.get(key, default) for phase in phases}))


def _why_missing(result, task: dict, logs) -> str:
    """Return the last error in the log of a result's job, else in those of the jobs before it, else `not run`.

    Args: result; its task's entry of the spec; logs, the folder of all logs.
    """
    for name in _logs(result, task):
        path = Path(logs, name)
        errors = ERROR.findall(path.read_text(encoding="utf-8", errors="replace")) if path.exists() else []
        if errors:
            return f"{name.partition('/')[0]}: {errors[-1].strip()}"
    return wording.NOT_RUN


def _logs(result, task: dict) -> list[str]:
    """Return the logs of the jobs that lead to a result, its own first."""
    stores = [layout.names_in_folder("features", store) for store in result.stores.values()]
    encoders = dict.fromkeys(layout.encoder_of(names["weights"]) for names in stores)
    made = [(result.step, result.names), *((need.step, need.names) for need in reversed(result.needs))]
    return [
        *(layout.log(step, names) for first, names in made for step in layout.makers(first)),
        *(layout.log("features", names) for names in stores),
        layout.log("prepare", {"corpus": task["corpus"]}),
        *(layout.log("fetch", {"encoder": encoder}) for encoder in encoders),
    ]
