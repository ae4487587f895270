"""The components of an encoder and the parameters of each: layers, embeddings, their parts, and what was inserted.

L layers. Names of components are those of `thaw.adaptation.selectors`; names of parameters those of the pretrained
model, whatever was wrapped around them since.
"""

import re
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrize

from thaw.core.errors import UserError
from thaw.encoders.anatomy import Anatomy
from thaw.encoders.sublayers import Slice, Sublayers, is_norm


class UsedRows(nn.Module):
    """Replaces an embedding table [V, d]; its parameter holds only the rows [U, d] of used tokens.

    Its vectors of these tokens are the table's, and so is every update but for the weight decay of rows that nobody
    reads; another token is an IndexError.
    """

    def __init__(self, table: nn.Embedding, used: torch.Tensor):
        """Take the rows of some tokens, int64 [U] in rising order, out of a table."""
        super().__init__()
        used, pad = used.to(table.weight.device), table.padding_idx
        places = torch.full([table.num_embeddings], -1, device=used.device)
        places[used] = torch.arange(len(used), device=used.device)
        self.weight = nn.Parameter(table.weight.detach()[used])
        self.padding = None if pad is None or places[pad] < 0 else int(places[pad])
        self.whole: torch.Tensor
        self.used: torch.Tensor
        self.places: torch.Tensor
        for name, value in (("whole", table.weight.detach()), ("used", used), ("places", places)):
            self.register_buffer(name, value, persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the vectors [B, T, d] of token ids [B, T]."""
        return functional.embedding(self.places[ids], self.weight, self.padding)

    def table(self) -> torch.Tensor:
        """Return the table [V, d] with the rows in their places."""
        return self.whole.index_copy(0, self.used, self.weight.detach())

    @property
    def unused(self) -> int:
        return self.whole.numel() - self.weight.numel()


def keep_rows(model: Any, used: torch.Tensor) -> UsedRows | None:
    """Cut a model's table of word embeddings to some tokens, int64 [U]; None for a model that names no such table."""
    table = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    if type(table) is not nn.Embedding:
        return None
    path = next(path for path, module in model.named_modules() if module is table)
    rows = UsedRows(table, used)
    model.set_submodule(path, rows)
    return rows


class Rows(nn.Module):
    """Puts trained values into their places in a frozen tensor, each time that it is read."""

    def __init__(self, whole: torch.Tensor, dimension: int, places: list[int]):
        """Begin with the values that the tensor has; `places` along one of its dimensions."""
        super().__init__()
        self.dimension = dimension
        self.places: torch.Tensor
        self.register_buffer("places", torch.tensor(places, device=whole.device))
        self.values = nn.Parameter(whole.detach().index_select(dimension, self.places))

    def forward(self, whole: torch.Tensor) -> torch.Tensor:
        """Return the tensor with the values in their places."""
        return whole.index_copy(self.dimension, self.places, self.values)


ROWS = re.compile(r"\.parametrizations\.\w+\.\d+\.")  # in the names of values that train in a frozen tensor
INSERTED = {"lora": ".lora_", "ia3": ".ia3_", "adapters": ".adapter."}  # what the names of inserted parameters hold

Named = list[tuple[str, nn.Parameter]]


class Components(nn.Module):
    """A model whose parameters are found by component, and train or stay."""

    def __init__(self, model: Any, anatomy: Anatomy):
        """Look at a model as it was pretrained; `sublayers` say what each of its layers is made of."""
        super().__init__()
        self.model: Any = model  # torch types what hangs on a module as a tensor or a module
        self.anatomy = anatomy
        layers: Any = model.get_submodule(anatomy.layers)
        self.sublayers = [Sublayers(layer) for layer in layers]
        self.parts = {name: self._parts(name) for name, _ in model.named_parameters()}
        self.highest = len(layers)  # the highest layer that is kept
        self.opened: dict[str, list[tuple[str, nn.Module, str, nn.Parameter]]] = {}

    def whole(self) -> dict[str, Named]:
        """Return the parameters of each block from below: `embeddings`, `layer.1` to `layer.L`, with what is inserted.

        A frozen matrix with trainable rows is listed in its original form. What follows the last layer, as a final
        norm, belongs to the highest one that is kept.
        """
        blocks: dict[int, Named] = {}
        for name, parameter in self.model.named_parameters():
            if not ROWS.search(name):
                plain = re.sub(r"\.parametrizations\.(\w+)\.original$", r".\1", name.replace(".base_layer", ""))
                layer = min(self.anatomy.component(plain), self.highest)
                blocks.setdefault(layer, []).append((plain, parameter))
        return {f"layer.{layer}" if layer else "embeddings": blocks[layer] for layer in sorted(blocks)}

    def of(self, names) -> dict[str, Named]:
        """Return the parameters of some components, each parameter once, with the first that has it.

        A block that the encoder lacks is a UserError.
        """
        blocks, taken = self.whole(), set[int]()
        selected: dict[str, Named] = {}
        for component in names:
            block, _, part = component.partition(":")
            if block not in blocks:
                raise UserError(f"the encoder has no {block} to thaw; it has {', '.join(blocks)}")
            named = [(name, p) for name, p in blocks[block] if not part or self._is(name, part)]
            named += [(name, p) for name, _, _, p in self.opened.get(component, [])]
            selected[component] = [(name, p) for name, p in named if id(p) not in taken]
            taken.update(id(p) for _, p in named)
        return selected

    def thaw(self, names) -> None:
        """Let exactly these components train; a part that none of its layers has is a UserError.

        Rows of a frozen matrix get parameters of their own the first time that they are named, and keep them.
        """
        entire = {id(parameter) for named in self.of(names).values() for _, parameter in named}
        for component in set(names) - set(self.opened):
            for path, piece in self._slices(component):
                module = self.model.get_submodule(path)
                if id(getattr(module, piece.tensor)) not in entire:
                    rows = Rows(getattr(module, piece.tensor), piece.dimension, piece.places)
                    parametrize.register_parametrization(module, piece.tensor, rows)
                    entry = (f"{path}.{piece.tensor}", module, piece.tensor, rows.values)
                    self.opened.setdefault(component, []).append(entry)
        selected = self.of(names)
        for part in {component.partition(":")[2] for component in names} - {""}:
            if not any(named for component, named in selected.items() if component.endswith(f":{part}")):
                raise UserError(f"{self.model.config.model_type} has no {part} that could train; choose another only:")
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
        for named in selected.values():
            for _, parameter in named:
                parameter.requires_grad_(True)

    def tensors(self, names) -> dict:
        """Return the tensors, whole and on the CPU, that training some components has changed, by name."""
        tensors: dict[str, torch.Tensor] = {name: value for named in self.of(names).values() for name, value in named}
        opened = [entry for component in names for entry in self.opened.get(component, [])]
        tensors |= {name: getattr(module, tensor) for name, module, tensor, _ in opened}
        cut = {f"{path}.weight": module for path, module in self.model.named_modules() if isinstance(module, UsedRows)}
        tensors |= {name: cut[name].table() for name in tensors.keys() & cut.keys()}
        return {name: value.detach().cpu() for name, value in tensors.items()}

    def put(self, tensors: dict) -> None:
        """Give parameters of these names the values that they were trained to; see `tensors`.

        A name or shape that the encoder lacks is a UserError.
        """
        parameters = {name: parameter for named in self.whole().values() for name, parameter in named}
        for name, tensor in tensors.items():
            if name not in parameters or parameters[name].shape != tensor.shape:
                raise UserError(f"the encoder has no tensor {name} of shape {list(tensor.shape)}, which was trained")
            with torch.no_grad():
                parameters[name].copy_(tensor)

    def inserted(self) -> Named:
        return [(n, p) for named in self.whole().values() for n, p in named if n not in self.parts]

    def _is(self, name: str, part: str) -> bool:
        return INSERTED[part] in name if part in INSERTED else part in self.parts.get(name, ())

    def _parts(self, name: str) -> set[str]:
        path, _, tensor = name.rpartition(".")
        parts = {"bias"} if tensor.endswith("bias") else set()
        if is_norm(self.model.get_submodule(path)):
            parts.add("norm")
        if path.startswith(self.anatomy.layers + "."):
            position, _, inner = path.removeprefix(self.anatomy.layers + ".").partition(".")
            parts |= self.sublayers[int(position)].words(inner)
        return parts

    def _slices(self, component: str) -> list[tuple[str, Slice]]:
        """Return the module's path and the slice of each piece of a matrix that a component names."""
        block, _, part = component.partition(":")
        if part != "query_value" and not part.startswith("heads."):
            return []
        position = int(block.removeprefix("layer.")) - 1
        numbers = [int(number) for number in part.split(".")[1:]]
        sublayers = self.sublayers[position]
        count = self.model.config.num_attention_heads
        pieces = sublayers.heads(numbers, count) if numbers else sublayers.query_value()
        return [(f"{self.anatomy.layers}.{position}.{piece.module}", piece) for piece in pieces]
