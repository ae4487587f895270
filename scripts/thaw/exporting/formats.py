"""The two forms of an export: the architecture's own model where it computes the same, else encoder, head and loader.

B examples, T tokens, d width, C outputs.
"""

import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from thaw.adaptation.peft_modules import merge, read_insert_metadata
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import write_json, write_text
from thaw.encoders.anatomy import probe_ids
from thaw.encoders.loading import load_tokenizer
from thaw.encoders.shortening import compact
from thaw.encoders.transformers import Encoder
from thaw.evaluation.metrics import THRESHOLD
from thaw.exporting.finished_run import FinishedRun
from thaw.features.batch import NONE, Batch
from thaw.schema.head import HeadConfig
from thaw.schema.layers import COMBINATIONS, OneLayerConfig

CUT_CLOSE = 1e-5  # by which states of the same layers may differ


def cut(encoder: Encoder, read: list[int]) -> str | None:
    """Remove the layers above the highest boundary that is read, in place; embeddings alone keep layer 1.

    Args: the encoder; the boundaries that the head reads, ascending. Returns the path of the module whose output is the
    state of the highest boundary where the cut model's own output is another, since the model has a norm after its
    last layer; else None. A model that does not give these states once it is cut is a UserError.
    """
    model, highest = encoder.model, read[-1]
    ids = probe_ids(model.config)
    mask = torch.ones(ids.shape[:2], dtype=torch.bool)
    expected = encoder.states(Batch(ids, mask, None, NONE, torch.arange(len(ids))), read)
    kept = max(highest, 1)
    if kept < encoder.layers:
        compact(encoder, range(1, kept + 1))
    last = f"{encoder.anatomy.layers}.{kept - 1}"
    for path in (None, last):
        given = states(model, {"input_ids": ids, "attention_mask": mask.long()}, read, kept, path)
        if all(torch.allclose(given[n], expected[n], atol=CUT_CLOSE) for n in read):
            return path
    raise UserError(
        f"{model.config.model_type} gives other hidden states once it is cut after layer {kept}; export a run whose "
        "head reads the last layer"
    )


@torch.no_grad()
def states(model: nn.Module, inputs: dict, read: list[int], kept: int, last: str | None) -> dict[int, torch.Tensor]:
    """Return the states [B, T, d] of a model of so many layers at some boundaries, as the loader of an export does.

    Args: last, as returned by `cut`.
    """
    taken = []
    hook = model.get_submodule(last).register_forward_hook(lambda *call: taken.append(call[-1])) if last else None
    outputs = model(**inputs, output_hidden_states=True)
    if hook:
        hook.remove()
    top = outputs[0] if not taken else taken[0][0] if isinstance(taken[0], tuple) else taken[0]
    return {n: top if n == kept else outputs.hidden_states[n] for n in read}


LOADER = Path(__file__).with_name("standalone_model.py")
REMOTE = Path(__file__).with_name("modeling_thaw.py")
TEXTS, WORDS = "AutoModelForSequenceClassification", "AutoModelForTokenClassification"
CUSTOM_PIPELINES = {"text-classification": {"impl": "modeling_thaw.ThawPipeline", "pt": [TEXTS], "type": "text"}}
HEAD_APART = "encoder_and_head"  # the form that no class of transformers loads whole
CLOSE = 1e-5  # by which logits of the same numbers may differ, since a sum's order may


def write(source: FinishedRun, folder: Path, apart: bool = False) -> str:
    """Write a run's model, tokenizer, loader and thaw.json into a folder; return the form that was taken.

    Args: the run; the folder; whether the head stays apart where a class of transformers has it too.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()
    head = load_file(source.made / "head.safetensors")
    whole, encoder = None, trained_encoder(source)
    last = cut(encoder, source.read)
    encoder = encoder.model
    if source.read == [encoder.config.num_hidden_layers] and last is None and not apart:
        whole = own_model(encoder, head, source.head, source.reads, source.labels, source.target)
    if whole is None:
        form = HEAD_APART
        if has_pipeline(source, form):
            encoder.config = _config(encoder.config, source.labels, source.target)
            encoder.config.auto_map = {WORDS if source.reads == "words" else TEXTS: "modeling_thaw.ThawModel"}
            encoder.config.custom_pipelines = CUSTOM_PIPELINES
            code = REMOTE.read_text(encoding="utf-8").replace("thaw.exporting.standalone_model", ".model")
            write_text(folder / REMOTE.name, code)
        encoder.save_pretrained(folder)
        shutil.copyfile(source.made / "head.safetensors", folder / "head.safetensors")
    else:
        form = "token_classification" if source.reads == "words" else "sequence_classification"
        whole.save_pretrained(folder)
    write_tokenizer(source.encoder, source.reads == "words", source.view.max_length, folder)
    shutil.copyfile(LOADER, folder / "model.py")
    if plugged := COMBINATIONS.get(source.head.layers.combine):
        shutil.copyfile(plugged.load().network_file(), folder / "ladder.py")
    write_json(folder / "thaw.json", facts(source, form, _layers(source, encoder, last)))
    return form


def has_pipeline(source: FinishedRun, form: str) -> bool:
    """Return whether `pipeline()` gives what the loader gives: it has none for texts that are read apart."""
    return form != HEAD_APART or not source.separate_encoding


def trained_encoder(source: FinishedRun) -> Encoder:
    """Return the pretrained encoder with the run's trained tensors in place and inserts merged, without its pooler."""
    encoder, path = Encoder.load(source.encoder), source.layers / layout.ENCODER
    if source.kept:
        encoder.shorten(source.kept)
    if path.is_file():
        if inserts := read_insert_metadata(path):
            inserts.into(encoder)
        encoder.put(load_file(path))
        merge(encoder.model)
    if source.kept:
        compact(encoder, source.kept)
    return encoder


def own_model(encoder, head: dict[str, torch.Tensor], entry: HeadConfig, reads: str, labels: list[str], target="label"):
    """Return the architecture's own classification model with this encoder and head, or None where it has another one.

    It must hold the encoder's tensors and one matrix and bias, and give the same logits on a few tokens: so it is for
    words in most architectures, and for texts in the few whose head has no layer of its own between.
    Args: the encoder; the head's tensors by name, its settings, what it reads (text or words); its labels, if any; the
    kind of the target.
    """
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    words = reads == "words"
    pooled = not words and entry.pooling in ("pooler", "frozen_pooler")
    if entry.kind != "linear" or entry.layers.learned or not (words or pooled or entry.pooling == "first"):
        return None
    auto = AutoModelForTokenClassification if words else AutoModelForSequenceClassification
    try:
        whole = auto.from_config(_config(encoder.config, labels, target), dtype=torch.float32).eval()
    except ValueError:  # transformers has no such model of this architecture
        return None
    inner = encoder.state_dict() | {
        name.replace("pooling.", "pooler."): tensor for name, tensor in head.items() if pooled and "pooling." in name
    }
    output = _only_layer(whole, set(inner))
    if output is None or output.bias is None or output.weight.shape != head["output.weight"].shape:
        return None
    whole.base_model.load_state_dict(inner)
    output.load_state_dict({"weight": head["output.weight"], "bias": head["output.bias"]})
    with torch.no_grad():
        ids = probe_ids(encoder.config)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        states, logits = encoder(**inputs)[0], whole(**inputs).logits
        vectors = states if words else states[:, 0]
        if pooled:
            vectors = torch.tanh(functional.linear(vectors, inner["pooler.dense.weight"], inner["pooler.dense.bias"]))
        expected = functional.linear(vectors, head["output.weight"], head["output.bias"])
    return whole if logits.shape == expected.shape and torch.allclose(logits, expected, atol=CLOSE) else None


def _only_layer(whole, names: set[str]) -> nn.Linear | None:
    inside = {id(module) for module in whole.base_model.modules()}
    outside = [module for module in whole.modules() if id(module) not in inside and not list(module.children())]
    with_tensors = [module for module in outside if module.state_dict()]
    if set(whole.base_model.state_dict()) != names or len(with_tensors) != 1:
        return None
    return with_tensors[0] if isinstance(with_tensors[0], nn.Linear) else None


def _config(config, labels: list[str], target: str):
    config = type(config).from_dict(config.to_dict())
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: number for number, label in enumerate(labels)}
        if target == "label_set":
            config.problem_type = "multi_label_classification"
    else:
        config.num_labels, config.problem_type = 1, "regression"
    return config


def write_tokenizer(encoder: Path, words: bool, max_length: int, folder: Path) -> None:
    """Write an encoder's tokenizer such that plain transformers cuts, and reads given words, as the run did."""
    tokenizer = load_tokenizer(encoder, words)
    tokenizer.model_max_length = max_length
    if words:  # said in the settings too: read again, RoBERTa's class takes it from there
        tokenizer.add_prefix_space = True
    for name in ("local_files_only", "is_local"):  # how it was read here, which transformers would write down
        tokenizer.init_kwargs.pop(name, None)
    tokenizer.save_pretrained(folder)


def _layers(source: FinishedRun, encoder, last: str | None) -> dict:
    """Return what the loader needs to know of the layers that a head reads; nothing where it reads the model's output.

    Args: the encoder, cut; path of the module whose output is its highest boundary, where the model's own is not.
    """
    kept = encoder.config.num_hidden_layers
    if source.read == [kept] and last is None and isinstance(source.head.layers, OneLayerConfig):
        return {}
    entry = source.head.layers
    norm = entry.model_dump().get("norm", False)
    said = {"read": source.read, "of": kept, "combine": entry.combine, "norm": norm, "last": last}
    if plugged := COMBINATIONS.get(entry.combine):
        said["network"] = plugged.load().exported(entry, encoder.config.hidden_size, len(source.read))
    return {"layers": said}


def facts(source: FinishedRun, form: str, layers: dict) -> dict:
    return {
        "form": form,
        "reads": source.reads,
        "pairs": source.view.pairs,
        "max_length": source.view.max_length,
        "labels": source.labels,
        **({"threshold": THRESHOLD} if source.target == "label_set" else {}),
        "head": {"kind": source.head.kind, "pooling": None if source.reads == "words" else source.pooling, **layers},
        "task": {key: source.task[key] for key in ("id", "type", "target")},
        "encoder": source.encoder.name,
        "run": str(source.run.relative_to(source.results)),
        "digest": source.metrics["digest"],
        "flags": source.metrics["flags"],
    }
