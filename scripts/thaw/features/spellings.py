"""The spellings of a vocabulary that a store keeps, for encoders that read characters."""

from pathlib import Path

import numpy as np
import torch

from thaw.core.errors import wrap_corruption
from thaw.core.files import atomic_write


def write_spellings(folder: Path, table: np.ndarray) -> None:
    """Write how each token of a corpus is spelt, int32 [V, C], for an encoder that reads tokens in pieces."""
    from safetensors.numpy import save_file

    with atomic_write(folder / "spellings.safetensors") as temporary:
        save_file({"spellings": table}, temporary)


def read_spellings(folder: Path) -> torch.Tensor:
    """Return what `write_spellings` wrote, int64 [V, C]."""
    from safetensors.torch import load_file

    path = folder / "spellings.safetensors"
    with wrap_corruption(path, f"{folder}/tokens.json"):
        return load_file(path)["spellings"].long()
