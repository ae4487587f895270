"""The model card of an export: what the records of a run say."""

from thaw.core.files import read_json
from thaw.declarations.flags import flag_label
from thaw.declarations.needs import NEEDS, stated_needs
from thaw.evaluation.metrics import THRESHOLD
from thaw.exporting.card_metadata import Stated, metadata
from thaw.exporting.finished_run import FinishedRun
from thaw.schema.head import as_list
from thaw.schema.keys import Context
from thaw.schema.layers import LAST_LAYER, layers_text
from thaw.schema.phases import PhaseConfig

EXAMPLES = {
    "text": '["a text", "another"]',
    "pair": '[("a text", "its partner")]',
    "words": '[["a", "sentence", "in", "words"]]',
}
OWN_FORMS = {
    "token_classification": "`AutoModelForTokenClassification` of transformers loads it too; "
    "a word's tag is that of its first piece.",
    "sequence_classification": "`AutoModelForSequenceClassification` of transformers loads it too.",
    "encoder_and_head": "`AutoModel` of transformers loads the encoder; `head.safetensors` is the head on top of it.",
}


def card(source: FinishedRun, form: str, stated: Stated | None = None) -> str:
    """Return the README.md of an export. Args: the run; the form of its files; what the user states of it."""
    encoder = read_json(source.encoder / "card.json")
    rows = _about(source) | _origin(source, encoder)
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    hub = encoder["source"].removeprefix("hub ") if encoder["source"].startswith("hub ") else None
    use = f"    from model import Model\n    Model().predict({EXAMPLES[source.reads]})\n\n{OWN_FORMS[form]}"
    parts = [
        metadata(source, hub, stated or Stated()),
        f"# {source.task['id']}, {encoder['encoder']}",
        f"| | |\n|---|---|\n{table}",
        f"## Scores\n\n{_scores(source)}",
        f"## Use\n\n{use}",
    ]
    return "\n\n".join(parts) + "\n"


def _about(source: FinishedRun) -> dict[str, str]:
    length = f"at most {source.view.max_length} tokens"
    reads = {"text": f"one text, {length}", "words": f"a list of words, {length}"}
    reads["pair"] = f"two texts, each {length}" if source.separate_encoding else f"two texts in one sequence, {length}"
    head, layers = source.head.kind, ""
    if source.head.layers != LAST_LAYER:
        said = layers_text(source.head.layers, Context())
        layers = f"; reading {said} (the encoder has {source.spec['layers']} layers)"
    return {
        "task": f"{source.task['id']} ({source.task['type'].replace('_', ' ')})",
        "labels": (", ".join(source.labels) or "none: it gives a score")
        + (f"; a text has those of a probability above {THRESHOLD}" if source.target == "label_set" else ""),
        "reads": reads[source.reads],
        "head": f"{head}, on each word's first piece{layers}"
        if source.reads == "words"
        else f"{head}, {' and '.join(as_list(source.pooling))} pooling{layers}",
    }


def _origin(source: FinishedRun, encoder: dict) -> dict[str, str]:
    spec, chosen = source.spec, source.metrics["chosen"]
    needs = {NEEDS[role].word: f"the run of spec {digest}" for role, digest in stated_needs(spec).items()}
    return {
        "training data": _data(source),
        "encoder": _encoder(encoder),
        "pretrained as": encoder["objective"],
        **({"further pretraining": _further(encoder["further"])} if "further" in encoder else {}),
        **{word: run for word, run in needs.items() if word},
        **{f"phase {number}": _phase(entry) for number, entry in enumerate(spec["phases"], 1)},
        "chosen on validation": ", ".join(f"{key} {str(value).strip('[]')}" for key, value in chosen.items()),
        "run": str(source.run.relative_to(source.results)),
        "spec digest": source.metrics["digest"],
    }


def _further(said: dict) -> str:
    """Return what further pretraining the encoder had."""
    before, *_, after = said["held_out"]["loss"]
    what = f"masked-language-model training on {said['rows']} rows of the training text of {said['corpus']}"
    return f"{what}; loss on rows held out {before:.2f} before, {after:.2f} after, in nats a token"


def _data(source: FinishedRun) -> str:
    """Return how many rows of which corpus were trained on, and where the corpus is from."""
    card = source.corpus.card
    of, subset = card["source"], source.spec["subset"]
    rows, share = subset.get("rows") or card["splits"]["train"]["rows"], subset.get("validation")
    chosen_by = f", {share:.0%} of them to choose by" if share else ""
    origin = {"files": ", ".join(of.get("files", [])), "synthetic": "synthetic, written by Thaw"}.get(of["kind"])
    return f"{card['corpus']}, {rows} rows{chosen_by} ({origin or of['id'] + ', revision ' + of['revision']})"


def _encoder(card: dict) -> str:
    """Return an encoder's name and where it is from; the path of a local folder is nobody else's business."""
    kind, _, name = card["source"].partition(" ")
    origin = "a local folder" if kind == "folder" else f"{kind} {name}, revision {card['revision']}"
    return f"{card['encoder']} ({origin})"


def _phase(entry: dict) -> str:
    """Return one phase of a strategy in words."""
    phase = PhaseConfig.of_spec(entry)
    trained = ", ".join(entry["components"])
    if phase.optimizer == "lbfgs":
        return f"trained {trained} to convergence (lbfgs)"
    rate = f"rate {phase.rate:g}" + (f", head {phase.head_rate:g}" if phase.head_rate else "")
    length = f"{phase.epochs} epochs" if phase.updates is None else f"{phase.updates} updates"
    return f"trained {trained} for {length} in batches of {phase.batch_size} ({phase.optimizer}, {rate})"


def _scores(source: FinishedRun) -> str:
    names = source.task["metrics"]
    lines = [f"| split | rows | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for split, scores in source.metrics["scores"].items():
        values = " | ".join("undefined" if scores[name] is None else f"{scores[name]:.4f}" for name in names)
        lines.append(f"| {split} | {source.metrics['rows'][split]} | {values} |")
    return "\n".join(lines) + "".join(f"\n\nWarning: {flag_label(flag)}." for flag in source.metrics["flags"])
