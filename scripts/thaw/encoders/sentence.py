"""Sentence embeddings: one vector for a whole text, from a frozen model or a file. An encoder of no layers.

A token is a whole text, spelt in the word pieces that the model inside reads, each plus one: 0 is no piece.

B examples, T texts of an example, C word pieces of a text, d width.
"""

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.encoders import token_pooling
from thaw.encoders.builtin_models import EmbeddingTable
from thaw.encoders.spelling import PAD, SpellingTokenizer

AT_ONCE = 32  # texts of like length that are read together


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
