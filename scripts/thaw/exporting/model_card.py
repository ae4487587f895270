"""The model card of an export: what the records of a run say."""

import contextlib
import inspect

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.phrases import written
from thaw.decision import record
from thaw.declarations.flags import flag_label
from thaw.evaluation.metrics import THRESHOLD
from thaw.exporting.card_metadata import Stated, metadata
from thaw.exporting.finished_run import FinishedRun
from thaw.exporting.origin import origin
from thaw.schema.head import as_list
from thaw.schema.keys import stated
from thaw.schema.layers import LAST_LAYER
from thaw.words import answer_text

EXAMPLES = {
    "text": '["a text", "another"]',
    "pair": '[("a text", "its partner")]',
    "words": '[["a", "sentence", "in", "words"]]',
}
OWN_FORMS = {
    "token_classification": "`AutoModelForTokenClassification` of transformers loads it too; "
    "a word's tag is that of its first piece.",
    "sequence_classification": "`AutoModelForSequenceClassification` of transformers loads it too.",
    "encoder_and_head": "`AutoModel.from_pretrained({arguments})` of transformers loads the encoder{why}; "
    "`head.safetensors` is the head on top of it.",
}
POOLER = "add_pooling_layer"  # argument of architectures with a pooler, whose tensors no export has


def card(source: FinishedRun, form: str, stated: Stated | None = None) -> str:
    """Return the README.md of an export. Args: the run; the form of its files; what the user states of it."""
    encoder = read_json(source.encoder / "card.json")
    rows = _about(source) | origin(source, encoder)
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    hub = encoder["source"].removeprefix("hub ") if encoder["source"].startswith("hub ") else None
    call = f"    from model import Model\n    Model().predict({EXAMPLES[source.reads]})"
    parts = [
        metadata(source, hub, stated or Stated()),
        f"# {source.task['id']}, {encoder['encoder']}",
        f"| | |\n|---|---|\n{table}",
        f"## Scores\n\n{_scores(source)}",
        *_compared(source),
        f"## Use\n\n{call}\n\n{_with_transformers(source, form)}",
    ]
    return "\n\n".join(parts) + "\n"


def _compared(source: FinishedRun) -> list[str]:
    """Return what experiments say of the choice, a section for each one that recommends the run's strategy."""
    parts: list[str] = []
    try:
        cell = layout.names_in_folder("train", source.run.relative_to(source.results))
    except ValueError:  # a run that was put elsewhere is in no experiment
        return parts
    for folder in sorted(path.parent for path in source.results.glob(layout.pattern("report"))):
        with contextlib.suppress(UserError):  # of another version: what it says is not known
            for answer in record.read(folder):
                taken = answer.cell_of(answer.decision.taken)
                if taken and all(cell[name] == value for name, value in taken.items()):
                    said = " ".join([answer_text.headline(answer), *answer_text.reasons(answer)])
                    parts.append(f"## Compared with other strategies\n\n{said} ({folder.name})")
    return parts


def _with_transformers(source: FinishedRun, form: str) -> str:
    """Return how transformers loads the folder; where its class has a pooler, without one of random weights."""
    from transformers import MODEL_MAPPING, AutoConfig

    model = MODEL_MAPPING[type(AutoConfig.from_pretrained(source.encoder, local_files_only=True))]
    if POOLER not in inspect.signature(model).parameters:
        return OWN_FORMS[form].format(arguments="folder", why="")
    arguments = f"folder, {POOLER}=False"
    return OWN_FORMS[form].format(arguments=arguments, why=", without a pooler, whose weights would be random")


def _about(source: FinishedRun) -> dict[str, str]:
    length = f"at most {source.view.max_length} tokens"
    reads = {"text": f"one text, {length}", "words": f"a list of words, {length}"}
    reads["pair"] = f"two texts, each {length}" if source.separate_encoding else f"two texts in one sequence, {length}"
    head, layers = source.head.kind, ""
    if source.head.layers != LAST_LAYER:
        said = written(stated(source.head.layers, every=True))
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


def _scores(source: FinishedRun) -> str:
    names = source.task["metrics"]
    lines = [f"| split | rows | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for split, scores in source.metrics["scores"].items():
        values = " | ".join("undefined" if scores[name] is None else f"{scores[name]:.4f}" for name in names)
        lines.append(f"| {split} | {source.metrics['rows'][split]} | {values} |")
    if source.refit:
        lines += ["", f"They are those of the run, which trained on {source.refit.rows['train']} rows."]
    return "\n".join(lines) + "".join(f"\n\nWarning: {flag_label(flag)}." for flag in source.metrics["flags"])
