"""Forgetting: how well an encoder still does what it was pretrained to do, with its published pretraining heads.

The losses of masked tokens and of next sentences on the texts of validation, before and after adaptation.

B pairs of a batch, d width.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from thaw.core.runtime import log
from thaw.encoders.loading import find_next_sentence, find_pooler, load_tokenizer
from thaw.encoders.masked_model import MaskedModel
from thaw.encoders.registry import builtin_kind
from thaw.features.row_sets import batches
from thaw.probes.encoder_comparison import PRETRAINED, EncoderComparison
from thaw.training.masking import MaskedBatchLoader, MaskingVocabulary, mean_loss
from thaw.training.objectives import MaskedLanguageModel

SHARE = 0.15  # of the tokens are masked (Devlin et al. 2019, section 3.1)


def masked_loss(comparison: EncoderComparison) -> tuple[list[dict], list[dict]]:
    """Return the loss in nats a masked token after each run, with that before it; of the last layer alone.

    Masks are the same before and after. An encoder that came without what predicts tokens has none: nothing is
    returned, and the log says so.
    """
    folder = comparison.sides[PRETRAINED].encoder
    tokenizer = None if builtin_kind(folder) else load_tokenizer(folder)
    if tokenizer is None or tokenizer.mask_token_id is None or not MaskedModel(folder, 0).came:
        log(f"left out: {folder} came without what predicts masked tokens, so there is no loss of its own to compare")
        return [], []
    vocabulary, chosen = MaskingVocabulary(tokenizer.mask_token_id, len(tokenizer)), comparison.rows()
    return _rows_and_scores(comparison, lambda side, seed: _loss(comparison, side, vocabulary, seed, chosen))


def next_sentence_loss(comparison: EncoderComparison) -> tuple[list[dict], list[dict]]:
    """Return the loss in nats a pair, its second text taken for the next one, after each run, with that before it.

    An encoder without a head for next sentences has none, nor pairs that are read separately: nothing is
    returned, and the log says so.
    """
    pretrained = comparison.sides[PRETRAINED]
    pooler, judge = find_pooler(pretrained.encoder), find_next_sentence(pretrained.encoder)
    if len(pooler) < 2 or len(judge) < 2:
        log(f"left out: {pretrained.encoder} came without what tells whether a text follows another")
        return [], []
    if pretrained.store.separate_encoding:
        log(
            f"left out: the texts of {comparison.task['id']} are read separately, and next sentences need both in one "
            "sequence"
        )
        return [], []
    losses = {side: _next_sentence(comparison, side, pooler, judge) for side in comparison.sides}
    return _rows_and_scores(comparison, lambda side, seed: losses[side])


def _rows_and_scores(
    comparison: EncoderComparison, loss: Callable[[int | None, int], float]
) -> tuple[list[dict], list[dict]]:
    """Return the rows and layer scores of losses, `loss(side, seed)`, before and after each run."""
    name, rows, layer_scores = comparison.entry.kind, [], []
    for seed in comparison.seeds:
        losses = {"before": loss(PRETRAINED, seed), name: loss(seed, seed)}
        rows.append({"layer": comparison.layers, "seed": seed, **losses})
        layer_scores.append({"layer": comparison.layers, "seed": seed, "scores": {comparison.split: losses}})
    return rows, layer_scores


def _loss(
    comparison: EncoderComparison, side: int | None, vocabulary: MaskingVocabulary, seed: int, rows: np.ndarray
) -> float:
    """Return the mean loss of one side over the masked tokens of some rows of validation."""
    inputs = comparison.sides[side]
    model = MaskedModel(inputs.encoder, 0)
    if inputs.adapted:
        inputs.adapted.onto(model.encoder)
    store = comparison.sides[PRETRAINED].store
    loader = MaskedBatchLoader(store, inputs.device, SHARE, vocabulary, seed, "masks")
    return mean_loss(model.to(inputs.device), MaskedLanguageModel("fp32"), loader, comparison.split, rows)


@torch.no_grad()
def _next_sentence(comparison: EncoderComparison, side: int | None, pooler: dict, judge: dict) -> float:
    """Return the mean of -log p(the second text is the next) of one side over some pairs of validation."""
    store, device = comparison.sides[PRETRAINED].store, comparison.sides[PRETRAINED].device
    encoder, rows, total = comparison.encoder(side), comparison.rows(), 0.0
    pooler, judge = ({name: tensor.to(device) for name, tensor in layer.items()} for layer in (pooler, judge))
    for positions in batches(store.sizes(comparison.split)[rows]):
        first = encoder(store.batch(comparison.split, rows[positions]).to(device))[:, 0]  # [B, d]
        logits = functional.linear(functional.linear(first, **pooler).tanh(), **judge)
        total -= logits.log_softmax(1)[:, 0].sum().item()
    return total / len(rows)
