"""How many parameters an encoder's parts have, read from the header of its weights file: neither torch nor a model.

The names of tensors say what they belong to. `Encoder.components`, which watches the model run, says the same; a test
compares them for every family of models.
"""

import re
from dataclasses import dataclass
from math import prod
from pathlib import Path

from safetensors import SafetensorError, safe_open

from thaw.core.errors import UserError
from thaw.encoders.names import WEIGHTS

LAYER = re.compile(r"(?P<list>(?:.*\.)?(?:layers?|h))\.(?P<number>\d+)\.")
WORDS = re.compile(r"(?:^|\.)(?:word_embeddings|wte|tok_embeddings|embed_tokens)\.")
POOLER = re.compile(r"(?:^|\.)pooler\.dense\.(?:weight|bias)$")
BETWEEN = re.compile(r"(?:^|\.)(?:final_norm|ln_f|norm|conv)\.")  # outside the list of layers, but part of a layer


@dataclass(frozen=True)
class ParameterCounts:
    """Numbers of parameters: of the embeddings, of all layers together, and of the pooler, 0 where none came."""

    layers: int
    embeddings: int
    in_layers: int
    pooler: int


def parameter_counts(folder) -> ParameterCounts:
    """Return how many parameters the encoder in a folder has in its parts. A broken file is a UserError."""
    sizes = _sizes(Path(folder) / WEIGHTS)
    lists: dict[str, set[str]] = {}
    for name in sizes:
        if match := LAYER.match(name):
            lists.setdefault(match["list"], set()).add(match["number"])
    path = max(lists, key=lambda one: len(lists[one]), default="")
    owner = _owner(sizes, path)
    pooler = sum(size for name, size in sizes.items() if POOLER.search(name))
    own = {
        name.removeprefix(owner): size
        for name, size in sizes.items()
        if name.startswith(owner) and not name.removeprefix(owner).startswith("pooler.")
    }
    start = f"{path.removeprefix(owner)}." if path else ""
    above = start.rpartition(".")[0].rpartition(".")[0]  # the owner of the list of layers
    inner = {name: name.removeprefix(f"{above}.") if above else name for name in own}
    inside = {name for name in own if start and (name.startswith(start) or BETWEEN.match(inner[name]))}
    in_layers = sum(own[name] for name in inside)
    return ParameterCounts(len(lists.get(path, ())), sum(own.values()) - in_layers, in_layers, pooler)


def parameters_of_layers(folder, layers) -> int:
    """Return how many parameters some layers, counted from 1, of the encoder in a folder have together."""
    sizes = {name: (LAYER.match(name), size) for name, size in _sizes(Path(folder) / WEIGHTS).items()}
    return sum(size for match, size in sizes.values() if match and int(match["number"]) + 1 in layers)


def _owner(sizes: dict[str, int], path: str) -> str:
    """Return the name before those of all the encoder's own tensors, which task models put there; often empty."""
    words = next((name for name in sizes if WORDS.search(name)), None)
    if words is None or not path:
        return ""
    first = path.partition(".")[0]
    return f"{first}." if words.startswith(f"{first}.") else ""


def _sizes(path: Path) -> dict[str, int]:
    try:
        with safe_open(path, "np") as file:
            tensors = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: its header cannot be read; delete the folder so that it is fetched again") from error
    shapes = {name: one.get_shape() for name, one in tensors.items() if one.get_dtype().startswith(("F", "BF"))}
    return {name: prod(shape) for name, shape in shapes.items() if len(shape) < 4}
