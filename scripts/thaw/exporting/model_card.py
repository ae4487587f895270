"""The model card of an export: what the records of a run say."""

import inspect
from dataclasses import dataclass
from typing import Any

import yaml

from thaw.core import layout
from thaw.core.files import read_json
from thaw.core.home import HOME
from thaw.core.phrases import listing, plural, written
from thaw.core.plugins import is_plugin
from thaw.data.corpus import scored_part, subset_rows
from thaw.decision import record
from thaw.declarations.flags import flag_label
from thaw.declarations.splits import HELD_OUT
from thaw.evaluation.metrics import THRESHOLD
from thaw.exporting.finished_run import FinishedRun, refit_text
from thaw.exporting.formats import HEAD_APART, has_pipeline
from thaw.schema.catalogue import Catalogue, shipped
from thaw.schema.head import as_list
from thaw.schema.keys import stated
from thaw.schema.layers import LAST_LAYER
from thaw.words import answer_text

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


def metadata(source: FinishedRun, form: str, base_model: str | None, stated: Stated) -> str:
    """Return the YAML block of a model card.

    Only a form that `pipeline()` loads as `model.py` does names one: it would give another form a random head.
    Args: the run; the form of its files; the encoder's id on the Hub, if it has one; what the user states.
    """
    metrics = [HUB_METRICS.get(name, name) for name in source.task["metrics"] if not is_plugin(name)]
    of = source.corpus.card["source"]
    entries = {
        "library_name": "transformers" if has_pipeline(source, form) else "thaw",
        "license": stated.licence,
        "language": list(stated.languages),
        "base_model": base_model,
        "pipeline_tag": PIPELINES.get(source.target, "text-classification") if has_pipeline(source, form) else None,
        "datasets": [of["id"]] if of["kind"] == "hub" else [],
        "metrics": list(dict.fromkeys(metrics)),
        "tags": ["thaw", *(["multi-label-classification"] if source.target == "label_set" else [])],
        "model-index": [{"name": f"{source.task['id']}-{source.encoder.name}", "results": _results(source)}],
    }
    known = {name: value for name, value in entries.items() if value not in (None, [])}
    return f"---\n{yaml.safe_dump(known, sort_keys=False, allow_unicode=True)}---"


def _results(source: FinishedRun) -> list[dict]:
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


STATED = ("student", "after", "teacher", "multi_task", "phases")  # keys of a spec that say how a run was trained


def origin(source: FinishedRun, encoder: dict) -> dict[str, str]:
    """Return the rows of a model card on data and encoder. Args: the run; the card of its encoder."""
    kind, _, name = encoder["source"].partition(" ")
    place = "a local folder" if kind == "folder" else f"{kind} {name}, revision {encoder['revision']}"
    return {
        "dataset": _dataset(source.corpus.card),
        "training data": _rows(source),
        "encoder": f"{encoder['encoder']} ({place})",
        "pretrained as": encoder["objective"],
        **({"further pretraining": f"on {encoder['further']['corpus']}"} if "further" in encoder else {}),
        **({"last fit": refit_text(source.refit.rows, source.folds, source.refit.layers)} if source.refit else {}),
        "run": str(source.run.relative_to(source.results)),
        "spec digest": source.metrics["digest"],
    }


def training(source: FinishedRun) -> str:
    """Return what the run's spec says of its training, and what was chosen, as a block of YAML."""
    said = {key: source.spec[key] for key in STATED if source.spec.get(key)} | {"chosen": source.metrics["chosen"]}
    by = f"{source.folds}-fold cross-validation" if source.folds else "validation"
    block = yaml.safe_dump(said, sort_keys=False, allow_unicode=True)
    what = f"The run's settings without defaults, and under `chosen` what {by} chose."
    return f"## Training\n\n{what}\n\n```yaml\n{block}```"


def _dataset(card: dict) -> str:
    of = card["source"]
    files = f"files {', '.join(of.get('files', []))}"
    origins = {"files": files, "synthetic": "synthetic, written by Thaw"}
    return f"{card['corpus']} ({origins.get(of['kind']) or of['id'] + ', revision ' + str(of['revision'])})"


def _rows(source: FinishedRun) -> str:
    subset = source.spec["subset"]
    rows, share = len(subset_rows(source.corpus, source.task, subset)), subset.get("validation")
    every = subset | {"scored": None}  # of the rows held out for validation, and not of those that are scored alone
    rows += len(scored_part(source.corpus, HELD_OUT, source.task, every)) if share else 0
    return f"{plural(rows, 'row')} of train" + (f", {share:.0%} of them to choose by" if share else "")


EXAMPLES = {
    "text": '["a text", "another"]',
    "pair": '[("a text", "its partner")]',
    "words": '[["a", "sentence", "in", "words"]]',
}
OWN_FORMS = {
    "token_classification": "transformers loads it too; a word's tag is that of its first piece:\n\n"
    '    pipe = pipeline("token-classification", folder)\n'
    '    pipe(["a", "sentence", "in", "words"], is_split_into_words=True, ignore_labels=[])',
    "sequence_classification": "transformers loads it too; `truncation=True` cuts long texts as `Model` does:\n\n"
    '    pipe = pipeline("text-classification", folder, truncation=True)\n'
    '    pipe({{"text": "a text"}})  # a pair has "text_pair" too',
    HEAD_APART: "{pipeline}\n\n"
    "`AutoModel.from_pretrained({arguments})` of transformers loads the encoder{why}; "
    "`head.safetensors` is the head on top of it.",
}
APART = {  # by what is read
    "words": '    pipe = pipeline("token-classification", folder, trust_remote_code=True)\n'
    '    pipe(["a", "sentence", "in", "words"], is_split_into_words=True, ignore_labels=[])',
    "text": '    pipe = pipeline("text-classification", folder, trust_remote_code=True)\n'
    '    pipe({"text": "a text"})  # a pair has "text_pair" too',
}
POOLER = "add_pooling_layer"  # argument of architectures with a pooler, whose tensors no export has


def card(source: FinishedRun, form: str, stated: Stated | None = None) -> str:
    """Return the README.md of an export. Args: the run; the form of its files; what the user states of it."""
    encoder, stated = read_json(source.encoder / "card.json"), stated or Stated()
    licence = stated.licence or "not stated; it depends on the encoder and the data"
    rows = _about(source) | origin(source, encoder) | {"licence": licence}
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    catalogue, (kind, _, name) = Catalogue(shipped(HOME)), encoder["source"].partition(" ")
    entries = (catalogue.get("encoders", id, id) for id in catalogue.ids("encoders"))
    known = {"hub": {name: name}, "package": {entry.package: entry.published for entry in entries}}
    call = f"    from model import Model\n    Model().predict({EXAMPLES[source.reads]})"
    parts = [
        metadata(source, form, known.get(kind, {}).get(name), stated),
        f"# {source.task['id']}, {encoder['encoder']}",
        f"| | |\n|---|---|\n{table}",
        f"## Scores\n\n{_scores(source)}",
        training(source),
        *_compared(source),
        f"## Use\n\n{call}\n\n{_with_transformers(source, form)}",
    ]
    return "\n\n".join(parts) + "\n"


def _compared(source: FinishedRun) -> list[str]:
    """Return what experiments say of the choice, a section for each one that recommends the run's strategy."""
    parts = []
    for name, answer in record.answers_that_take(source.run, source.results):
        said = [answer_text.headline(answer), *answer_text.reasons(answer), *answer_text.cheaper(answer)]
        parts.append(f"## Compared with other strategies\n\n{' '.join(said)} ({name})")
    return parts


def _with_transformers(source: FinishedRun, form: str) -> str:
    from transformers import MODEL_MAPPING, AutoConfig

    call = APART["words" if source.reads == "words" else "text"]
    pipeline = f"transformers runs `modeling_thaw.py` of this folder, which calls `model.py`:\n\n{call}"
    pipeline = pipeline if has_pipeline(source, form) else "`pipeline()` cannot load it."
    model: Any = MODEL_MAPPING[type(AutoConfig.from_pretrained(source.encoder, local_files_only=True))]
    if POOLER not in inspect.signature(model).parameters:
        return OWN_FORMS[form].format(pipeline=pipeline, arguments="folder", why="")
    why = ", without a pooler, whose weights would be random"
    return OWN_FORMS[form].format(pipeline=pipeline, arguments=f"folder, {POOLER}=False", why=why)


def _about(source: FinishedRun) -> dict[str, str]:
    length = f"at most {source.view.max_length} tokens"
    reads = {"text": f"one text, {length}", "words": f"a list of words, {length}"}
    reads["pair"] = f"two texts, each {length}" if source.separate_encoding else f"two texts in one sequence, {length}"
    head, layers = source.head.kind, ""
    if source.head.layers != LAST_LAYER:
        said = written(stated(source.head.layers, every=True))
        layers = f"; layers: {said} (the encoder has {source.spec['layers']} layers)"
    return {
        "task": f"{source.task['id']} ({source.task['type'].replace('_', ' ')})"
        + (f"; class weights: {source.task['class_weight']}" if source.task.get("class_weight") else ""),
        "labels": (", ".join(source.labels) or "none: it gives a score")
        + (f"; a text has those of a probability above {THRESHOLD}" if source.target == "label_set" else ""),
        "reads": reads[source.reads],
        "head": f"{head}, on each word's first piece{layers}"
        if source.reads == "words"
        else f"{head}, {' and '.join(as_list(source.pooling))} pooling{layers}",
    }


def _scores(source: FinishedRun) -> str:
    names = source.task["metrics"]
    lines = [f"| split | rows | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for split, scores in source.metrics["scores"].items():
        values = " | ".join("undefined" if scores[name] is None else f"{scores[name]:.4f}" for name in names)
        lines.append(f"| {split} | {source.metrics['rows'][split]} | {values} |")
    lines += _bag_of_words(source)
    for split, count in source.metrics.get("unread_words", {}).items():
        lines += ["", f"Of {split} {plural(count, 'word')} had no token or was cut off; each counts as wrong."]
    if source.refit:
        lines += ["", f"They are those of the run, which trained on {source.refit.rows['train']} rows."]
    return "\n".join(lines) + "".join(f"\n\nWarning: {flag_label(flag)}." for flag in source.metrics["flags"])


def _bag_of_words(source: FinishedRun) -> list[str]:
    """Return what a bag of words scores that read the same rows, where these results have it."""
    metric, run = source.task["metrics"][0], read_json(source.run / "metrics.json")["spec"]  # a last fit has other data
    pattern = layout.pattern("baseline", task=source.task["id"], baseline="bag_of_words")
    records = [read_json(file) for file in sorted(source.results.glob(pattern))]
    same = [one for one in records if all(one["spec"][key] == run[key] for key in ("data", "subset"))]
    if not same:
        return []
    tests = {split: scores.get(metric) for split, scores in same[0]["scores"].items() if split in source.task["test"]}
    said = [f"{value:.4f} on {split}" for split, value in tests.items() if value is not None]
    return ["", f"A bag of words, without an encoder, has {metric} {listing(said)}."] if said else []
