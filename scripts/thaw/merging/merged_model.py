"""The tasks of this folder on one trunk. It needs torch, transformers and safetensors, and nothing else.

    from model import Model
    Model().predict(["a text", "another"])            # {task: [labels]}; tasks=["..."] names some of them

The trunk is the encoder's lower layers, which tasks share; each task has a branch: layers of its own and a
head. For tasks that read the same input, the trunk runs once. As a program it reads a JSON object a line,
{"texts": [...], "tasks": [...]}, and writes {task: [{"prediction", "probabilities"}, ...]}.

B examples, S sequences (B; 2B where the texts of a pair are read separately), T tokens, d width, L layers.
"""

import contextlib
import copy
import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

from thaw.encoders import resume
from thaw.exporting import standalone_model

WHAT = {"text": "strings", "pair": "lists of two strings", "words": "lists of words"}


class StopLayers(Exception):
    """Ends a forward pass at the highest boundary that is wanted."""


class Trunk:
    """The lower layers of the encoder: gives the hidden states at the boundaries where branches begin."""

    def __init__(self, model: nn.Module, anatomy, depth: int):
        """Keep the first `depth` layers. Args: the whole architecture, with the trunk's tensors; what it is made of."""
        layers: Any = model.get_submodule(anatomy.layers)
        self.model, self.layers = model, layers
        for position in range(depth, len(self.layers)):
            self.layers[position] = resume.IdentityLayer(self.layers[position], anatomy.form)
        self._wanted: set[int] = set()
        self._states: dict[int, torch.Tensor] = {}
        for boundary, layer in enumerate(self.layers):
            layer.register_forward_pre_hook(
                lambda layer, inputs, named, n=boundary: self._keep(n, inputs, named), with_kwargs=True
            )

    def states(self, inputs, wanted: set[int]) -> dict[int, torch.Tensor]:
        """Return the states [S, T, d] at some boundaries; no layer above the highest is run."""
        self._wanted, self._states = wanted, {}
        with contextlib.suppress(StopLayers):
            self._states[len(self.layers)] = self.model(**inputs)[0]
        return self._states

    def _keep(self, boundary: int, inputs: tuple, named: dict) -> None:
        if boundary in self._wanted:
            self._states[boundary] = inputs[0] if inputs else named["hidden_states"]
            if boundary == max(self._wanted):
                raise StopLayers


class OwnLayers:
    """The layers of a branch, as the whole architecture with stubs in the place of all others."""

    def __init__(self, model: nn.Module, anatomy, start: int, own: list[int], top: int):
        """Start at a boundary. Args: the layers to run, counted from 1; the boundary that the head reads."""
        layers: Any = model.get_submodule(anatomy.layers)
        self.model, self.layers = model, layers
        for position, layer in enumerate(self.layers):
            if position + 1 not in own:
                self.layers[position] = resume.IdentityLayer(layer, anatomy.form)
        self._entry = resume.StateInjector()
        self._read: list[torch.Tensor] = []
        resume.truncate_below(model, anatomy, start, self._entry)
        if top < len(self.layers):
            self.layers[top].register_forward_pre_hook(self._stop, with_kwargs=True)

    def __call__(self, inputs, state: torch.Tensor) -> torch.Tensor:
        """Return the state [S, T, d] at the top of the branch from that at its start."""
        self._entry.state = state
        try:
            return self.model(**inputs)[0]
        except StopLayers:
            return self._read.pop()
        finally:
            self._entry.state = None

    def _stop(self, layer, inputs: tuple, named: dict) -> None:
        self._read.append(inputs[0] if inputs else named["hidden_states"])
        raise StopLayers


class TaskBranch(standalone_model.Model):
    """A task's own layers and head: an exported model whose encoder begins at a state of the trunk."""

    exits = None  # all of its layers run

    def __init__(self, about: dict, tokenizer, device, own_layers: OwnLayers | None, head: dict):
        """Take what the folder holds. Args: branch.json; own_layers, None for a head on the trunk itself."""
        self._describe(about)
        self.kind, self.pooling, self.layers = about["head"]["kind"], about["head"]["pooling"], None
        self.frozen, self.own = about["frozen"], about["layers"]
        self.tokenizer, self.device, self.own_layers, self.head = tokenizer, device, own_layers, head
        self.start: torch.Tensor | None = None

    @property
    def input(self) -> tuple:
        """What decides on a text's tokens: tasks with the same share a pass."""
        return self.reads, self.separate_encoding, self.max_length

    def logits(self, inputs, start: torch.Tensor) -> torch.Tensor:
        """Return the outputs [B, C], or [B, T, C] for words, from the trunk's state [S, T, d] where the branch begins.

        Args: inputs, as they were read by the trunk.
        """
        self.start = start
        return self._logits(inputs)

    def _states(self, inputs) -> torch.Tensor:
        assert self.start is not None, "logits gives it"
        return self.own_layers(inputs, self.start) if self.own_layers else self.start


class MergedModel:
    """All tasks of a folder, in fp32, on the GPU where there is one; it may be called by several threads."""

    def __init__(self, folder=Path(__file__).parent):
        """Load the folder of this file, or another folder with the same files."""
        folder = Path(folder)
        about = json.loads((folder / "thaw.json").read_text(encoding="utf-8"))
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._anatomy = SimpleNamespace(**about["anatomy"])
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        whole = AutoModel.from_config(config, dtype=torch.float32).eval()
        if hasattr(whole, "pooler"):
            whole.pooler = None
        # branches too read what the trunk has outside its layers, as DeBERTa's embeddings of distances
        whole = _filled(whole, folder / "trunk.safetensors").to(self.device)
        self.trunk = Trunk(_sharing(whole), self._anatomy, about["trunk"]["layers"])
        self.branches = {task: self._branch(whole, folder, task) for task in about["tasks"]}
        self._lock = threading.Lock()

    @property
    def tasks(self) -> dict[str, dict]:
        """What each task reads, its labels (none: it gives scores), its layers."""
        return {
            name: {"reads": one.reads, "labels": one.labels, "frozen": one.frozen, "own": len(one.own)}
            for name, one in self.branches.items()
        }

    def predict(self, texts: list, tasks: list[str] | None = None) -> dict[str, list]:
        """Return for each task its labels, scores, or lists of tags of all texts; as `predict_with_probabilities`."""
        every = self.predict_with_probabilities(texts, tasks)
        return {task: [one["prediction"] for one in predictions] for task, predictions in every.items()}

    def predict_with_probabilities(self, texts: list, tasks: list[str] | None = None) -> dict[str, list[dict]]:
        """Return for each task {"prediction", "probabilities"} of all texts, in order.

        Without `tasks` all tasks of the folder are meant. Probabilities, and "cut" of a text that was cut, are as those
        of one exported model. Raises ValueError for an unknown task, for tasks of which one reads texts and another
        pairs or words, and for texts that a task does not read.
        """
        names = list(dict.fromkeys(self.branches if tasks is None else tasks))
        check(texts, names, {name: branch.reads for name, branch in self.branches.items()})
        groups: dict[tuple, list[str]] = {}
        for name in names:
            groups.setdefault(self.branches[name].input, []).append(name)
        predictions: dict[str, list[dict]] = {name: [{}] * len(texts) for name in names}
        for group in groups.values():
            for rows in _batches(texts):
                for name, some in self._batch([texts[row] for row in rows], group).items():
                    for row, prediction in zip(rows, some, strict=True):
                        predictions[name][row] = prediction
        return predictions

    @torch.inference_mode()
    def logits(self, inputs, names: list[str]) -> dict[str, torch.Tensor]:
        """Return the outputs of some tasks, which read the same tokens: the trunk runs once, then each branch."""
        branches = {name: self.branches[name] for name in names}
        with self._lock:
            states = self.trunk.states(inputs, {branch.frozen for branch in branches.values()})
            return {name: branch.logits(inputs, states[branch.frozen]) for name, branch in branches.items()}

    def _batch(self, texts: list, names: list[str]) -> dict[str, list[dict]]:
        inputs = self.branches[names[0]]._inputs(texts)
        logits = self.logits(inputs, names)
        return {name: self.branches[name]._predictions(texts, inputs, logits[name]) for name in names}

    def _branch(self, whole: nn.Module, folder: Path, task: str) -> TaskBranch:
        place = folder / "branches" / task
        about = json.loads((place / "branch.json").read_text(encoding="utf-8"))
        own = None
        if about["layers"] or about["top"] > about["frozen"]:
            filled = _filled(whole, place / "layers.safetensors").to(self.device)
            own = OwnLayers(filled, self._anatomy, about["frozen"], about["layers"], about["top"])
        words = folder / "words" if about["reads"] == "words" else folder
        tokenizer = AutoTokenizer.from_pretrained(words, local_files_only=True)
        head = load_file(place / "head.safetensors", device=str(self.device))
        return TaskBranch(about, tokenizer, self.device, own, head)


Model = MergedModel  # as in the folder of one task


def _sharing(whole: nn.Module) -> nn.Module:
    """Return a copy of a model that shares its parameters."""
    return copy.deepcopy(whole, {id(parameter): parameter for parameter in whole.parameters()})


def _filled(whole: nn.Module, path: Path) -> nn.Module:
    """Return a copy of a model with the tensors of a file in place; all others it shares with the original."""
    model = _sharing(whole)
    unknown = model.load_state_dict(load_file(path), strict=False, assign=True).unexpected_keys
    if unknown:
        raise ValueError(f"{path}: the model of config.json has no {unknown[0]}")
    return model


def _batches(texts: list):
    """Yield the positions of the texts of each batch, as the model of one task reads them."""
    for first in range(0, len(texts), standalone_model.AT_ONCE):
        some = range(first, min(len(texts), first + standalone_model.AT_ONCE))
        order = sorted(some, key=lambda row: standalone_model._length(texts[row]))
        for start in range(0, len(order), standalone_model.BATCH):
            yield order[start : start + standalone_model.BATCH]


def check(texts: list, names: list[str], reads: dict[str, str]) -> None:
    """Raise ValueError, with one sentence, for an unknown task, tasks that read different things, or wrong texts.

    Args: the tasks that are asked for; by task what it reads, a key of `WHAT`.
    """
    if unknown := [name for name in names if name not in reads]:
        raise ValueError(f"there is no task {unknown[0]!r}; there are {', '.join(sorted(reads))}")
    if not names:
        raise ValueError("name one task or more")
    if not isinstance(texts, list) or not texts:
        raise ValueError("texts must be a list with one text or more")
    first = names[0]
    if other := next((name for name in names if reads[name] != reads[first]), None):  # a pair may be two words
        ways = f"{first} reads {WHAT[reads[first]]}, {other} {WHAT[reads[other]]}"
        raise ValueError(f"{ways}; name only tasks that read the same")
    for name in names:
        if wrong := [text for text in texts if not is_read(text, reads[name])]:
            raise ValueError(f"{name} reads {WHAT[reads[name]]}, not {str(wrong[0])[:40]!r}")


def is_read(text, reads: str) -> bool:
    """Return whether a text has the form that a task reads."""
    if reads == "text":
        return isinstance(text, str)
    listed = isinstance(text, list | tuple) and all(isinstance(part, str) for part in text)
    return listed and (len(text) == 2 if reads == "pair" else len(text) > 0)


if __name__ == "__main__":
    model = Model()
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(model.predict_with_probabilities(request["texts"], request.get("tasks"))), flush=True)
