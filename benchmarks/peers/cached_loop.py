"""A plain torch loop by a skilled user: final features are computed once, kept in memory, and heads trained on them.

N rows, B examples of a batch, d width.
"""

import torch
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from .common import Clock, compute, device, read_rows, run
from .models import head


@torch.no_grad()
def features(job: dict, task: dict, split: str, tokenizer, encoder) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first token's last hidden state [N, d] and the labels [N] of a split, texts sorted by length."""
    texts, labels = read_rows(task, split)
    order = sorted(range(len(texts)), key=lambda i: -len(str(texts[i])))
    found = torch.empty(len(texts), encoder.config.hidden_size, device=device())
    for start in range(0, len(order), 128):
        rows = order[start : start + 128]
        batch = [texts[i] for i in rows]
        ids = tokenizer(batch, padding=True, truncation=True, max_length=task["max_length"], return_tensors="pt")
        with compute(job):
            found[rows] = encoder(**ids.to(device())).last_hidden_state[:, 0].float()
    return found, torch.tensor(labels, device=device())


def fit(cell: dict, splits: dict, classes: int) -> torch.nn.Module:
    """Train a head by AdamW on a linear schedule, as the other sides do, and return it."""
    vectors, labels = splits["train"]
    torch.manual_seed(cell["seed"])
    model = head(vectors.shape[1], classes, cell["head"] == "mlp").to(device())
    (phase,) = cell["phases"]
    epochs, size = sum(stage["epochs"] for stage in phase["stages"]), cell["batch_size"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=phase["rate"], weight_decay=0.0, fused=True)
    steps = epochs * -(-len(labels) // size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    for _ in range(epochs):
        for rows in torch.randperm(len(labels), device=device()).split(size):
            loss = functional.cross_entropy(model(vectors[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return model.eval()


@torch.no_grad()
def score(model: torch.nn.Module, split: tuple[torch.Tensor, torch.Tensor]) -> float:
    """Return the share of right answers."""
    return (model(split[0]).argmax(-1) == split[1]).float().mean().item()


def main(job: dict, clock: Clock) -> dict:
    """Encode each task once, train all heads, and score each."""
    with clock("load"):
        tokenizer = AutoTokenizer.from_pretrained(job["encoder"])
        encoder = AutoModel.from_pretrained(job["encoder"], add_pooling_layer=False).eval().to(device())
    splits = {}
    for name, task in job["tasks"].items():
        with clock("features"):
            names = ("train", "validation", "test")
            splits[name] = {split: features(job, task, split, tokenizer, encoder) for split in names}
    found = []
    for cell in job["cells"]:
        data = splits[cell["task"]]
        with clock("train"):
            model = fit(cell, data, len(job["tasks"][cell["task"]]["labels"]))
        with clock("evaluate"):
            scores = {split: score(model, data[split]) for split in ("validation", "test")}
        names = ("task", "strategy", "seed", "head")
        found.append({name: cell[name] for name in names} | {"rate": cell["phases"][-1]["rate"], "scores": scores})
    return {"cells": found}


if __name__ == "__main__":
    run(main)
