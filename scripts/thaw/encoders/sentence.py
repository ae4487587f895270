"""Sentence embeddings: one vector for a whole text, from a frozen model or a file. An encoder of no layers.

A token is a whole text, spelt in the word pieces that the model inside reads, each plus one: 0 is no piece. Models come
as folders of sentence-transformers, vectors as files.

B examples, T texts of an example, C word pieces of a text, d width.
"""

import json
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.encoders import conversion, loading, token_pooling
from thaw.encoders.builtin_models import BuiltinCode, BuiltinModel, EmbeddingTable, builtin_config, write_builtin
from thaw.encoders.names import check_sum
from thaw.encoders.spelling import PAD, SpellingTokenizer

AT_ONCE = 32  # texts of like length that are read together
SWITCHES = {  # before version 6
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
PROBE_PIECES = 4  # by which Thaw reads made-up texts


class SentenceModel(nn.Module):
    """A transformer, a pooling of its last state, and perhaps a norm (Reimers and Gurevych 2019)."""

    def __init__(self, config):
        """Make it, random, from a config with that of the transformer under `encoder`."""
        from transformers import AutoConfig, AutoModel

        super().__init__()
        self.config, self.layers = config, nn.ModuleList()
        self.encoder = AutoModel.from_config(AutoConfig.for_model(**config.encoder), trust_remote_code=False)
        if hasattr(self.encoder, "pooler"):
            self.encoder.pooler = None

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor]:
        """Return the vectors [B, T, d] of texts [B, T, C]."""
        pieces = input_ids.flatten(0, 1)
        lengths = (pieces > 0).sum(1).clamp(min=1)
        vectors = pieces.new_empty(len(pieces), self.config.hidden_size, dtype=torch.float32)
        for rows in lengths.argsort(stable=True).split(AT_ONCE):
            vectors[rows] = self._vectors(pieces[rows, : lengths[rows].max()])
        return (vectors.view(*input_ids.shape[:2], -1),)

    def _vectors(self, pieces: torch.Tensor) -> torch.Tensor:
        """Return the vectors [N, d] of texts [N, C]."""
        mask = pieces > 0
        states = self.encoder(input_ids=(pieces - 1).clamp(min=0), attention_mask=mask.long())[0]
        vectors = POOLINGS[self.config.pooling](states, mask)
        return functional.normalize(vectors, dim=-1) if self.config.normalize else vectors


POOLINGS = {
    "cls": token_pooling.first_token,
    "mean": token_pooling.mean,
    "max": token_pooling.maximum,
    "lasttoken": token_pooling.last_token,
}


class TextVectors(EmbeddingTable):
    """One vector for each text of a file."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor]:
        """Return the vectors [B, T, d] of texts [B, T, 1], each the number of its row."""
        return super().forward(input_ids[..., 0], attention_mask)


def load_tokenizer(folder, words: bool) -> SpellingTokenizer:
    """Return what turns texts into word pieces, as the model inside reads them, cut where it cuts."""
    from transformers import PreTrainedTokenizerFast

    _refuse_words(folder, words)
    config = read_json(Path(folder) / "config.json")
    pieces = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)

    def spell(text: str) -> list[int]:
        text = "" if text == PAD else text.lower() if config["lower"] else text
        return [1 + number for number in pieces(text, truncation=True, max_length=config["max_length"])["input_ids"]]

    return SpellingTokenizer(spell, None)


def load_rows(folder, words: bool) -> SpellingTokenizer:
    """Return what turns a text into its row of the file; a text without one is a UserError."""
    _refuse_words(folder, words)
    rows = read_json(Path(folder) / "vocab.json")

    def spell(text: str) -> list[int]:
        if text != PAD and text not in rows:
            raise UserError(f"{folder}: the file of vectors has none for the text {text[:80]!r}; add it")
        return [rows.get(text, 0)]

    return SpellingTokenizer(spell, None)


def _refuse_words(folder, words: bool) -> None:
    if words:
        raise UserError(f"{folder}: an encoder of whole texts has no vectors of words; it is not for tagging")


def assemble(source: Path, target: Path, entry) -> None:
    """Bring a sentence encoder into a folder: a file of vectors, or what modules.json names.

    Its modules may be a transformer, a pooling and a norm; any other is a UserError. Form:
    https://sbert.net/docs/sentence_transformer/usage/custom_models.html.
    """
    if entry.file:
        _assemble_file(source, target, entry)
        return
    modules = _modules(source / "modules.json")
    inner = source / modules["Transformer"]
    conversion.assemble(inner, target, entry.sha256)
    model, tokenizer = loading.load_model(target), loading.load_tokenizer(target)
    longest = loading.longest(model, tokenizer)
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
        max_length=min(limits.get("max_seq_length") or longest, longest),
        encoder=read_json(target / "config.json"),
    )
    whole = SentenceModel(config)
    whole.encoder.load_state_dict(model.state_dict())
    tokenizer.save_pretrained(target)
    write_builtin(whole, target)


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
        "sentence": BuiltinModel(SentenceModel, load_tokenizer),
        "sentence_vectors": BuiltinModel(TextVectors, load_rows),
    },
)
