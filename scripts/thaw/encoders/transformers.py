"""A pretrained transformer that can be started at any boundary, with no code of its own per architecture.

B examples, T tokens, d width, L layers. Boundary 0 is the embeddings' output, boundary n the output of layer n,
boundary L the last hidden state.
"""

import contextlib
from typing import Any

import torch
from torch import nn

from thaw.core.errors import UserError
from thaw.encoders import dropout, fast_attention
from thaw.encoders.anatomy import inspect_architecture
from thaw.encoders.components import Components, UsedRows, keep_rows
from thaw.encoders.registry import load_model
from thaw.encoders.resume import StateInjector, drop_layers, truncate_below


class StopForward(Exception):
    """Ends a forward pass at the highest boundary that anybody reads."""


class Encoder(Components):
    """An encoder in fp32 with its layers laid open. It comes frozen: in eval mode, without gradients.

    `states` are computed in its `states_precision`: "fp32", or "bf16" under autocast.
    """

    def __init__(self, model: Any):
        dropout.replace(model)
        fast_attention.replace(model)
        super().__init__(model, inspect_architecture(model))
        self.states_precision = "fp32"
        self.layers: int = model.config.num_hidden_layers
        self.width: int = model.config.hidden_size
        self.start: int | None = None
        self.most_bytes: float | None = None  # that a batch may leave for the way back
        self._rows: UsedRows | None = None
        self._entry = StateInjector()
        self._hooks: list = []
        self.thaw(set())
        self.eval()

    @classmethod
    def load(cls, folder) -> "Encoder":
        """Return the encoder of a folder as fetch writes it, of any kind; whatever is no encoder is a UserError."""
        return cls(load_model(folder))

    def shorten(self, kept: list[int]) -> "Encoder":
        """Keep some layers, counted from 1, permanently; the others pass their input on, and boundaries stay."""
        drop_layers(self.model, self.anatomy, kept)
        self.highest = kept[-1]
        return self

    def resume_at(self, start: int | None) -> "Encoder":
        """Remove the layers below boundary `start` (0 to L - 1) permanently; None keeps the whole encoder, from text.

        At boundary L there is nothing to resume: a head reads the state itself.
        """
        if start is None and self.start is None:
            return self
        if start is None or not (self.start or 0) <= start < self.layers:
            now = "text" if self.start is None else f"boundary {self.start}"
            raise UserError(f"an encoder of {self.layers} layers that starts at {now} can not start at {start}")
        for hook in self._hooks:
            hook.remove()
        self._hooks = truncate_below(self.model, self.anatomy, start, self._entry)
        self.start = start
        return self

    def forward(self, batch, state: torch.Tensor | None = None) -> torch.Tensor:
        """Return the last hidden state [B, T, d], from token ids or, when resumed, from the state [B, T, d]."""
        if (state is None) != (self.start is None):
            raise ValueError(f"this encoder starts at {self.start}: state must {'not ' * (state is not None)}be given")
        self._entry.state = state
        try:
            with fast_attention.reading(batch):
                return self.model(**self.inputs(batch))[0]
        finally:
            self._entry.state = None

    def compute_boundaries(
        self, batch, wanted: list[int], state: torch.Tensor | None = None
    ) -> dict[int, torch.Tensor]:
        """Return some boundaries above the start, each [B, T, d]; layers above the highest are not run.

        Mode and gradients are the caller's; state [B, T, d] where the encoder is resumed, as for a call.
        """
        states = {}

        def keep(boundary: int):
            def note(module, inputs, named):
                states[boundary] = inputs[0] if inputs else named["hidden_states"]
                if boundary == max(wanted):
                    raise StopForward

            return note

        layers = self.model.get_submodule(self.anatomy.layers)
        hooks = [layers[n].register_forward_pre_hook(keep(n), with_kwargs=True) for n in wanted if n < self.layers]
        try:
            states[self.layers] = self(batch, state)
        except StopForward:
            pass
        finally:
            for hook in hooks:
                hook.remove()
        return {n: states[n] for n in wanted}

    @contextlib.contextmanager
    def recording(self, layers: list[int]):
        """Give, after a pass within the context, {layer: its queries, keys and values, each [B, h, T, e]}.

        Raises UserError where a layer has no attention that can be recorded.
        """
        every = self.model.get_submodule(self.anatomy.layers)
        with fast_attention.recording({n: every[n - 1] for n in layers}) as recorder:
            yield recorder.taken
        whole = [n for n, inputs in recorder.taken.items() if len({x.shape for x in inputs}) == 1]
        if missing := set(layers) - set(whole):
            raise UserError(
                f"{self.model.config.model_type}: layer {min(missing)} has no queries, keys and values of one size; "
                "leave out distil: attention:"
            )

    @torch.no_grad()
    def states(self, batch, wanted: list[int]) -> dict[int, torch.Tensor]:
        """Return the boundaries asked for, fp32 [B, T, d], in eval mode; layers above the highest are not run."""
        training = self.training
        self.eval()
        try:
            kind = batch.mask.device.type
            with torch.autocast(kind, torch.bfloat16) if self.states_precision == "bf16" else contextlib.nullcontext():
                by_boundary = self.compute_boundaries(batch, wanted)
            return {n: state.float() for n, state in by_boundary.items()}
        finally:
            self.train(training)

    def boundaries(self, batch) -> list[torch.Tensor]:
        """Return all L + 1 boundaries, each [B, T, d], without gradient, in eval mode."""
        return list(self.states(batch, list(range(self.layers + 1))).values())

    def components(self, names=None) -> dict[str, list[tuple[str, nn.Parameter]]]:
        """Return some components (see `thaw.adaptation.selectors`) with the names and parameters of each.

        Without names: what can be thawed, from below: `embeddings`, `layer.1` to `layer.L`. Layers below the boundary
        that the encoder was resumed at are gone. Relative position embeddings that all layers share (MPNet, DeBERTa)
        belong to `embeddings`: where they move, no boundary can be cached.
        """
        return self.whole() if names is None else self.of(names)

    def thaw(self, names, frozen_dropout: bool = False) -> None:
        """Let exactly these components train; the others keep their values, and eval mode unless frozen_dropout."""
        super().thaw(sorted(names))
        self._thawed = {component.partition(":")[0] for component in names}
        self._frozen_dropout = frozen_dropout
        self.train(self.training)

    def keep_rows(self, used: torch.Tensor) -> None:
        """Let the word embeddings of some tokens alone, int64 [U], take part in training; no other may be read.

        What `tensors` returns is still the whole table.
        """
        self._rows = keep_rows(self.model, used)

    @property
    def unused(self) -> int:
        """How many numbers of the word embeddings take no part in training, since no text here has their tokens."""
        return self._rows.unused if self._rows else 0

    @torch.no_grad()
    def reinitialise(self, count: int) -> None:
        """Give the last `count` layers the values that the model's own code begins with, from torch's generator."""
        fresh = dict(type(self.model)(self.model.config).named_parameters())
        blocks = self.components()
        for layer in range(self.layers - count + 1, self.layers + 1):
            for name, parameter in blocks[f"layer.{layer}"]:
                if name in fresh:  # what was inserted has a beginning of its own
                    parameter.copy_(fresh[name])

    def train(self, mode: bool = True) -> "Encoder":
        """Put the thawed components in training mode; frozen ones stay in eval mode, without dropout.

        A layer of which a part trains is computed in each epoch anyway: all of it is in training mode.
        """
        super().train(mode and self._frozen_dropout)
        self.training = mode
        if mode and not self._frozen_dropout:
            for name, module in self._blocks():
                module.train(name in self._thawed)
        return self

    def _blocks(self):
        """Yield component and module of all layers and of all parts around them."""
        for position, layer in enumerate(self.model.get_submodule(self.anatomy.layers)):
            yield _name(position + 1), layer
        for part, layer in self.anatomy.parts.items():
            yield _name(layer), self.model.get_submodule(part)

    def inputs(self, batch) -> dict:
        inputs = {"input_ids": batch.input_ids, "attention_mask": batch.mask.long()}
        return inputs if batch.type_ids is None else inputs | {"token_type_ids": batch.type_ids}


def _name(layer: int) -> str:
    return f"layer.{layer}" if layer else "embeddings"
