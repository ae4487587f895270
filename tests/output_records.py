"""A results folder for every kind of output: planned, prepared and fetched as by rules, with written runs and probes.

The experiment has what all declared kinds need, so its plan gives each of them a true spec and says which records it is
drawn from. Scores and costs of the records are made up, since no kind may depend on what they are.
"""

from pathlib import Path

import numpy as np
import pandas

from invented import cost
from thaw.core import layout
from thaw.core.digests import digest
from thaw.core.files import write_json, write_parquet
from thaw.data.corpus import Corpus
from thaw.declarations.outputs import OUTPUTS, step_of
from thaw.declarations.probes import PROBES
from thaw.declarations.splits import splits_of
from thaw.evaluation.result_files import scored_rows, task_with_defaults
from thaw.outputs.frame import collection, runs_frame
from thaw.outputs.frame.output_data import OutputData
from thaw.planning.configuration import load_plan
from tiny import tiny_encoder
from tiny_corpus import run_in_process
from workflow import HOME, Workplace

LAYERS, SEEDS, HEADS, WIDTH = 3, [1, 2], 4, 32
REQUIRED = {"reference": "short_full", "sweep": "short_top", "paper": "lee2019", "table": "sweep_bert_base"}
REQUIRED["start"] = "linear_probe"
CLAIM = {
    "claim": "Thawing helps.",
    "paper": "Nobody 2020",
    "tasks": ["colour"],
    "contrast": [{"strategy": "short_full"}, {"times": -1, "strategy": "linear_probe"}],
    "above": 0.0,
}


class OutputRecords:
    """The plan, the results folder, and of each kind of output the spec and the data that its step gets."""

    def __init__(self, folder: Path, kinds=tuple(OUTPUTS), draws: str | None = None, **changes):
        """Plan the experiment with one output of each kind, and write all that they are drawn from.

        Args: kinds; draws, what outputs say that have this key; changes of the experiment.
        """
        place = Workplace(folder, tiny_encoder("bert", folder / "source", LAYERS))
        self.results = folder / "results"
        _catalogues(place)
        entries = {f"a_{kind}": _entry(kind, draws) for kind in kinds}
        place.write("my/outputs.yaml", {"outputs": entries})
        self.plan = load_plan(_experiment(folder, list(entries), changes), HOME, str(self.results))
        for key, job in self.plan.jobs["prepare"].items():
            out = self.results / "data" / key
            run_in_process("prepare", "--spec", job.canonical, "--data-dir", folder / "data", "--out", out)
        (encoder,) = self.plan.jobs["fetch"].items()
        run_in_process("fetch", "--spec", encoder[1].canonical, "--out", self.results / "encoders" / encoder[0])
        for key in self.plan.jobs["features"]:
            _write_store(self.results / "features" / key)
        self.corpora = {path.name: Corpus(path) for path in (self.results / "data").iterdir()}
        for run in self.plan.runs:
            self._write_run(run)
        for key, job in self.plan.jobs["baseline"].items():
            write_json(self.results / "baselines" / key / "metrics.json", self._record(job.spec, 0.3))
            self._write_predictions(self.results / "baselines" / key, job.spec, False)
        for key in _drawn(self.plan.probes):
            _write_probe(Path(self.plan.files("probe", key)[0]), self.plan.job("probe", key).spec)
        for result in self.plan.merges:
            _write_merged(self.plan, result)
        self.collect()

    def collect(self) -> None:
        """Write runs.csv of all records that are there; one that is not is marked as missing."""
        spec = self.plan.job("collect", "all_kinds").spec | {"missing": True}
        rows = collection.rows(spec, self.results, self.results / "logs")
        frame = pandas.DataFrame(rows, columns=runs_frame.COLUMNS)
        (self.results / "outputs/all_kinds").mkdir(parents=True, exist_ok=True)
        frame.to_csv(self.results / "outputs/all_kinds/runs.csv", index=False)

    def spec(self, kind: str) -> dict:
        """Return the spec of the output of a kind."""
        return self.plan.job(step_of(kind), f"all_kinds/a_{kind}").spec

    def probes(self, kind: str) -> list[Path]:
        """Return the records of probes that a kind is drawn from."""
        step = step_of(kind)
        paths = self.plan.status.probed(step, f"a_{kind}")
        return [Path(path) for path in paths if Path(path).exists()]

    def data(self, kind: str) -> OutputData:
        """Return what the builder of a kind reads."""
        runs, merges = self.results / "outputs/all_kinds/runs.csv", self.merges(kind)
        return OutputData(self.results, runs, self.probes(kind), merges=merges)

    def merges(self, kind: str) -> list[str]:
        """Return the records of merges that a kind is drawn from."""
        return self.plan.status.drawn_merges(step_of(kind), f"a_{kind}")

    def _record(self, spec: dict, score: float) -> dict:
        """Return a metrics.json."""
        task, chosen = spec["task"], self._rows(spec)
        rows = {"train": 16} | {split: len(positions) for split, positions in chosen.items()}
        metrics = dict.fromkeys(task["metrics"], score)
        scores = {split: metrics for split in rows}
        if spec.get("also"):
            scores, rows = scores | {"colour_others/test": metrics}, rows | {"colour_others/test": 20}
        return {"spec": spec, "digest": digest(spec), "scores": scores, "rows": rows, "flags": []}

    def _write_run(self, run) -> None:
        """Write all that a run leaves and outputs read: scores, cost, history, predictions, and its search's choice."""
        folder, thawed = self.results / run.folder, int(run.strategy != "linear_probe") + (run.value or 0)
        seed = {"seed": run.seed} if run.step == "fit_heads" else {}
        spec = self.plan.job(run.step, run.key).spec | seed
        score = 0.5 + 0.1 * thawed + 0.01 * run.seed
        write_json(folder / "metrics.json", self._record(spec, score))
        write_json(folder / "cost.json", cost(10.0 * (1 + thawed) + run.seed, thawed))
        history = {"phase": [1, 1], "epoch": [1, 2]}
        metric = spec["task"]["metrics"][0]
        history |= {"step": [5, 10], "loss": [1.0, 0.5], f"validation_{metric}": [score - 0.1, score]}
        pandas.DataFrame(history if run.step == "train" else {"strength": [1.0]}).to_csv(
            folder / "history.csv", index=False
        )
        self._write_predictions(folder, spec, run.seed == 1)
        if spec.get("chosen") and not run.trial:
            trials = [{"settings": {"rate": n}, "mean": 0.5 + n / 10, "seeds": {"1": 0.5}} for n in range(3)]
            chosen = {"digest": spec["chosen"], "metric": spec["task"]["metrics"][0], "trials": trials}
            write_json(folder.parent / "chosen.json", chosen)

    def _rows(self, spec: dict) -> dict[str, np.ndarray]:
        """Return the rows that are scored, by split."""
        task = task_with_defaults(spec["task"], spec["subset"])
        return scored_rows(task, self.corpora[task["corpus"]], spec["subset"])

    def _write_predictions(self, folder: Path, spec: dict, right: bool) -> None:
        """Write predictions on validation and test: the labels, or those in reverse order."""
        corpus, parts = self.corpora[spec["task"]["corpus"]], []
        for split, positions in self._rows(spec).items():
            frame = corpus.frame(split).iloc[positions]
            gold, rows = frame[spec["task"]["target"]], frame["row"]
            given = gold if right else gold.iloc[::-1]
            parts.append(pandas.DataFrame({"split": split, "row": rows, "prediction": list(given)}))
        write_parquet(folder / "predictions.parquet", pandas.concat(parts, ignore_index=True))


def _entry(kind: str, draws: str | None) -> dict:
    """Return an entry of a kind, with the keys that it must have, and `draws` where it has that key."""
    fields = OUTPUTS[kind].options.model_fields
    needed = {name: REQUIRED[name] for name, field in fields.items() if field.is_required()}
    asked = {"draws": draws} if draws and "draws" in fields else {}
    return {"kind": kind, "caption": f"What a {kind} shows.", **needed, **asked}


def _experiment(folder: Path, outputs: list[str], changes: dict) -> dict:
    """Return an experiment that has what every kind needs."""
    probes = ["linear", "cka", "attention_similarity", "weight_distance", "logme", "edge_small"]
    chosen = Workplace.experiment("all_kinds", seeds=SEEDS, subsets=["few", "more"], outputs=outputs)
    chosen |= {
        "strategies": [
            "linear_probe",
            {"short_top": [1]},
            "short_full",
            "short_adapters",
            "short_search",
            "short_student",
            "short_after_weight",
        ],
        "adapted": ["short_full", "short_adapters"],
    }
    probes += ["mutual_information", "by_genre", "head_importance", "head_removal", "adapter_removal", "masked_loss"]
    probes.append("early_exit")
    chosen |= {"probes": probes, "probe_tasks": ["entities"]}
    chosen |= {"catalogues": [str(folder / "my")], "data_dir": str(folder / "data")}
    chosen |= {"merges": {"one_trunk": {"strategies": [{"short_top": [1]}]}}}
    return chosen | changes


def _catalogues(place: Workplace) -> None:
    """Add to a workplace what kinds need: a second corpus to test on, subsets, a search, domains, and a claim."""
    tasks, strategies = place.files["my/tasks.yaml"], place.files["my/strategies.yaml"]
    things = tasks["corpora"]["things"]
    things["targets"]["genre"] = "label"
    tasks["corpora"]["others"] = things
    tasks["tasks"]["colour_others"] = tasks["tasks"]["colour"] | {"corpus": "others"}
    tasks["tasks"]["colour"] = tasks["tasks"]["colour"] | {"also": [{"task": "colour_others"}]}
    tasks["subsets"] = {"few": {"rows": 16}, "more": {"rows": 32}}
    divided = {"rows": 24, "validation": 0.25, "reserved": 16}
    tasks["subsets"] |= {"divided_1": divided, "divided_2": divided | {"draw": 2}}
    search = {"search": {"grid": {"rate": ["1e-3", "1e-2"]}, "seeds": [1]}}
    strategies["strategies"]["short_search"] = strategies["strategies"]["short_full"] | search
    place.write("my/tasks.yaml", tasks)
    strategies["strategies"]["short_student"] = strategies["strategies"]["short_full"] | {"student": {"layers": 2}}
    after = {"after": {"strategy": "short_kept", "task": "weight", "subset": "few"}}
    strategies["strategies"]["short_kept"] = strategies["strategies"]["short_full"] | {"keep": True}
    strategies["strategies"]["short_after_weight"] = strategies["strategies"]["short_full"] | after
    adapters = {"train": ["head"], "insert": {"kind": "adapters", "size": 2}, "rate": "1e-3", "epochs": 1}
    strategies["strategies"]["short_adapters"] = {"phases": [adapters]}
    place.write("my/strategies.yaml", strategies)
    place.write("my/probes.yaml", {"probes": {"by_genre": {"kind": "domain_divergence", "domain": "genre"}}})
    place.write("my/findings.yaml", {"findings": {"thawing_helps": CLAIM}})
    for path in (place.folder / "data").glob("*.csv"):
        head, *lines = path.read_text().splitlines()
        genres = (f"{line},{('east', 'west')[i % 2]}" for i, line in enumerate(lines))
        path.write_text("\n".join([f"{head},genre", *genres]) + "\n")


def _write_store(folder: Path) -> None:
    """Write the cards of a store."""
    for layer in range(LAYERS + 1):
        write_json(folder / f"b{layer}.json", {"boundary": layer, "seconds": 6.0})
    split = {"examples": 20, "tokens": 180, "truncated": 0, "truncated_labels": {}}
    write_json(folder / "tokens.json", {"splits": dict.fromkeys(("train", "validation", "test"), split), "pad": 0})


def _write_merged(plan, result) -> None:
    """Write the record of a merge."""
    spec, path = plan.job(result.step, result.key).spec, Path(plan.files(result.step, result.key)[0])
    record = {"spec": spec, "digest": digest(spec)}
    one = {"strategy": "short_top", "variant": "k01", "frozen": 2, "own": 1, "validation": 60.0, "test": 58.0}
    run = one | {"subset": "all", "encoder": "tiny", "head": "linear", "seed": 1}
    runs = {task: layout.folder("train", run | {"task": task}) for task in spec["tasks"]}
    record |= {"tasks": {task: one | {"run": folder, "flags": []} for task, folder in runs.items()}, "bytes": 4000}
    group = {"executed": 4, "of": 6, "tasks": list(spec["tasks"])}
    record["layers"] = {"executed": 4, "of": 6, "by_input": {"text, at most 64 tokens": group}}
    record["encoder"] = {"embeddings": 500, "layer": 100, "layers": LAYERS, "width": WIDTH}
    record["parameters"] = {"merged": 960, "separate": len(spec["tasks"]) * 830}
    write_json(path, record)


def _drawn(keys: list[str]) -> list[str]:
    """Return the probes to write: of each probe those that differ from its first in one name, as panels take time.

    The task in the name of what adapted the encoder is that of the probe.
    """
    drawn, firsts = [], {}
    for key in keys:
        names = layout.names_in_key("probe", key)
        names["of"] = names["of"].partition(".")[2] or names["of"]
        first = firsts.setdefault(names["probe"], names)
        drawn += [key] if sum(name != first[part] for part, name in names.items()) < 2 else []
    return drawn


def _write_probe(path: Path, spec: dict) -> None:
    """Write what a probe leaves, in the form that its kind has."""
    kind = spec["probe"]["kind"]
    main = PROBES[kind].measure or spec["task"]["metrics"][0]
    made = FORMS.get(kind, _scores)
    ends = [
        made(layer, seed, main) | {"layer": layer, "seed": seed} for seed in spec["seeds"] for layer in spec["read"]
    ]
    held = splits_of(spec["task"], spec["subset"]).get("validation", "validation")
    for end in ends:
        end["scores"] = {held if split == "validation" else split: scores for split, scores in end["scores"].items()}
    majority = {"test": dict.fromkeys(spec["task"].get("metrics", ["edge_f1"]), 0.4)}
    write_json(path, {"spec": spec, "digest": digest(spec), "main": main, "layers": ends, "majority": majority})


def _value(layer: int, seed: int) -> float:
    return 0.5 + 0.1 * layer + 0.01 * seed


def _scores(layer: int, seed: int, main: str) -> dict:
    return {"scores": {split: {main: _value(layer, seed)} for split in ("train", "validation", "test")}}


def _one_split(layer: int, seed: int, main: str) -> dict:
    names = dict.fromkeys((main, "between_seeds", "before"), _value(layer, seed))
    return {"scores": {"validation": names}}


def _attention(layer: int, seed: int, main: str) -> dict:
    maps = dict.fromkeys((main, "between_seeds"), [_value(layer, seed)] * HEADS)
    return _one_split(layer, seed, main) | {"heads": maps}


def _edge(layer: int, seed: int, main: str) -> dict:
    mix = {"scores": _scores(layer, seed, main)["scores"], "weights": [1 / (layer + 1)] * (layer + 1)}
    return _scores(layer, seed, main) | {"mix": mix}


def _information(layer: int, seed: int, main: str) -> dict:
    names = ("bound", "bound_error", "entropy", "with_last", "cka_with_last")
    scores = dict.fromkeys((main, *names), _value(layer, seed))
    for estimator in ("edge", "kmeans"):
        parts = ("", "_noise", "_shuffled", "_lowest", "_highest", "_plain")
        scores |= {f"{estimator}{part}": _value(layer, seed) for part in parts}
    return {"scores": {split: scores for split in ("validation", "test")}}


def _domains(layer: int, seed: int, main: str) -> dict:
    pairs = [(one, other) for one in ("east", "west") for other in ("east", "west")]
    cells = [
        {
            "split": "test",
            "trained": one,
            "tested": other,
            "score": _value(layer, seed),
            "divergence": 0.1 * (one < other),
        }
        for one, other in pairs
    ]
    return _scores(layer, seed, main) | {"cells": cells}


def _heads(layer: int, seed: int, main: str) -> dict:
    removed = [{"order": o, "share": s, "score": 0.9 - s} for o in ("importance", "random") for s in (0.0, 0.5)]
    return _scores(layer, seed, main) | {"heads": list(np.linspace(0.1, 0.9, HEADS)), "removed": removed}


def _removed(layer: int, seed: int, main: str) -> dict:
    found = _heads(layer, seed, main)
    measured = {"parameters": 1000, "seconds": 0.5}
    found["removed"] = [one | measured if one["order"] == "importance" else one for one in found["removed"]]
    return found


def _without_adapters(layer: int, seed: int, main: str) -> dict:
    spans = [{"last": last, "score": 0.8 - 0.1 * (last - layer)} for last in range(layer, LAYERS + 1)]
    return _scores(layer, seed, main) | {"spans": spans, "whole": 0.9}


def _exits(layer: int, seed: int, main: str) -> dict:
    numbers = dict.fromkeys(("score", "low", "high", "lost", "lost_low", "lost_high"), 100 * _value(layer, seed))
    rules = [(split, rule) for split in ("validation", "test") for rule in ("0", "never", "chosen")]
    shown = [{"split": split, "rule": rule} | numbers for split, rule in rules]
    at = {"executed": layer, "threshold": 0.8}
    return _scores(layer, seed, main) | {"exits": [row | at for row in shown] if layer == LAYERS else []}


FORMS = {
    "early_exit": _exits,
    "masked_loss": _one_split,
    "head_removal": _removed,
    "adapter_removal": _without_adapters,
    "cka": _one_split,
    "attention_similarity": _attention,
    "weight_distance": _one_split,
    "logme": lambda layer, seed, main: {"scores": {"train": {main: _value(layer, seed)}}},
    "edge": _edge,
    "mutual_information": _information,
    "domain_divergence": _domains,
    "head_importance": _heads,
}
