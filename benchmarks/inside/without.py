"""One run of full fine-tuning, trained without one of the ways that make our loop fast; its seconds by cost.json."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch

from thaw.core.files import read_json, write_json
from thaw.core.runtime import set_threads
from thaw.encoders import dropout, fast_attention
from thaw.encoders.transformers import Encoder
from thaw.steps.train import execute
from thaw.training import model_trainer, phase_loop
from thaw.training.model_trainer import shuffled_batches


def _random_batches(lengths: np.ndarray, size: int, seed: int, by_length: bool) -> list[np.ndarray]:
    return shuffled_batches(lengths, size, seed, by_length=False)


def _plain_optimizer(_name: str, groups: list[dict]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(groups)


# What stands in the place of each way: the object that holds it, its name there, and the plain thing.
PLAIN = {
    "batches of like length": (model_trainer, "shuffled_batches", _random_batches),
    "fast dropout masks": (dropout, "replace", lambda _model: None),
    "attention with such masks": (fast_attention, "replace", lambda _model: None),
    "only the word embeddings that are used": (Encoder, "keep_rows", lambda _self, _used: None),
    "fused optimizer": (phase_loop, "optimizer", _plain_optimizer),
}


def main() -> None:
    """Train as the job says, without the way that it names (none where it is empty), and write the seconds."""
    job, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    if job["without"]:
        holder, name, plain = PLAIN[job["without"]]
        setattr(holder, name, plain)
    spec, folder = read_json(job["run"])["spec"], Path(out).with_suffix("")
    set_threads(job["threads"])
    places = {"data": Path(job["data"]), "encoder": Path(job["encoder"]), "features": [Path(job["features"])]}
    nothing = dict.fromkeys(("catalogues", "also_data", "also_tokens", "need"), [])
    given = argparse.Namespace(**places, **nothing, out=folder)
    execute(spec, given)
    cost, record = read_json(folder / "cost.json"), read_json(folder / "metrics.json")
    write_json(out, {"seconds": cost["seconds"]["train"], "steps": cost["steps"], "scores": record["scores"]["test"]})


if __name__ == "__main__":
    main()
