"""The proof that an encoder may be resumed: started at each boundary, it ends in the same state, bit for bit.

It is proved on the CPU, and again on each kind of GPU that trains, whose library chooses products by their shapes.

B examples, T tokens, d width, L layers.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import torch

from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.core.runtime import hardware, log, versions
from thaw.encoders.anatomy import spelt
from thaw.encoders.transformers import Encoder

LENGTHS = (9, 6, 2)
MORE = (64,) * 8  # on a GPU too, where what is not padded takes another kernel
MARKER = "parity.json"
CPU = torch.device("cpu")


def check_resume(folder, device: torch.device = CPU) -> None:
    """Compare the encoder of a folder, resumed at each boundary, with itself run from text; see `compare`."""
    compare(Encoder.load(folder), folder, device)


def compare(encoder: Encoder, name, device: torch.device = CPU) -> None:
    """Resume an encoder at boundaries 0 to L - 1 in turn and compare with its full pass, on a few examples.

    Any difference is a UserError that names architecture and boundary: training from the cache would be training
    another model. It compares in fp32 on a device, and uses the encoder up.
    """
    wanted = [LENGTHS] if device.type == "cpu" else [LENGTHS, MORE]
    read = [_batch(encoder.model.config, lengths, device) for lengths in wanted]
    every = [encoder.to(device).boundaries(batch) for batch in read]
    for boundary in range(encoder.layers):
        encoder.resume_at(boundary)
        for batch, states in zip(read, every, strict=True):
            with torch.no_grad():
                final = encoder(batch, states[boundary])
            if not torch.equal(final[batch.mask], states[-1][batch.mask]):
                difference = (final - states[-1])[batch.mask].abs().max().item()
                raise UserError(
                    f"{name}: {encoder.model.config.model_type} resumed at boundary {boundary} differs from its full "
                    f"pass by {difference:.3g} on {hardware(device)['device']}, so its layers cannot be cached; "
                    "choose another encoder"
                )


def check_once(folder: Path, device: torch.device = CPU) -> None:
    """Prove, before training on an encoder, that resuming it is exact on a device.

    That is done once for these weights, libraries and kind of device; for the CPU `fetch` did it.
    """
    weights = read_json(folder / "card.json")["sha256"]
    marker = _marker(folder, device)
    if not marker.is_file() or read_json(marker) != _proof(weights, device):
        on = "" if device.type == "cpu" else f" on {hardware(device)['device']}"
        log(f"parity check: {folder.name} resumed at each boundary against its full pass{on}")
        check_resume(folder, device)
        write_marker(folder, weights, device)


def write_marker(folder: Path, weights: str, device: torch.device = CPU) -> None:
    """Leave a marker in the encoder's folder: these weights, by their sha256, passed under these library versions."""
    write_json(_marker(folder, device), _proof(weights, device))


def _marker(folder: Path, device: torch.device) -> Path:
    """Return the path of a marker; each kind of GPU has one of its own."""
    if device.type == "cpu":
        return folder / MARKER
    kind = re.sub(r"[^a-z0-9]+", "_", hardware(device)["device"].lower())
    return (folder / MARKER).with_suffix(f".{kind}.json")


def _proof(weights: str, device: torch.device) -> dict:
    return {"weights": weights, "versions": versions(device)}


def _batch(config, lengths: tuple[int, ...], device: torch.device) -> SimpleNamespace:
    shape = (len(lengths), max(lengths))
    ids = torch.randint(config.vocab_size, shape, generator=torch.Generator().manual_seed(0))
    pad = config.pad_token_id or 0
    ids[ids == pad] = (pad + 1) % config.vocab_size
    mask = torch.arange(shape[1]) < torch.tensor(lengths)[:, None]
    ids = spelt(ids.where(mask, pad), config)
    return SimpleNamespace(input_ids=ids.to(device), mask=mask.to(device), type_ids=None)
