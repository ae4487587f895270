"""Forgetting: how well an encoder still predicts masked tokens with the predictor that it was pretrained with.

The masked-language-model loss on the texts of validation, before and after adaptation, with the same masks.
"""

import numpy as np

from thaw.encoders.loading import load_tokenizer
from thaw.encoders.masked import MaskedModel
from thaw.encoders.registry import own_kind
from thaw.probes.comparison import Comparison
from thaw.runtime import log
from thaw.training.masking import Marks, MaskedFeed, mean_loss
from thaw.training.pretraining import TokenModel

SHARE = 0.15  # of the tokens are masked (Devlin et al. 2019, section 3.1)


def masked_loss(comparison: Comparison) -> tuple[list[dict], list[dict]]:
    """Return the loss in nats a masked token after each run, with that before it; of the last layer alone.

    An encoder that came without what predicts tokens has none: nothing is returned, and the log says so.
    """
    folder = comparison.sides[None].encoder
    tokenizer = None if own_kind(folder) else load_tokenizer(folder)
    if tokenizer is None or tokenizer.mask_token_id is None or not MaskedModel(folder, 0).came:
        log(f"left out: {folder} came without what predicts masked tokens, so there is no loss of its own to compare")
        return [], []
    marks, rows, ends = Marks(tokenizer.mask_token_id, len(tokenizer)), [], []
    chosen = comparison.rows()
    for seed in comparison.seeds:
        before, after = (_loss(comparison, side, marks, seed, chosen) for side in (None, seed))
        rows.append({"layer": comparison.layers, "seed": seed, "before": before, "masked_loss": after})
        scores = {comparison.split: {"masked_loss": after, "before": before}}
        ends.append({"layer": comparison.layers, "seed": seed, "scores": scores})
    return rows, ends


def _loss(comparison: Comparison, side: int | None, marks: Marks, seed: int, rows: np.ndarray) -> float:
    """Return the mean loss of one side over the masked tokens of some rows of validation."""
    inputs = comparison.sides[side]
    model = MaskedModel(inputs.encoder, 0)
    if inputs.adapted:
        inputs.adapted.onto(model.encoder)
    store = comparison.sides[None].store
    feed = MaskedFeed(store, inputs.device, SHARE, marks, seed, "masks")
    return mean_loss(TokenModel(model.to(inputs.device), "fp32"), feed, comparison.split, rows)
