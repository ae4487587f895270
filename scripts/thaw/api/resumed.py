"""An encoder that starts at a layer, and its stored states below it, for a training loop of one's own.

    model, states = thaw.resume("owner/name", texts, layer=4, labels=labels)

Nothing of it needs Snakemake or a catalogue. T tokens, d width, B rows, L layers.
"""

import hashlib
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from thaw.core import layout
from thaw.core.digests import canonical, digest
from thaw.core.errors import UserError
from thaw.core.files import locked, read_json, write_json, write_parquet
from thaw.core.processes import Processes
from thaw.encoders import conversion, weight_sources
from thaw.encoders.folders import staged, verified
from thaw.encoders.transformers import Encoder
from thaw.features import new_store
from thaw.features.batch import Batch
from thaw.features.store import FeatureStore

LONGEST = 8192  # tokens of a view


class Resumed(nn.Module):
    """The layers of an encoder above its start, all of them trainable; their dropout is on in training mode.

    width: d. tokenizer and weights of the whole encoder are in `folder`.
    """

    def __init__(self, folder: Path, layer: int):
        super().__init__()
        self.encoder, self.folder = Encoder.load(folder), folder
        self.width = self.encoder.width
        self.trained = [f"layer.{n}" for n in range(layer + 1, self.encoder.layers + 1)]
        if self.trained:
            self.encoder.resume_at(layer).thaw(self.trained)
        self.train()

    def forward(self, states: torch.Tensor, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the last hidden state [B, T, d]. Args: the states below [B, T, d]; ids and mask [B, T]."""
        if not self.trained:
            return states
        rows = torch.arange(len(input_ids), device=input_ids.device)
        pieces = input_ids.new_empty(len(input_ids), 0)
        return self.encoder(Batch(input_ids, attention_mask.bool(), None, pieces, rows), states)

    def whole(self):
        """Return the whole model of transformers, with the layers below and what these were trained to."""
        from transformers import AutoModel

        model = AutoModel.from_pretrained(self.folder)
        lacking = model.load_state_dict(self.encoder.tensors(self.trained), strict=False)
        assert not lacking.unexpected_keys, lacking.unexpected_keys
        return model


class States(torch.utils.data.Dataset):
    """The stored states of some texts at one boundary, read from disk as they are asked for; a torch data set.

    An item has states [T, d] float32, input_ids [T], and labels where they were given.
    """

    def __init__(self, store: FeatureStore, layer: int, labels: Sequence | None):
        self.store, self.labels, self._states = store, labels, store.states(layer, "train")

    def __len__(self) -> int:
        return len(self.store.lengths("train"))

    def __getitem__(self, row: int) -> dict:
        batch = self.store.batch("train", [range(len(self))[row]])
        item = {"states": self._states.gather([row], batch)[0], "input_ids": batch.input_ids[0]}
        return item if self.labels is None else item | {"labels": self.labels[row]}

    def collate(self, items: list[dict]) -> dict[str, torch.Tensor]:
        """Return items padded to the longest of them, with their attention_mask [B, T]: a `collate_fn`."""
        ids = [item["input_ids"] for item in items]
        batch = {
            "states": pad_sequence([item["states"] for item in items], batch_first=True),
            "input_ids": pad_sequence(ids, batch_first=True, padding_value=self.store.card["pad"]),
            "attention_mask": pad_sequence([torch.ones_like(one) for one in ids], batch_first=True),
        }
        return batch if self.labels is None else batch | {"labels": torch.as_tensor([item["labels"] for item in items])}


def resume(
    encoder: str | Path,
    texts: Sequence,
    layer: int,
    labels: Sequence | None = None,
    *,
    max_length: int = 128,
    dtype: str = "fp32",
    folder: str | Path = "thaw_states",
) -> tuple[Resumed, States]:
    """Return the layers above a boundary, and the states of texts at it, which are computed once and kept on disk.

    Args: owner/name of the Hub, or a folder of transformers; texts, or pairs of two texts; the boundary, 0 (what the
    embeddings give) to L; as many labels, for the batches; the most tokens of a sequence; "fp32", or "bf16" for
    half the disk; where all of it is kept. A second call with the same texts reads what is there. Raises UserError
    for a layer that the encoder does not have.
    """
    folder, texts = Path(folder), _checked(texts)
    labels = None if labels is None else _numbers(labels, len(texts))
    if dtype not in ("fp32", "bf16"):
        raise UserError(f"dtype {dtype}: expected 'fp32' or 'bf16'")
    home = _fetched(encoder, folder)
    card = read_json(home / "card.json")
    if not isinstance(layer, Integral) or layer not in range(card["layers"] + 1) or isinstance(layer, bool):
        raise UserError(f"layer {layer!r}: {encoder} has layers 1 to {card['layers']}, and 0, its embeddings")
    most = min(card["max_length"], LONGEST)
    if not isinstance(max_length, Integral) or max_length not in range(4, most + 1):
        raise UserError(f"max_length {max_length!r}: {encoder} reads 4 to {most} tokens")
    layer, max_length = int(layer), int(max_length)
    return Resumed(home, layer), States(_stored(texts, home, card, layer, max_length, dtype, folder), layer, labels)


def _checked(texts: Sequence) -> list:
    """Return the texts, or pairs. Raises UserError for whatever is neither."""
    if isinstance(texts, str | Mapping) or hasattr(texts, "columns") or not (texts := _plain(texts)):
        raise UserError("texts: give a list with one text or more, or pairs of two texts")
    size = 0 if isinstance(texts[0], str) else 2
    for number, text in enumerate(texts):
        parts = (text,) if not size else tuple(text) if isinstance(text, tuple | list) else ()
        if len(parts) != (size or 1) or not all(isinstance(part, str) for part in parts):
            raise UserError(f"texts[{number}] is {text!r}; give texts alone, or pairs of two texts alone")
    return texts


def _numbers(labels: Sequence, count: int) -> list:
    """Return as many labels, each a number or a list of numbers. Raises UserError for whatever is neither."""
    labels = _plain(labels)
    if len(labels) != count:
        raise UserError(f"{count} texts but {len(labels)} labels; give one label for each text")
    for label in labels:
        if any(not isinstance(one, Real) or one != one for one in (label if isinstance(label, list) else [label])):
            raise UserError(f"a label is {label!r}; give numbers: of classes their positions 0, 1, ...")
    return labels


def _plain(values: Sequence) -> list:
    """Return a list of what a list, an array, a tensor or a column of pandas holds, in its order."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _fetched(encoder: str | Path, folder: Path) -> Path:
    """Bring the encoder into a folder of its own, proved to resume exactly; return the folder."""
    source = Path(encoder)
    if not source.is_dir():
        if len(source.parts) != 2 or source.is_absolute():
            raise UserError(f"{encoder} is no folder, and no owner/name of the Hub; give one of both")
        source = weight_sources.from_hub(str(encoder), None).folder
    files = {path.name: [path.stat().st_size, path.stat().st_mtime_ns] for path in source.glob("*") if path.is_file()}
    out = folder / "fetched" / digest({"source": str(source.resolve()), "files": files})[:16]
    if not (out / "card.json").is_file():
        with staged(out) as place:
            conversion.assemble(source, place, None)
            facts = verified(place)
        write_json(out / "card.json", {"encoder": str(encoder), **facts})
    return out


def _stored(texts: list, home: Path, card: dict, layer: int, max_length: int, dtype: str, folder: Path) -> FeatureStore:
    """Tokenise the texts and compute their states where they are not there; return the store."""
    columns = {"text": texts}
    if texts and not isinstance(texts[0], str):
        columns = dict(zip(("text", "second"), map(list, zip(*texts, strict=True)), strict=True))
    spec = {"view": {"max_length": max_length}, "dtype": dtype, "weights": card["sha256"]}
    content = hashlib.sha256(canonical(columns).encode()).hexdigest()
    out = folder / "stored" / digest(spec | {"texts": content})[:16]
    out.mkdir(parents=True, exist_ok=True)
    corpus = {"corpus": "texts", "texts": list(columns), "targets": {}, "splits": {"train": {}}, "digest": content}
    with locked(out.parent):
        if not (out / "tokens.json").is_file():
            import pandas

            write_parquet(out / "train.parquet", pandas.DataFrame(columns))
            facts = {"encoder": card["encoder"], "corpus": "texts", "view": "joint", "dtype": dtype}
            made_of = {"weights": card["sha256"], "tokenizer": card["tokenizer_sha256"], "data": content}
            new_store.write_tokens(spec, out, corpus, home, card, out, facts | made_of | {"digest": digest(spec)})
        if not Path(layout.stored_part(str(out), layer)).is_file():
            new_store.write_parts(out, home, [layer], spec, None, Processes(torch.get_num_threads()))
    return FeatureStore(out)
