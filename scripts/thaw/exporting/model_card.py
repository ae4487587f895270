"""The model card of an export: what the records of a run say."""

import inspect
from dataclasses import dataclass
from typing import Any

import yaml

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.home import HOME
from thaw.core.phrases import listing, plural, rate, written
from thaw.core.plugins import is_plugin
from thaw.data.corpus import scored_part, subset_rows
from thaw.decision import record
from thaw.declarations.flags import flag_label
from thaw.declarations.needs import NEEDS, stated_needs
from thaw.declarations.objective_kinds import OBJECTIVES
from thaw.declarations.splits import HELD_OUT
from thaw.evaluation.metrics import THRESHOLD
from thaw.exporting.finished_run import FinishedRun, refit_text, result_with
from thaw.exporting.formats import HEAD_APART, has_pipeline
from thaw.schema.catalogue import Catalogue, shipped
from thaw.schema.head import HeadConfig, as_list
from thaw.schema.keys import stated
from thaw.schema.layers import LAST_LAYER
from thaw.schema.phases import PhaseConfig, of_phase
from thaw.schema.strategy import written_key
from thaw.schema.student import RANDOM
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


ROLES = {"after": "started from", "towards": "teacher"}  # rows by how a need is said in a list of runs
OF_THE_RUN = {"trial", "epochs", "stopped", "no_answer_threshold"}  # what `chosen` has besides searched settings
NOTHING = "nothing; settings and length of the training were given"


def origin(source: FinishedRun, encoder: dict) -> dict[str, str]:
    """Return the rows of a model card on data, encoder and training. Args: the run; the card of its encoder."""
    searched, entries, chosen = _searched(source), source.spec["phases"], source.metrics["chosen"]
    chosen_by = f"by {source.folds}-fold cross-validation" if source.folds else "on validation"
    phases = [PhaseConfig.of_spec(entry | of_phase(searched, n)) for n, entry in enumerate(entries, 1)]
    kind, _, name = encoder["source"].partition(" ")
    place = "a local folder" if kind == "folder" else f"{kind} {name}, revision {encoder['revision']}"
    return {
        "dataset": _dataset(source.corpus.card),
        "training data": _rows(source),
        "encoder": f"{encoder['encoder']} ({place})",
        "pretrained as": encoder["objective"],
        **({"further pretraining": _further(encoder["further"])} if "further" in encoder else {}),
        **({"layers": _kept(source)} if source.kept else {}),
        **_earlier(source),
        **{f"phase {n}": _phase(*one, chosen) for n, one in enumerate(zip(phases, entries, strict=True), 1)},
        f"chosen {chosen_by}": _chosen(source, phases, searched) or NOTHING,
        **({"last fit": refit_text(source.refit.rows, source.folds, source.refit.layers)} if source.refit else {}),
        "run": str(source.run.relative_to(source.results)),
        "spec digest": source.metrics["digest"],
    }


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


def _further(said: dict) -> str:
    before, *_, after = said["held_out"]["loss"]
    what = f"masked-language-model training on {said['rows']} rows of the training text of {said['corpus']}"
    return f"{what}; loss on rows held out {before:.2f} before, {after:.2f} after, in nats a token"


def _kept(source: FinishedRun) -> str:
    kept, start = source.kept or [], source.spec["student"].get("start", {})
    text = f"{len(kept)} of the encoder's {source.spec['layers']}: {listing(map(str, kept))}"
    if not start:
        return text
    sources = [start.get(str(layer), layer) for layer in kept]
    named = ("a random one" if one == RANDOM else str(one) for one in sources)
    return f"{text}, which started with the weights of {listing(named)}"


def _earlier(source: FinishedRun) -> dict[str, str]:
    runs = {}
    for role, digest in stated_needs(source.spec).items():
        need = NEEDS[role]
        if need.word not in ROLES:
            continue
        try:
            if need.step == "teach":
                digest = read_json(result_with(source.results, need.step, digest, "teacher"))["spec"]["run"]
            run = str(result_with(source.results, "train", digest, "earlier run").parent.relative_to(source.results))
        except UserError:  # deleted since
            run = "no longer in these results"
        runs[ROLES[need.word]] = f"{run} (spec digest {digest})"
    return runs


def _searched(source: FinishedRun) -> dict:
    if not (digest := NEEDS["settings"].stated(source.spec)):
        return {}
    try:
        return read_json(result_with(source.results, NEEDS["settings"].step, digest, "search"))["settings"]
    except UserError:  # deleted since; the run's record has them too, but for a number of epochs
        return {key: value for key, value in source.metrics["chosen"].items() if key not in OF_THE_RUN}


def _phase(phase: PhaseConfig, entry: dict, chosen: dict) -> str:
    trained = ", ".join(entry["components"])
    if phase.fits_to_convergence:
        return f"trained {trained} to convergence (lbfgs, L2 penalty {rate(chosen['l2'])})"
    rates = f"rate {phase.rate:g}" + (f", head {phase.head_rate:g}" if phase.head_rate else "")
    length = plural(phase.epochs, "epoch") if phase.updates is None else plural(phase.updates, "update")
    most = "at most " if _may_stop(phase) else ""
    text = f"trained {trained} for {most}{length} in batches of {phase.batch_size} ({phase.optimizer}, {rates})"
    losses = {key: getattr(phase, key) for key in ("distil", *OBJECTIVES)}
    return "; ".join([text, *(f"{key}: {written(stated(loss, every=True))}" for key, loss in losses.items() if loss)])


def _may_stop(phase: PhaseConfig) -> bool:
    return phase.patience is not None or phase.stop is not None


def _chosen(source: FinishedRun, phases: list[PhaseConfig], searched: dict) -> str:
    chosen, spec = source.metrics["chosen"], source.spec
    said = [f"{written_key(key)} {_value(value)}" for key, value in searched.items()]
    first = phases[0]
    offered = {
        "l2": ("L2 penalty", first.fits_to_convergence and len(first.l2) > 1),
        "layer": ("layer", HeadConfig.model_validate(spec["head"]).layers.searched),
        "features": ("number of features", bool(first.select and len(first.select.fractions) > 1)),
        "pairs": ("pairs read", isinstance(spec["features"], list)),
        "no_answer_threshold": ("threshold of no answer", True),
    }
    said += [f"{name} {_value(chosen[key])}" for key, (name, many) in offered.items() if many and key in chosen]
    for number, (phase, last) in enumerate(zip(phases, chosen.get("epochs", []), strict=False), 1):
        unit = "epoch" if phase.updates is None else "evaluation"
        of = f" of phase {number}" if len(phases) > 1 else ""
        if phase.pick == "best":
            said.append(f"{unit} {last}{of}")
        elif _may_stop(phase):
            said.append(f"the end after {unit} {last}{of}")
    return ", ".join(said)


def _value(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


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
