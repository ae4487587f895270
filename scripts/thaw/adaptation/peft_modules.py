"""Inserts: LoRA and IA3 by peft, and bottleneck adapters, in some layers of an encoder.

B examples, T tokens, d width, m bottleneck width, r rank. Each begins such that the encoder computes what it did, LoRA
and IA3 exactly, adapters nearly.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from thaw.adaptation.selectors import block, part
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.runtime import seeded
from thaw.encoders.sublayers import Sublayers
from thaw.encoders.transformers import Encoder
from thaw.schema.phases import InsertConfig, PhaseConfig


@dataclass(frozen=True)
class Inserts:
    """What a run puts into an encoder: one make of insert, in some layers (1 to L), begun from the run's seed."""

    make: InsertConfig
    layers: tuple[int, ...]
    seed: int

    def into(self, encoder: Encoder) -> None:
        """Put them into a pretrained encoder; see `insert`."""
        with seeded(self.seed, "inserts"):
            insert(encoder, self.make, self.layers)

    def note(self) -> dict[str, str]:
        """Return the metadata of the file of tensors, from which the inserts are rebuilt."""
        return {"inserts": canonical({"make": self.make.make(), "layers": self.layers, "seed": self.seed})}


def add_inserts(before: Inserts | None, phase: PhaseConfig, components: list[str], seed: int) -> Inserts | None:
    """Return the inserts that a run holds in a phase: those from before it, and its own.

    Raises UserError for another make than before.
    """
    if phase.insert is None:
        return before
    layers = {int(block(c).removeprefix("layer.")) for c in components if part(c) == phase.insert.kind}
    make = InsertConfig.model_validate(phase.insert.make())
    if before is not None and before.make != make:
        raise UserError(f"a run holds inserts of one make: {make.make()} cannot be combined with {before.make.make()}")
    return Inserts(make, tuple(sorted(layers | set(before.layers if before else ()))), seed)


def read_insert_metadata(path: Path) -> Inserts | None:
    """Return the inserts whose tensors a run kept in a file, None where it holds none."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        note = (file.metadata() or {}).get("inserts")
    metadata = json.loads(note) if note else None
    if not metadata:
        return None
    return Inserts(InsertConfig.model_validate(metadata["make"]), tuple(metadata["layers"]), metadata["seed"])


class BottleneckAdapter(nn.Module):
    """A module with a bottleneck adapter on its output: x + up(gelu(down(x))) (Houlsby et al. 2019, section 2.1).

    It has 2md + d + m parameters. The module is a sublayer's last matrix, or, as in the paper's code, its dropout.
    """

    def __init__(self, base: nn.Module, width: int, size: int, std: float):
        """Wrap a module that returns [B, T, d]. Args: std, of the first weights, cut at two standard deviations."""
        super().__init__()
        self.base_layer = base
        self.adapter = nn.ModuleDict({"down": nn.Linear(width, size), "up": nn.Linear(size, width)})
        for matrix in self.adapter.children():
            weight, bias = matrix.parameters()
            nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)
            nn.init.zeros_(bias)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the adapted output [B, T, d]."""
        output = self.base_layer(states)
        return output + self.adapter["up"](functional.gelu(self.adapter["down"](output)))


def insert(encoder: Encoder, entry: InsertConfig, layers: Iterable[int]) -> None:
    """Put inserts into some layers (1 to L) of a pretrained encoder; their first values are torch's next random ones.

    Raises UserError where the architecture keeps in one matrix what the insert would treat separately.
    """
    paths, outer = [], []
    for layer in layers:
        sublayers, start = encoder.sublayers[layer - 1], f"{encoder.anatomy.layers}.{layer - 1}."
        paths += [start + path for path in _targets(sublayers, entry, encoder.model.config.model_type)]
        outer.append(f"{start}{sublayers.outer}")
    if entry.kind == "adapters":
        for path in paths if entry.place == "matrix" else [_dropout_after(encoder.model, path) for path in paths]:
            owner, _, name = path.rpartition(".")
            module = encoder.model.get_submodule(path)
            adapter = BottleneckAdapter(module, encoder.width, entry.size, entry.std)
            setattr(encoder.model.get_submodule(owner), name, adapter)
    elif paths:
        _inject(encoder.model, entry, paths, outer)


def merge(model: nn.Module) -> None:
    """Merge LoRA and IA3 into their weight matrices and remove them; UserError for adapters, which cannot be merged."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for path, module in list(model.named_modules()):
        if isinstance(module, BottleneckAdapter):
            raise UserError(
                "adapters can not be merged into the weights, since there is a GELU in each, so the model has no plain "
                "Hugging Face form; export a run with LoRA, IA3 or no inserts"
            )
        if isinstance(module, BaseTunerLayer):
            module.merge()
            owner, _, name = path.rpartition(".")
            setattr(model.get_submodule(owner), name, module.get_base_layer())


def _targets(sublayers: Sublayers, entry: InsertConfig, kind: str) -> list[str]:
    if entry.kind == "adapters":
        paths = [sublayers.output, sublayers.outer]
    elif entry.kind == "ia3":
        paths = [sublayers.roles.get("k"), sublayers.roles.get("v"), sublayers.outer]
    elif entry.targets == "query_value" and sublayers.fused:
        paths = [sublayers.fused]
    elif entry.targets == "query_value":
        paths = [sublayers.roles.get("q"), sublayers.roles.get("v")]
    else:
        chosen = ("attention", "feed_forward") if entry.targets == "all" else (entry.targets,)
        paths = [path for part in chosen for path in getattr(sublayers, part)]
    found = [path for path in paths if path is not None]
    if len(found) < len(paths) or not paths:
        other = ", or targets: attention" if entry.kind == "lora" else ""
        raise UserError(f"insert: {entry.kind}: {kind} has no separate matrices for it; choose another insert{other}")
    return found


def _dropout_after(model: Any, path: str) -> str:
    owner, _, name = path.rpartition(".")
    if name != "dense" or not isinstance(getattr(model.get_submodule(owner), "dropout", None), nn.Dropout):
        raise UserError(
            f"insert: place: dropout: {model.config.model_type} has no dropout of its own after {path}; leave out place"
        )
    return f"{owner}.dropout"


def _inject(model: nn.Module, entry: InsertConfig, paths: list[str], outer: list[str]) -> None:
    """Let peft put LoRA (Hu et al. 2022) or IA3 (Liu et al. 2022) on matrices; IA3 scales the input of `outer` ones."""
    from peft import IA3Config, LoraConfig, inject_adapter_in_model

    transposed = any(type(model.get_submodule(path)).__name__ == "Conv1D" for path in paths)
    if entry.kind == "lora":
        scale: Any = entry.alpha  # peft divides it by the rank, and takes any number
        config: Any = LoraConfig(
            r=entry.rank,
            lora_alpha=scale,
            target_modules=paths,
            fan_in_fan_out=transposed,
            use_dora=entry.variant == "dora",
            use_rslora=entry.variant == "rslora",
        )
    else:
        config = IA3Config(target_modules=paths, feedforward_modules=outer, fan_in_fan_out=transposed)
    inject_adapter_in_model(config, model)
