"""What a run costs: floating-point operations by our own formulas, seconds by part, peak memory.

L layers, d width, f feed-forward width, T tokens of a sequence, R relative positions, C outputs of the head.

torch's counter counts nothing for the fused attention on CPU, hence formulas. A multiplication and an
addition are two operations; only matrix products are counted: embeddings, norms and activations are not.
"""

import contextlib
import resource
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from thaw.records import UserError
from thaw.runtime import hardware, versions


@dataclass(frozen=True)
class Shape:
    """The numbers of an encoder that its cost follows from.

    `gated` feed-forward layers (ModernBERT) have a second matrix of d x f on the way in. `positions` is the
    number of products with the R relative positions per layer, times R (DeBERTa: 2 x 512; 0 elsewhere).
    """

    layers: int
    width: int
    intermediate: int
    gated: bool = False
    positions: int = 0

    @classmethod
    def of(cls, config: dict) -> "Shape":
        """Read a shape from an encoder's config.json, under any name that transformers gives the keys.

        Raises UserError where a key is missing, since an operation counted as 0 would be an error.
        """
        layers = _first(config, "num_hidden_layers", "n_layers")
        width = _first(config, "hidden_size", "dim")
        intermediate = _first(config, "intermediate_size", "hidden_dim")
        return cls(layers, width, intermediate, config.get("model_type") == "modernbert", _positions(config))


def _first(config: dict, *names: str) -> int:
    """Return the first of some keys of a configuration."""
    for name in names:
        if config.get(name):
            return int(config[name])
    raise UserError(f"the encoder's config.json has none of {', '.join(names)}; its cost cannot be counted")


def _positions(config: dict) -> int:
    """Return DeBERTa-v2's kinds of products with relative positions times the number of these."""
    if not config.get("relative_attention"):
        return 0
    spans = (config.get(name, -1) for name in ("position_buckets", "max_relative_positions"))
    span = next((span for span in spans if span > 0), config.get("max_position_embeddings", 0))
    kinds = config.get("pos_att_type") or []
    return 2 * span * len(kinds.split("|") if isinstance(kinds, str) else kinds)


def _weights(shape: Shape, tokens: int) -> int:
    """Return one layer's products with weights: queries, keys, values, output, and the feed-forward part."""
    return 8 * tokens * shape.width**2 + (6 if shape.gated else 4) * tokens * shape.width * shape.intermediate


def _attention(shape: Shape, tokens: int) -> int:
    """Return one layer's products of states with each other: scores, weighted values, relative positions."""
    return 4 * tokens**2 * shape.width + 2 * tokens * shape.positions * shape.width


def layer_flops(shape: Shape, tokens: int) -> float:
    """Return the forward operations of one layer over one sequence of `tokens` tokens."""
    return float(_weights(shape, tokens) + _attention(shape, tokens))


def encoder_flops(shape: Shape, lengths: Iterable[int], boundary: int | None = None) -> float:
    """Return the forward operations of all layers above a boundary over sequences of these padded lengths."""
    return (shape.layers - (boundary or 0)) * sum(layer_flops(shape, int(tokens)) for tokens in lengths)


def training_flops(shape: Shape, lengths: Iterable[int], boundary: int | None, components: Iterable[str]) -> float:
    """Return the operations of training an encoder once on sequences of these padded lengths, head apart.

    Layers up to the boundary (None: from text) are not computed. Going backward, a layer with something
    trained in it or below it costs once its forward products for the gradient of its input, twice those of
    states with each other, and once its products with weights where these train. The lowest trained layer
    needs no gradient of its own input. With everything trained this is the usual three times the forward
    cost.
    """
    components = set(components)
    trained = [n for n in range(1, shape.layers + 1) if f"layer.{n}" in components]
    from_embeddings = "embeddings" in components
    lowest = 0 if from_embeddings else min(trained, default=shape.layers + 1)
    crossed = shape.layers - max(lowest, 1) + 1
    total = 0
    for tokens in (int(tokens) for tokens in lengths):
        weights, attention = _weights(shape, tokens), _attention(shape, tokens)
        forward = (shape.layers - (boundary or 0)) * (weights + attention)
        backward = crossed * (weights + 2 * attention) + len(trained) * weights
        saved = 6 * tokens * shape.width**2 if trained and not from_embeddings else 0
        total += forward + backward - saved
    return float(total)


def head_flops(width: int, outputs: int, vectors: int) -> float:
    """Return the forward operations of a linear head on so many vectors; training costs three times that."""
    return float(2 * width * outputs * vectors)


class Stopwatch:
    """Seconds by part: `with watch("train"): ...` adds to a part, `seconds()` gives all and their total."""

    def __init__(self):
        self.start = time.perf_counter()
        self.parts: dict[str, float] = {"load": 0.0, "train": 0.0, "evaluate": 0.0}

    @contextlib.contextmanager
    def __call__(self, part: str):
        """Add the time spent inside to a part; CUDA work is waited for."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            _wait_for_device()
            self.parts[part] = self.parts.get(part, 0.0) + time.perf_counter() - begin

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each part, to the millisecond, and the total since the watch was made."""
        parts = self.parts | {"total": time.perf_counter() - self.start}
        return {part: round(seconds, 3) for part, seconds in parts.items()}


def measured(watch: Stopwatch, device) -> dict:
    """Return what a run took and where, as it stands in cost.json: seconds, peak memory, versions, hardware, date."""
    return {
        "seconds": watch.seconds(),
        "peak_memory_mb": peak_memory_mb(),
        "versions": versions(),
        "hardware": hardware(device),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _wait_for_device() -> None:
    """Wait until all CUDA work queued so far is done; on CPU there is nothing to wait for."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def peak_memory_mb() -> float:
    """Return the largest memory in MiB since the start, CUDA's if it is used, else the process's."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return round(torch.cuda.max_memory_allocated() / 2**20, 1)
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20, 1)
