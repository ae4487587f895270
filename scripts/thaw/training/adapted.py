"""An encoder as a run left it: the pretrained one with the tensors that the run has trained."""

from dataclasses import dataclass
from pathlib import Path

import torch

from thaw.adaptation.peft_modules import Inserts, read_insert_metadata
from thaw.core import layout
from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import check_digest, read_json
from thaw.encoders.transformers import Encoder
from thaw.schema.student import kept_layers

BASE = "base"  # metadata key: the sha256 of the pretrained weights that trained tensors belong to


@dataclass
class AdaptedEncoder:
    """The folder of the pretrained encoder, the trained tensors by name, what was inserted, and the run's folder."""

    folder: Path
    tensors: dict[str, torch.Tensor]
    inserts: Inserts | None
    kept: list[int] | None = None  # the layers that it keeps, None for all
    run: Path | None = None

    @classmethod
    def of(cls, folder: Path, metrics: Path, expected: str) -> "AdaptedEncoder":
        """Return what a run made of an encoder.

        Args: folder of the encoder; the run's metrics.json; its digest. Raises UserError for another run, one that
        diverged, one that kept no tensors, and tensors of another encoder.
        """
        from safetensors import safe_open
        from safetensors.torch import load_file

        check_digest(metrics, expected)
        record = read_json(metrics)
        if "diverged" in record["flags"]:
            raise UserError(f"{metrics.parent}: its training diverged, and its encoder is of no use; leave it out")
        path = metrics.parent / layout.ENCODER
        if not path.is_file():
            raise UserError(f"{path} is missing; delete {metrics} and run the workflow again")
        with wrap_corruption(path, metrics), safe_open(path, "pt") as file:
            base = (file.metadata() or {}).get(BASE)
        if base not in (None, read_json(folder / "card.json")["sha256"]):
            raise UserError(f"{path} belongs to other weights than those of {folder}; delete {metrics} and run again")
        kept = kept_layers(record["spec"])
        return cls(folder, load_file(path), read_insert_metadata(path), kept, metrics.parent)

    def encoder(self) -> Encoder:
        """Return the encoder from text, frozen and in eval mode, on the CPU."""
        return self.onto(Encoder.load(self.folder))

    def onto(self, encoder: Encoder) -> Encoder:
        """Put inserts and tensors into the pretrained encoder, and return it, frozen and in eval mode."""
        if self.kept:
            encoder.shorten(self.kept)
        if self.inserts is not None:
            self.inserts.into(encoder)
        encoder.put(self.tensors)
        encoder.thaw(set())
        return encoder.eval()
