"""A plain torch loop by a skilled user: states below the trained layers are computed once and kept in memory.

Batches of like length, bf16 where the processor or GPU has it, a fused optimizer, the encoder loaded once, and no model
trained twice. Frozen layers have no dropout, as in Thaw. `compiled` compiles each layer and rounds lengths up, so that
few shapes are met. N rows, B examples of a batch, T tokens, d width, C classes, L layers.
"""

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoTokenizer

from .common import Clock, Reused, compute, device, read_rows, run
from .models import build, thaw

SPLITS = ("train", "validation", "test")
TEXT = -1  # in the place of a number of frozen layers: the embeddings train too
ROUNDED = 8  # compiled, batches are as long as the next multiple of it


def frozen_below(components: list[str], layers: int) -> int:
    """Return how many layers lie frozen below all that train; TEXT where the embeddings train."""
    if "embeddings" in components:
        return TEXT
    return min((int(name.split(".")[1]) - 1 for name in components if "." in name), default=layers)


class Pretrained:
    """transformers' own classifier, loaded once, from whose weights each cell starts."""

    def __init__(self, folder: str, compiled: bool):
        """Load the encoder with its pooler, and keep their weights."""
        self.model = build("pooler", folder, 2).eval().to(device())
        if compiled:
            for layer in self.model.bert.encoder.layer:
                layer.compile()
        self.weights = {name: value.clone() for name, value in self.model.bert.state_dict().items()}

    def start(self, seed: int, classes: int) -> nn.Module:
        """Return the model with its own weights again, and with a new classifier, drawn as transformers does."""
        torch.manual_seed(seed)
        self.model.zero_grad()  # of what the last cell trained and the next one may not
        self.model.bert.load_state_dict(self.weights)
        self.model.classifier = nn.Linear(self.model.config.hidden_size, classes, device=device())
        nn.init.normal_(self.model.classifier.weight, std=self.model.config.initializer_range)
        nn.init.zeros_(self.model.classifier.bias)
        return self.model


class Rows:
    """One split: token ids and states by number of frozen layers, a tensor for each row."""

    def __init__(self, job: dict, task: dict, split: str, tokenizer):
        """Read the split and turn its texts into ids."""
        texts, labels = read_rows(task, split)
        parts = [texts] if len(task["columns"]) == 1 else map(list, zip(*texts, strict=True))
        found = tokenizer(*parts, truncation=True, max_length=task["max_length"])
        self.labels = torch.tensor(labels, device=device())
        pairs = zip(found["input_ids"], found["token_type_ids"], strict=True)
        self.states = {TEXT: [torch.tensor(pair, device=device()).T for pair in pairs]}
        self.lengths = torch.tensor([len(ids) for ids in found["input_ids"]])
        self.job = job

    def batch(self, below: int, rows: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids with segments [B, T, 2], or states [B, T, d], and the mask of tokens [B, 1, T, T]."""
        states = pad_sequence([self.states[below][row] for row in rows], batch_first=True)
        if self.job["compiled"]:
            states = functional.pad(states, (0, 0, 0, -states.shape[1] % ROUNDED))
        lengths = self.lengths[rows].to(device())
        mask = torch.arange(states.shape[1], device=device()) < lengths[:, None]
        return states, mask[:, None, None].expand(-1, 1, states.shape[1], -1)

    def batches(self, size: int, shuffled: bool) -> list[list[int]]:
        """Return rows of like length, longest first; shuffled, the rows of 50 batches by length, batches at random."""
        if not shuffled:
            return [rows.tolist() for rows in self.lengths.argsort(descending=True).split(size)]
        found = []
        for some in torch.randperm(len(self.lengths)).split(50 * size):
            found += some[self.lengths[some].argsort(descending=True)].split(size)
        return [found[index].tolist() for index in torch.randperm(len(found))]

    @torch.no_grad()
    def keep(self, model, depths: set[int]) -> None:
        """Keep the states above so many frozen layers, by one pass through the pretrained model."""
        depths = depths - {TEXT}
        self.states |= {below: [None] * len(self.lengths) for below in depths}
        for rows in self.batches(128, shuffled=False) if depths else ():
            ids, mask = self.batch(TEXT, rows)
            with compute(self.job):
                hidden = model.bert.embeddings(ids[..., 0], ids[..., 1])
                for below in range(max(depths) + 1):
                    if below:
                        hidden = model.bert.encoder.layer[below - 1](hidden, mask)
                    if below in depths:
                        kept = hidden.to(torch.bfloat16) if self.job["bf16"] else hidden
                        for place, row in enumerate(rows):
                            self.states[below][row] = kept[place, : self.lengths[row]].clone()


def logits(model, below: int, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the scores of classes [B, C], from text or from the states above so many layers."""
    hidden = model.bert.embeddings(states[..., 0], states[..., 1]) if below == TEXT else states
    for layer in model.bert.encoder.layer[max(below, 0) :]:
        hidden = layer(hidden, mask)
    return model.classifier(model.dropout(model.bert.pooler(hidden)))


def train_phase(model, phase: dict, rows: Rows, size: int, job: dict) -> None:
    """Train the stages of a phase, each from the highest states that it can start from, on one linear schedule."""
    thaw(model, [name for stage in phase["stages"] for name in stage["components"]])
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=phase["rate"], weight_decay=0.0, fused=True)
    steps = sum(stage["epochs"] for stage in phase["stages"]) * -(-len(rows.labels) // size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    model.train()
    for stage in phase["stages"]:
        thaw(model, stage["components"])
        below = frozen_below(stage["components"], len(model.bert.encoder.layer))
        for chosen in (chosen for _ in range(stage["epochs"]) for chosen in rows.batches(size, shuffled=True)):
            with compute(job):
                scores = logits(model, below, *rows.batch(below, chosen))
            optimizer.zero_grad()
            functional.cross_entropy(scores.float(), rows.labels[chosen]).backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            schedule.step()


@torch.no_grad()
def score(model, below: int, rows: Rows, job: dict) -> float:
    """Return the share of right answers."""
    right = 0
    for chosen in rows.batches(128, shuffled=False):
        with compute(job):
            scores = logits(model, below, *rows.batch(below, chosen))
        right += (scores.argmax(-1) == rows.labels[chosen]).sum().item()
    return right / len(rows.labels)


def train_cell(
    cell: dict, job: dict, splits: dict[str, Rows], pretrained: Pretrained, reused: Reused, clock: Clock
) -> dict:
    """Train a cell, phase by phase, score it, and return what is known of it."""
    seconds = Clock()
    with clock("load"), seconds("load"):
        model = pretrained.start(cell["seed"], len(job["tasks"][cell["task"]]["labels"]))
    with clock("train"), seconds("train"):
        for index in range(reused.start(cell, model), len(cell["phases"])):
            train_phase(model, cell["phases"][index], splits["train"], cell["batch_size"], job)
            reused.keep(cell, index + 1, model)
    with clock("evaluate"), seconds("evaluate"):
        model.eval()
        below = min(all_frozen_below(cell, len(model.bert.encoder.layer)))
        scores = {split: score(model, below, splits[split], job) for split in job["splits"]}
    found = {name: cell[name] for name in ("task", "strategy", "seed", "head")}
    return found | {"rate": cell["phases"][-1]["rate"], "scores": scores, "seconds": seconds.parts}


def all_frozen_below(cell: dict, layers: int) -> set[int]:
    """Return all numbers of frozen layers that the stages of a cell have."""
    return {frozen_below(stage["components"], layers) for phase in cell["phases"] for stage in phase["stages"]}


def main(job: dict, clock: Clock) -> dict:
    """Compute the states of each task once, then train all cells, one after the other."""
    with clock("load"):
        tokenizer = AutoTokenizer.from_pretrained(job["encoder"])
        pretrained = Pretrained(job["encoder"], job["compiled"])
        splits = {
            name: {split: Rows(job, task, split, tokenizer) for split in SPLITS} for name, task in job["tasks"].items()
        }
    with clock("features"):
        for name, own in splits.items():
            layers = len(pretrained.model.bert.encoder.layer)
            wanted = set().union(*(all_frozen_below(cell, layers) for cell in job["cells"] if cell["task"] == name))
            for rows in own.values():
                rows.keep(pretrained.model, wanted)
    reused = Reused(job["cells"])
    found = [train_cell(cell, job, splits[cell["task"]], pretrained, reused, clock) for cell in job["cells"]]
    return {"cells": found, "bf16": job["bf16"], "threads": torch.get_num_threads()}


if __name__ == "__main__":
    run(main)
