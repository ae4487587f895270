"""The sublayers of a layer: attention, feed-forward, norms and biases, identified by shapes and the letters q, k, v.

d width, H heads. A matrix is stored [out, in], in GPT-2's Conv1D [in, out].
"""

import re
from dataclasses import dataclass

from torch import nn

from thaw.core.errors import UserError

ROLE = re.compile(r"(q|k|v)$|(q|k|v)_\w+$|(q)uery(_\w+)?$|(k)ey(_\w+)?$|(v)alue(_\w+)?$")
FUSED = ("Wqkv", "c_attn")  # ModernBERT's and GPT-2's, of which it is known: queries, keys, values, a third each


@dataclass(frozen=True)
class Slice:
    """Some outputs of a matrix or bias, or inputs of a matrix, by their places along one dimension."""

    module: str
    tensor: str
    dimension: int
    places: list[int]


class Sublayers:
    """The matrices of one layer by what they do; paths are within the layer.

    roles: q, k and v -> path, where each has a matrix of its own; fused: path of one that holds all three.
    attention: paths of all matrices of attention, `output` the last of them; feed_forward: those of all other
    matrices, `outer` the last of them. Empty where the layer has none, as FNet's has no attention.
    """

    def __init__(self, layer: nn.Module):
        """Look at a layer as it was pretrained, before anything is inserted."""
        modules = {path: module for path, module in layer.named_modules() if is_matrix(module)}
        self.sizes = {path: _sizes(module) for path, module in modules.items()}
        self.transposed = {path for path, module in modules.items() if _is_transposed(module)}
        self.biased = {path for path, module in modules.items() if module.bias is not None}
        matrices = list(modules)
        named = [(ROLE.match(path.rpartition(".")[2]), path) for path in matrices]
        self.roles: dict[str, str] = {next(filter(None, match.groups())): path for match, path in named if match}
        self.fused = next((path for path in matrices if path.rpartition(".")[2] in FUSED), None)
        first = self.roles.get("q") or self.fused
        within = first.partition(".")[0] + "." if first else None
        self.attention = [path for path in matrices if first and path.startswith(within)]
        self.feed_forward = [path for path in matrices if path not in self.attention]
        self.output = self.attention[-1] if self.attention else None
        self.outer = self.feed_forward[-1] if self.feed_forward else None

    def words(self, path: str) -> set[str]:
        """Return which of attention, feed_forward and query_value a matrix is or is part of."""
        names = {"attention"} if path in self.attention else {"feed_forward"} if path in self.feed_forward else set()
        return names | ({"query_value"} if path in (self.roles.get("q"), self.roles.get("v")) else set())

    def query_value(self) -> list[Slice]:
        """Return the rows of the fused matrix that make queries and values; nothing where each has its own matrix."""
        if self.fused is None:
            return []
        size = self.sizes[self.fused][0] // 3
        return self._outputs(self.fused, [*range(size), *range(2 * size, 3 * size)])

    def heads(self, numbers: list[int], count: int) -> list[Slice]:
        """Return what single heads own: their rows of queries, keys and values, and their columns of the output.

        count: how many heads H there are. A head that does not exist, or shares its keys with others, is a UserError.
        """
        if wrong := [number for number in numbers if number >= count]:
            raise UserError(f"only: heads: there is no head {wrong[0]}; a layer has {count}, counted from 0")
        width = self.sizes[self.output][1] if self.output else 0
        found = [(self.roles.get(role) or self.fused, place) for place, role in enumerate("qkv")]
        expected = 3 * width if self.fused else width
        sources = [(path, place) for path, place in found if path and self.sizes[path][0] == expected]
        if not self.output or not width or sources != found:
            raise UserError("only: heads: the heads of this encoder do not have queries, keys and values of their own")
        size = width // count
        places = [number * size + i for number in numbers for i in range(size)]
        slices = []
        for path, third in sources:
            slices += self._outputs(path, [(third * width if self.fused else 0) + place for place in places])
        return [*slices, Slice(self.output, "weight", 0 if self.output in self.transposed else 1, places)]

    def _outputs(self, path: str, places: list[int]) -> list[Slice]:
        slices = [Slice(path, "weight", 1 if path in self.transposed else 0, places)]
        return [*slices, Slice(path, "bias", 0, places)] if path in self.biased else slices


def is_matrix(module: nn.Module) -> bool:
    weight = module._parameters.get("weight")
    return weight is not None and weight.ndim == 2 and not isinstance(module, nn.Embedding)


def is_norm(module: nn.Module) -> bool:
    weight = module._parameters.get("weight")
    return weight is not None and weight.ndim == 1


def _is_transposed(module: nn.Module) -> bool:
    return type(module).__name__ == "Conv1D"


def _sizes(module: nn.Module) -> tuple[int, int]:
    outputs, inputs = module.get_parameter("weight").shape
    return (inputs, outputs) if _is_transposed(module) else (outputs, inputs)
