"""The proof that an encoder may be resumed: started at each boundary, it ends in the same state, bit for bit.

B examples, T tokens, d width, L layers.
"""

from types import SimpleNamespace

import torch

from thaw.encoders.transformers import Encoder
from thaw.records import UserError

LENGTHS = (9, 6, 2)


def check_resume(folder) -> None:
    """Compare an encoder, resumed at each boundary 0 to L - 1, with itself run from text, on a padded batch.

    Any difference is a UserError that names architecture and boundary: training from the cache would be training
    another model. It compares in fp32 on the CPU.
    """
    encoder = Encoder.load(folder)
    batch = _batch(encoder.model.config)
    states = encoder.boundaries(batch)
    for boundary in range(encoder.layers):
        with torch.no_grad():
            final = encoder.resume_at(boundary)(batch, states[boundary])
        if not torch.equal(final[batch.mask], states[-1][batch.mask]):
            apart = (final - states[-1])[batch.mask].abs().max().item()
            raise UserError(
                f"{folder}: {encoder.model.config.model_type} resumed at boundary {boundary} differs from its full "
                f"pass by {apart:.3g}, so its layers can not be cached; choose another encoder"
            )


def _batch(config) -> SimpleNamespace:
    """Return three examples of different lengths, ids drawn with a fixed seed, never the padding's."""
    shape = (len(LENGTHS), max(LENGTHS))
    ids = torch.randint(config.vocab_size, shape, generator=torch.Generator().manual_seed(0))
    pad = config.pad_token_id or 0
    ids[ids == pad] = (pad + 1) % config.vocab_size
    mask = torch.arange(shape[1]) < torch.tensor(LENGTHS)[:, None]
    return SimpleNamespace(input_ids=ids.where(mask, pad), mask=mask, type_ids=None)
