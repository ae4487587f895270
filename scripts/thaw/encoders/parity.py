"""The proof that an encoder may be resumed: started at each boundary, it ends in the same state, bit for bit.

B examples, T tokens, d width, L layers.
"""

from pathlib import Path
from types import SimpleNamespace

import torch

from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.core.runtime import log, versions
from thaw.encoders.anatomy import spelt
from thaw.encoders.transformers import Encoder

LENGTHS = (9, 6, 2)
MARKER = "parity.json"


def check_resume(folder) -> None:
    """Compare the encoder of a folder, resumed at each boundary, with itself run from text; see `compare`."""
    compare(Encoder.load(folder), folder)


def compare(encoder: Encoder, name) -> None:
    """Resume an encoder at boundaries 0 to L - 1 in turn and compare with its full pass, on a padded batch.

    Any difference is a UserError that names architecture and boundary: training from the cache would be training
    another model. It compares in fp32 on the CPU, and uses the encoder up.
    """
    batch = _batch(encoder.model.config)
    states = encoder.boundaries(batch)
    for boundary in range(encoder.layers):
        with torch.no_grad():
            final = encoder.resume_at(boundary)(batch, states[boundary])
        if not torch.equal(final[batch.mask], states[-1][batch.mask]):
            apart = (final - states[-1])[batch.mask].abs().max().item()
            raise UserError(
                f"{name}: {encoder.model.config.model_type} resumed at boundary {boundary} differs from its full "
                f"pass by {apart:.3g}, so its layers can not be cached; choose another encoder"
            )


def check_once(folder: Path) -> None:
    """Prove, before training on an encoder, that resuming it is exact, unless fetch did so with these libraries."""
    weights = read_json(folder / "card.json")["sha256"]
    marker = folder / MARKER
    if not marker.is_file() or read_json(marker) != _proof(weights):
        log(f"parity check: {folder.name} resumed at each boundary against its full pass")
        check_resume(folder)
        write_marker(folder, weights)


def write_marker(folder: Path, weights: str) -> None:
    """Leave a marker in the encoder's folder: these weights, by their sha256, passed under these library versions."""
    write_json(folder / MARKER, _proof(weights))


def _proof(weights: str) -> dict:
    """Return what a marker says."""
    return {"weights": weights, "versions": versions()}


def _batch(config) -> SimpleNamespace:
    """Return three examples of different lengths, ids drawn with a fixed seed, never the padding's."""
    shape = (len(LENGTHS), max(LENGTHS))
    ids = torch.randint(config.vocab_size, shape, generator=torch.Generator().manual_seed(0))
    pad = config.pad_token_id or 0
    ids[ids == pad] = (pad + 1) % config.vocab_size
    mask = torch.arange(shape[1]) < torch.tensor(LENGTHS)[:, None]
    return SimpleNamespace(input_ids=spelt(ids.where(mask, pad), config), mask=mask, type_ids=None)
