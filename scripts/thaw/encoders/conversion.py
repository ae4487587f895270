"""Bringing a model into the one form that Thaw reads: config.json, tokenizer files, one model.safetensors."""

import json
import pickle
import shutil
from pathlib import Path

import torch

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.runtime import seeded
from thaw.encoders.names import PICKLED, SENTENCEPIECE, SETTINGS, SHARDS, TOKENIZER, VOCABULARIES, WEIGHTS, check_sum


def assemble(source: Path, target: Path, expected: str | None) -> None:
    """Copy a model's settings, tokenizer and weights; nothing else of the folder, and no mention of code in it.

    expected: the sha256 of the published weights file.
    """
    check_config(source / "config.json")
    for name in (*SETTINGS, *TOKENIZER):
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    for path in (target / name for name in (*SETTINGS, "tokenizer_config.json")):
        if path.is_file() and isinstance(content := read_json(path), dict) and "auto_map" in content:
            del content["auto_map"]
            path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    check_tokenizer(source)
    weights = published_weights(source)
    check_sum(weights, expected)
    if weights.name == WEIGHTS:
        shutil.copyfile(weights, target / WEIGHTS)
    else:
        _save(_shards(weights) if weights.name == SHARDS else _pickled(weights), target / WEIGHTS)


def randomise(folder: Path) -> None:
    """Put in the place of an assembled model's weights the random ones that its architecture begins with.

    They are drawn as its config says, and always the same.
    """
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    with seeded(0, "random weights"):
        model = AutoModel.from_config(config, trust_remote_code=False)
    _save(model.state_dict(), folder / WEIGHTS)


def check_config(path: Path) -> None:
    """Refuse a model that is defined by code of its own, and one whose weights are quantised."""
    from transformers import CONFIG_MAPPING

    config = read_json(path)
    config = config if isinstance(config, dict) else {}
    kind = config.get("model_type")
    if kind not in CONFIG_MAPPING:
        code = " and the folder brings code of its own, which Thaw never runs" if "auto_map" in config else ""
        raise UserError(f"{path}: model_type {kind!r} is none that transformers knows{code}")
    if "quantization_config" in config:
        raise UserError(f"{path}: quantised weights; Thaw needs them in full precision")


def check_tokenizer(source: Path) -> None:
    """Refuse a folder without a vocabulary: transformers would make up an empty one."""
    from importlib.util import find_spec

    if any((source / name).is_file() for name in VOCABULARIES):
        return
    if not any((source / name).is_file() for name in SENTENCEPIECE):
        raise UserError(f"{source} has no tokenizer: tokenizer.json, vocab.txt, vocab.json or a sentencepiece model")
    if find_spec("sentencepiece") is None:
        raise UserError(f"{source} has its tokenizer as a sentencepiece model; run: pip install sentencepiece protobuf")


def published_weights(source: Path) -> Path:
    """Return the weights file of a folder, or the index of its shards; without one that can be read, a UserError."""
    for name in (WEIGHTS, SHARDS, PICKLED):
        if (source / name).is_file():
            return source / name
    raise UserError(
        f"{source} has no weights: neither {WEIGHTS} nor {PICKLED}; other formats must be converted first, "
        "with the library that wrote them: model.save_pretrained(folder, safe_serialization=True)"
    )


def _pickled(path: Path) -> dict[str, torch.Tensor]:
    """Read a pickled checkpoint with torch's weights-only loader, which builds tensors and runs nothing."""
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise UserError(
            f"{path} is refused by torch's weights-only loader: damaged, or it holds more than tensors; convert it "
            "where you trust it: model.save_pretrained(folder, safe_serialization=True)"
        ) from error
    if not isinstance(tensors, dict) or not all(torch.is_tensor(value) for value in tensors.values()):
        raise UserError(f"{path} is no state dict: expected a dictionary of tensors")
    return tensors


def _shards(index: Path) -> dict[str, torch.Tensor]:
    """Read the tensors of all shards that an index names; shards are in the folder of their index."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    content = read_json(index)
    tensors: dict[str, torch.Tensor] = {}
    if not isinstance(content, dict) or not isinstance(content.get("weight_map"), dict):
        raise UserError(f"{index} has no weight_map that says which file holds which tensor")
    for name in sorted({Path(str(name)).name for name in content["weight_map"].values()}):
        path = index.parent / name
        if not path.is_file():
            raise UserError(f"{path} is missing, though {index.name} names it")
        try:
            tensors |= load_file(path)
        except SafetensorError as error:
            raise UserError(f"{path} is no safetensors file: {error}") from error
    return tensors


def _save(tensors: dict[str, torch.Tensor], path: Path) -> None:
    """Write tensors as safetensors; those that share memory are written twice."""
    from safetensors.torch import save_file

    save_file({name: value.detach().clone().contiguous() for name, value in tensors.items()}, path, {"format": "pt"})
