"""The features of the probes: the mean of each text's states, for the embeddings and all layers, once for both sides.

N rows, L layers, d width. B rows of a batch, T tokens.
"""

from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from .common import Clock, device, read_rows, run


@torch.no_grad()
def layers(task: dict, split: str, tokenizer, encoder) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean states of the embeddings and all layers, float32 [L + 1, N, d], and the labels [N]."""
    texts, labels = read_rows(task, split)
    order = sorted(range(len(texts)), key=lambda i: -len(str(texts[i])))
    found = np.empty((encoder.config.num_hidden_layers + 1, len(texts), encoder.config.hidden_size), np.float32)
    for start in range(0, len(order), 128):
        rows = order[start : start + 128]
        batch = [texts[i] for i in rows]
        ids = tokenizer(batch, padding=True, truncation=True, max_length=task["max_length"], return_tensors="pt")
        ids = ids.to(device())
        weights = ids["attention_mask"].unsqueeze(-1).float()  # [B, T, 1]
        states = torch.stack(encoder(**ids, output_hidden_states=True).hidden_states)  # [L + 1, B, T, d]
        found[:, rows] = ((states * weights).sum(2) / weights.sum(1)).cpu().numpy()
    return found, np.array(labels)


def main(job: dict, clock: Clock) -> dict:
    """Write states and labels of each split of each task, `<task>.<split>.states.npy` and `.labels.npy`."""
    with clock("load"):
        tokenizer = AutoTokenizer.from_pretrained(job["encoder"])
        encoder = AutoModel.from_pretrained(job["encoder"], add_pooling_layer=False).eval().to(device())
    with clock("features"):
        for name, task in job["tasks"].items():
            for split in ("train", "validation", "test"):
                states, labels = layers(task, split, tokenizer, encoder)
                np.save(Path(job["features"]) / f"{name}.{split}.states.npy", states)
                np.save(Path(job["features"]) / f"{name}.{split}.labels.npy", labels)
    return {}


if __name__ == "__main__":
    run(main)
