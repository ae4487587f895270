"""The metadata at the top of a model card, as the Hugging Face Hub reads it: licence, data, metrics and scores."""

from dataclasses import dataclass

import yaml

from thaw.core.plugins import is_plugin
from thaw.exporting.finished_run import FinishedRun

PIPELINES = {"tags": "token-classification"}  # of other kinds of targets text-classification, as the Hub has it
HUB_METRICS = {  # metrics that the Hub has, by ours; others keep our names
    "f1_macro": "f1",
    "f1_micro": "f1",
    "span_f1": "f1",
    "mcc": "matthews_correlation",
    "pearson": "pearsonr",
    "spearman": "spearmanr",
    "r2": "r_squared",
}


@dataclass(frozen=True)
class Stated:
    """What no record says and the user states: licence of the model, and languages of the texts."""

    licence: str | None = None
    languages: tuple[str, ...] = ()


def metadata(source: FinishedRun, base_model: str | None, stated: Stated) -> str:
    """Return the YAML block of a model card. Args: the run; the encoder's id on the Hub, if it has one; the user's."""
    metrics = [HUB_METRICS.get(name, name) for name in source.task["metrics"] if not is_plugin(name)]
    of = source.corpus.card["source"]
    entries = {
        "library_name": "transformers",
        "license": stated.licence,
        "language": list(stated.languages),
        "base_model": base_model,
        "pipeline_tag": PIPELINES.get(source.target, "text-classification"),
        "datasets": [of["id"]] if of["kind"] == "hub" else [],
        "metrics": list(dict.fromkeys(metrics)),
        "tags": ["thaw", *(["multi-label-classification"] if source.target == "label_set" else [])],
        "model-index": [{"name": f"{source.task['id']}-{source.encoder.name}", "results": _results(source)}],
    }
    known = {name: value for name, value in entries.items() if value not in (None, [])}
    return f"---\n{yaml.safe_dump(known, sort_keys=False, allow_unicode=True)}---"


def _results(source: FinishedRun) -> list[dict]:
    """Return the scores on each test split, each metric under its name in Thaw."""
    of, task = source.corpus.card["source"], source.task
    data = {"name": source.corpus.card["corpus"], "type": of["id"] if of["kind"] == "hub" else "other"}
    data |= {key: of[key] for key in ("config", "revision") if of.get(key)}
    kind = PIPELINES.get(source.target, "text-classification")
    return [
        {
            "task": {"type": kind, "name": task["id"]},
            "dataset": data | {"split": split},
            "metrics": [
                {"type": HUB_METRICS.get(name, name), "name": name, "value": round(value, 6)}
                for name, value in source.metrics["scores"][split].items()
                if value is not None
            ],
        }
        for split in task["test"]
        if split in source.metrics["scores"]
    ]
