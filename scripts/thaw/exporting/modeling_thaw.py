"""The model of this folder as transformers' pipelines load it; `model.py` computes. It needs torch and transformers.

from transformers import pipeline
pipe = pipeline("text-classification", folder, trust_remote_code=True)  # "token-classification" of a tagger
"""

from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from transformers import PreTrainedModel, TextClassificationPipeline
from transformers.modeling_outputs import SequenceClassifierOutput

from thaw.exporting.standalone_model import Model


class ThawModel(PreTrainedModel):
    """The encoder and the head of this folder."""

    _supports_sdpa = _supports_flash_attn = _supports_attention_backend = True

    def __init__(self, config, loaded: Model):
        """Take the config, and what `model.py` loaded."""
        super().__init__(config)
        self.loaded, self.encoder = loaded, loaded.model
        self.ladder = getattr(loaded, "ladder", None)

    @classmethod
    def from_pretrained(cls, folder, *arguments, config, revision=None, **others):
        """Load a folder, or what a Hub id names; in fp32, whatever else is asked."""
        if not Path(folder).is_dir():
            folder = snapshot_download(str(folder), revision=revision)
        return cls(config, Model(folder)).eval()

    def forward(self, input_ids, attention_mask, **others) -> SequenceClassifierOutput:
        """Return the logits [B, C] of sequences [B, T], of words [B, T, C]."""
        mask = attention_mask.clone()
        mask[:, 0] = 1  # a text without a token is one padding token
        self.loaded.head = {name: tensor.to(input_ids.device) for name, tensor in self.loaded.head.items()}
        inputs = {"input_ids": input_ids, "attention_mask": mask} | others
        return SequenceClassifierOutput(logits=self.loaded._logits(inputs))


class ThawPipeline(TextClassificationPipeline):
    """transformers' own, but long texts are cut as the run cut them."""

    def check_model_type(self, supported_models) -> None:
        """Accept the model above, which transformers does not list."""

    def preprocess(self, inputs, **options):
        """Return the tokens of a text or pair; a text of none is one padding token."""
        encoded = super().preprocess(inputs, **{"truncation": True} | options)
        if encoded["input_ids"].shape[-1] == 0:
            padding = torch.tensor([[self.tokenizer.pad_token_id or 0]])
            encoded = {name: padding if name == "input_ids" else torch.zeros_like(padding) for name in encoded}
        return encoded
