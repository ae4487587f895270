"""Sentence encoders as they are published: folders of sentence-transformers, and files of vectors."""

import json
from pathlib import Path

import numpy as np
import torch

from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.encoders import conversion, sentence
from thaw.encoders.builtin_models import BuiltinCode, BuiltinModel, builtin_config, write_builtin
from thaw.encoders.loading import load_model, load_tokenizer, longest
from thaw.encoders.names import check_sum
from thaw.encoders.sentence import POOLINGS, SentenceModel, TextVectors

SWITCHES = {  # before version 6
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
PROBE_PIECES = 4  # by which Thaw reads made-up texts


def assemble(source: Path, target: Path, entry) -> None:
    """Bring a sentence encoder into a folder: a file of vectors, or what modules.json names.

    Its modules may be a transformer, a pooling and a norm; any other is a UserError. Form:
    https://sbert.net/docs/sentence_transformer/usage/custom_models.html.
    """
    if entry.file:
        return _assemble_file(source, target, entry)
    modules = _modules(source / "modules.json")
    inner = source / modules["Transformer"]
    conversion.assemble(inner, target, entry.sha256)
    model, tokenizer = load_model(target), load_tokenizer(target)
    limits = read_json(path) if (path := inner / "sentence_bert_config.json").is_file() else {}
    config = builtin_config(
        model_type="sentence",
        num_hidden_layers=0,
        hidden_size=model.config.hidden_size,
        vocab_size=model.config.vocab_size + 1,
        pad_token_id=0,
        spelling=PROBE_PIECES,
        pooling=_pooling(source / modules["Pooling"] / "config.json"),
        normalize="Normalize" in modules,
        lower=bool(limits.get("do_lower_case")),
        max_length=min(limits.get("max_seq_length") or longest(model, tokenizer), longest(model, tokenizer)),
        encoder=read_json(target / "config.json"),
    )
    whole = SentenceModel(config)
    whole.encoder.load_state_dict(model.state_dict())
    tokenizer.save_pretrained(target)
    write_builtin(whole, target)
    return None


def _modules(path: Path) -> dict[str, str]:
    paths = {}
    for module in read_json(path):
        name = str(module["type"]).rpartition(".")[2]
        if name not in ("Transformer", "Pooling", "Normalize"):
            raise UserError(f"{path}: module {name} is none of Transformer, Pooling and Normalize, which Thaw reads")
        paths[name] = module["path"]
    if missing := {"Transformer", "Pooling"} - set(paths):
        raise UserError(f"{path} names no {sorted(missing)[0]}; expected a transformer and a pooling")
    return paths


def _pooling(path: Path) -> str:
    config = read_json(path)
    switched = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    chosen = config.get("pooling_mode", " and ".join(SWITCHES.get(key, key) for key in switched))
    if chosen not in POOLINGS:
        raise UserError(f"{path}: pooling {chosen!r} is none of {', '.join(POOLINGS)}, which Thaw reads")
    return chosen


def _assemble_file(source: Path, target: Path, entry) -> None:
    """Read a file with a row for each text (columns `text` and `vector`): .jsonl or .parquet."""
    check_sum(source, entry.sha256)
    rows: dict[str, int] = {}
    vectors = [np.zeros(entry.width, np.float32)]
    for number, text, vector in _rows(source):
        vector = np.asarray(vector, np.float32)
        if not isinstance(text, str) or vector.shape != (entry.width,) or not np.isfinite(vector).all():
            raise UserError(f"{source}:{number}: expected a text and a vector of {entry.width} finite numbers")
        if text not in rows:
            rows[text] = len(vectors)
            vectors.append(vector)
    if not rows:
        raise UserError(f"{source} holds no vector")
    sizes = {"num_hidden_layers": 0, "hidden_size": entry.width, "vocab_size": len(vectors), "pad_token_id": 0}
    model = TextVectors(builtin_config(model_type="sentence_vectors", spelling=1, **sizes))
    model.embeddings.weight.data = torch.from_numpy(np.stack(vectors))
    write_builtin(model, target)
    write_json(target / "vocab.json", rows)


def _rows(path: Path):
    if path.suffix == ".jsonl":
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    row = json.loads(line)
                    yield number, row["text"], row["vector"]
                except (ValueError, KeyError, TypeError) as error:
                    expected = '{"text": "...", "vector": [...]}'
                    raise UserError(f"{path}:{number}: expected {expected}") from error
    elif path.suffix == ".parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path)
        if not {"text", "vector"} <= set(table.column_names):
            raise UserError(f"{path} has the columns {', '.join(table.column_names)}; expected text and vector")
        yield from zip(range(1, len(table) + 1), *(table[name].to_pylist() for name in ("text", "vector")), strict=True)
    else:
        raise UserError(f"{path} ends in neither .jsonl nor .parquet")


CODE = BuiltinCode(
    assemble,
    {
        "sentence": BuiltinModel(SentenceModel, sentence.load_tokenizer),
        "sentence_vectors": BuiltinModel(TextVectors, sentence.load_rows),
    },
)
