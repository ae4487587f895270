"""A scikit-learn loop over layers: the recipe of most probing code.

The states of all layers are computed once, pooled, and a LogisticRegression is fitted for each layer and strength.
N rows, L layers, d width.
"""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from transformers import AutoModel, AutoTokenizer

from .common import Clock, device, read_rows, run


@torch.no_grad()
def layers(task: dict, split: str, tokenizer, encoder, pooling: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the pooled states of the embeddings and all layers [L + 1, N, d], and the labels [N]."""
    texts, labels = read_rows(task, split)
    order = sorted(range(len(texts)), key=lambda i: -len(str(texts[i])))
    found = np.empty((encoder.config.num_hidden_layers + 1, len(texts), encoder.config.hidden_size), np.float32)
    for start in range(0, len(order), 128):
        rows = order[start : start + 128]
        batch = [texts[i] for i in rows]
        ids = tokenizer(batch, padding=True, truncation=True, max_length=task["max_length"], return_tensors="pt")
        ids = ids.to(device())
        states = encoder(**ids, output_hidden_states=True).hidden_states
        found[:, rows] = np.stack([pooled(state, ids["attention_mask"], pooling).cpu().numpy() for state in states])
    return found, np.array(labels)


def pooled(state: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Return the first token, or the mean over real tokens, [B, d]."""
    if pooling == "first":
        return state[:, 0]
    weights = mask.unsqueeze(-1).to(state.dtype)
    return (state * weights).sum(1) / weights.sum(1)


def main(job: dict, clock: Clock) -> dict:
    """Fit a probe for each task, layer and strength, and score each on validation and test."""
    with clock("load"):
        tokenizer = AutoTokenizer.from_pretrained(job["encoder"])
        encoder = AutoModel.from_pretrained(job["encoder"], add_pooling_layer=False).eval().to(device())
    found = []
    for name, task in job["tasks"].items():
        with clock("features"):
            names = ("train", "validation", "test")
            splits = {split: layers(task, split, tokenizer, encoder, job["pooling"]) for split in names}
        for layer in range(encoder.config.num_hidden_layers + 1):
            with clock("train"):
                scaler = StandardScaler().fit(splits["train"][0][layer])
                scaled = {split: scaler.transform(states[layer]) for split, (states, _) in splits.items()}
            for strength in job["strengths"]:
                with clock("train"):
                    # scikit-learn's C weighs the sum of losses, the strengths here the penalty beside their mean
                    c = 1 / (strength * len(scaled["train"]))
                    probe = LogisticRegression(C=c, max_iter=1000).fit(scaled["train"], splits["train"][1])
                with clock("evaluate"):
                    scores = {split: probe.score(scaled[split], splits[split][1]) for split in ("validation", "test")}
                found.append({"task": name, "layer": layer, "strength": strength, "scores": scores})
    return {"cells": found}


if __name__ == "__main__":
    run(main)
