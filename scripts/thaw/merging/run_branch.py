"""The branch of a finished run: which layers it shares with the encoder of the trunk, and which are its own.

L layers. Tensors decide, not the strategy's words: what is equal to the trunk's is shared. The trunk is the pretrained
encoder, or the one that several tasks have trained together.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from thaw.adaptation.selectors import trains_embeddings
from thaw.core.branch_choice import BranchSize
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.encoders.anatomy import Anatomy
from thaw.encoders.transformers import Encoder
from thaw.evaluation.result_files import whole_task
from thaw.exporting.finished_run import FinishedRun, finished, open_run
from thaw.exporting.formats import facts, trained_encoder
from thaw.schema.head import HeadConfig
from thaw.schema.layers import OneLayerConfig

JOINT = "multi_task"  # key of the spec of a run that several tasks have trained
EMBEDDINGS_TRAINED = (
    "{run}: its embeddings were trained, so it shares no layer with other tasks; merge a run that leaves them "
    "frozen, as top-k fine-tuning does"
)


@dataclass(frozen=True)
class RunBranch:
    """What a run adds to a trunk: it begins at boundary `frozen`, runs its `own` layers, and its head reads `top`."""

    source: FinishedRun
    frozen: int
    own: list[int]
    top: int
    tensors: dict[str, torch.Tensor]

    @property
    def task(self) -> str:
        return self.source.task["id"]

    @property
    def size(self) -> BranchSize:
        return BranchSize(self.frozen, len(self.own))

    @cached_property
    def head(self) -> dict[str, torch.Tensor]:
        return load_file(self.source.run / "head.safetensors")

    @property
    def about(self) -> dict:
        """Return what the loader needs to know of it, as branch.json has it."""
        counts = {"head_parameters": sum(tensor.numel() for tensor in self.head.values())}
        said = facts(self.source, "branch", {}) | {"frozen": self.frozen, "layers": self.own, "top": self.top}
        return said | counts | {"test": recorded_score(self.source.metrics, "test")}


@dataclass(frozen=True)
class Pretrained:
    """The encoder that all runs of a merge share: as it was fetched, or as several tasks have trained it together."""

    folder: Path
    about: dict  # its name, the sha256 of its weights and of its tokenizer, and the training of several tasks, if any
    anatomy: Anatomy
    config: Any
    tensors: dict[str, torch.Tensor]
    layers: int

    @classmethod
    def load(cls, folder: Path) -> "Pretrained":
        encoder, card = Encoder.load(folder), read_json(folder / "card.json")
        tensors = {name: value.clone() for name, value in encoder.model.state_dict().items()}
        about = {"name": folder.name} | {key: card[key] for key in ("sha256", "tokenizer_sha256")}
        return cls(folder, about, encoder.anatomy, encoder.model.config, tensors, encoder.layers)

    def trained_by(self, source: FinishedRun) -> "Pretrained":
        """Return the encoder that the training of several tasks has left, of which a run is one."""
        trained = trained_encoder(source).model.state_dict()
        lead = source.spec[JOINT].get("run", source.metrics["digest"])
        return replace(self, tensors={**self.tensors, **trained}, about=self.about | {"training": lead})

    @property
    def whose(self) -> str:
        return "those of one training of several tasks" if "training" in self.about else "the pretrained encoder's"

    def up_to(self, boundary: int) -> dict[str, torch.Tensor]:
        """Return the tensors of the embeddings and of the layers below a boundary."""
        return {name: value for name, value in self.tensors.items() if self.anatomy.component(name) <= boundary}


def recorded_score(record: dict, role: str) -> dict | None:
    """Return split, metric and value of a run's main metric on validation, or on its first test split.

    None where the run has no score there. Args: its metrics.json; validation or test.
    """
    task = whole_task(record["spec"])
    split = task["validation"] if role == "validation" else next(iter(task["test"]), None)
    metric = task["metrics"][0]
    value = record["scores"].get(split, {}).get(metric)
    return None if value is None else {"split": split, "metric": metric, "value": value}


def branch_of(source: FinishedRun, pretrained: Pretrained) -> RunBranch:
    """Return the branch of a run on an encoder; one that shares no layer is a UserError."""
    (top,) = source.head.layers.reads(source.spec["layers"])
    trained, component = trained_encoder(source).model.state_dict(), pretrained.anatomy.component
    same = {name for name, value in pretrained.tensors.items() if name in trained and torch.equal(trained[name], value)}
    changed = {component(name) for name in pretrained.tensors.keys() - same}
    if 0 in changed:
        if "training" in pretrained.about:
            raise UserError(
                f"{source.run}: its embeddings are not those that several tasks have trained together, so it shares no "
                "layer with their trunk; merge it by itself"
            )
        raise UserError(EMBEDDINGS_TRAINED.format(run=source.run))
    frozen = min([top, *(layer - 1 for layer in changed)])
    kept = {component(name) for name in trained if name.startswith(pretrained.anatomy.layers + ".")}
    own = [layer for layer in range(frozen + 1, top + 1) if layer in kept]
    tensors = {name: value for name, value in trained.items() if frozen < component(name) <= top}
    return RunBranch(source, frozen, own, top, tensors)


def check_may_be_branch(run: Path) -> None:
    """Raise UserError where the record of a run says that it can be no branch, whether or not its tensors were kept.

    This comes before the tensors are asked for: nobody should train a run again to keep what is refused then.
    """
    metrics = finished(run)[2]
    spec = metrics["spec"]
    entry = HeadConfig.of_run(spec, metrics["chosen"]).layers
    if not isinstance(entry, OneLayerConfig):
        raise UserError(
            f"{run}: its head reads several layers ({entry.combine}); a branch ends in one. thaw export writes this "
            "run as a model of its own"
        )
    if JOINT not in spec and any(trains_embeddings(phase["components"]) for phase in spec["phases"]):
        raise UserError(EMBEDDINGS_TRAINED.format(run=run))


def open_branches(runs: list[Path]) -> tuple[Pretrained, list[RunBranch]]:
    """Return the encoder of some runs, and their branches; runs that do not fit together are a UserError."""
    if not runs:
        raise UserError("no run is named; name one for each task, results/runs/.../seed<n>")
    for run in runs:
        check_may_be_branch(run)
    sources = [open_run(run) for run in runs]
    tasks = [source.task["id"] for source in sources]
    if twice := [task for task in tasks if tasks.count(task) > 1]:
        raise UserError(f"{twice[0]} is the task of two of the runs; a merge has one branch for each task")
    pretrained = Pretrained.load(sources[0].encoder)
    for encoder in [source.encoder for source in sources[1:]]:
        card = read_json(encoder / "card.json")
        for key, what in (("sha256", "weights"), ("tokenizer_sha256", "tokens")):
            if card[key] != pretrained.about[key]:
                raise UserError(
                    f"{encoder.name} has other {what} than {pretrained.about['name']}, the encoder of "
                    f"{sources[0].run}; only runs of one encoder share a trunk"
                )
    if joint := next((source for source in sources if JOINT in source.spec), None):
        pretrained = pretrained.trained_by(joint)
    return pretrained, [branch_of(source, pretrained) for source in sources]
