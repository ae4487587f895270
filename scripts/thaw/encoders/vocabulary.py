"""An embedding table cut to the rows that some data uses: the others would have no gradient, and cost as much.

V tokens of the vocabulary, U of them used, d width.
"""

import torch
from torch import nn
from torch.nn import functional


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
        """How many numbers of the table are left out."""
        return self.whole.numel() - self.weight.numel()


def keep_rows(model: nn.Module, used: torch.Tensor) -> UsedRows | None:
    """Cut a model's table of word embeddings to some tokens, int64 [U]; None for a model that names no such table."""
    table = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    if type(table) is not nn.Embedding:
        return None
    path = next(path for path, module in model.named_modules() if module is table)
    rows = UsedRows(table, used)
    model.set_submodule(path, rows)
    return rows
