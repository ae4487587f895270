"""transformers' Trainer, one run a cell, all cells in one process.

Recipe `default` is the one of transformers' examples: TrainingArguments as they come, dynamic padding. Recipe `tuned`
adds what is known to pay: batches of like length, bf16 where the processor or GPU has it, evaluation in large batches,
no checkpoints; `compiled` is tuned with torch.compile. In all, what is frozen asks for no gradient and the Trainer
leaves it out of the optimizer, and a first phase that another cell has trained is not trained again.
"""

import tempfile

import numpy as np
import torch
from datasets import Dataset
from transformers import AutoTokenizer, DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments, set_seed

from .common import Clock, Reused, read_rows, run
from .models import build, thaw, with_lora


class Unfreezing(TrainerCallback):
    """Thaws further components at the epochs where the stages of a phase begin."""

    def __init__(self, stages: list[dict]):
        ends = np.cumsum([stage["epochs"] for stage in stages]).tolist()
        self.stages = dict(zip([0, *ends], (stage["components"] for stage in stages), strict=False))

    def on_epoch_begin(self, args, state, control, model=None, **_):
        """Thaw what this epoch's stage trains."""
        if (epoch := round(state.epoch or 0)) in self.stages:
            thaw(model, self.stages[epoch])


def arguments(recipe: str, cell: dict, phase: dict, folder: str, bf16: bool) -> TrainingArguments:
    """Return a phase's arguments by recipe."""
    shared = {
        "output_dir": folder,
        "per_device_train_batch_size": cell["batch_size"],
        "learning_rate": phase["rate"],
        "num_train_epochs": sum(stage["epochs"] for stage in phase["stages"]),
        "seed": cell["seed"],
        "disable_tqdm": True,
    }
    if recipe != "default":
        shared |= {
            "train_sampling_strategy": "group_by_length",
            "bf16": bf16,
            "use_cpu": not torch.cuda.is_available(),  # else bf16 is refused where there is no GPU
            "per_device_eval_batch_size": 128,
            "save_strategy": "no",
            "torch_compile": recipe == "compiled",
        }
    return TrainingArguments(**shared)


def accuracy(prediction) -> dict:
    """Return the share of right answers."""
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def tokenised(tokenizer, task: dict) -> dict[str, Dataset]:
    """Return a task's splits as token ids, unpadded."""

    def encode(batch):
        columns = [batch[column] for column in task["columns"]]
        return tokenizer(*columns, truncation=True, max_length=task["max_length"])

    found = {}
    for split in ("train", "validation", "test"):
        texts, labels = read_rows(task, split)
        columns = zip(*texts, strict=True) if len(task["columns"]) == 2 else [texts]
        rows = Dataset.from_dict(dict(zip(task["columns"], map(list, columns), strict=True)) | {"labels": labels})
        found[split] = rows.map(encode, batched=True, remove_columns=task["columns"])
    return found


def train_cell(cell: dict, job: dict, splits: dict, tokenizer, reused: Reused, clock: Clock) -> dict:
    """Train a cell, phase by phase, score it, and return what is known of it."""
    seconds = Clock()
    with clock("load"), seconds("load"):
        set_seed(cell["seed"])
        model = build(cell["head"], job["encoder"], len(job["tasks"][cell["task"]]["labels"]))
    with clock("train"), seconds("train"), tempfile.TemporaryDirectory() as folder:
        for index in range(reused.start(cell, model), len(cell["phases"])):
            phase = cell["phases"][index]
            callbacks = []
            if "lora" in phase:
                model = with_lora(model, phase)
            else:
                thaw(model, [name for stage in phase["stages"] for name in stage["components"]])
                callbacks.append(Unfreezing(phase["stages"]))
            trainer = Trainer(
                model=model,
                args=arguments(job["recipe"], cell, phase, folder, job["bf16"]),
                train_dataset=splits["train"],
                eval_dataset=splits["validation"],
                processing_class=tokenizer,
                data_collator=DataCollatorWithPadding(tokenizer),
                compute_metrics=accuracy,
                callbacks=callbacks,
            )
            trainer.train()
            reused.keep(cell, index + 1, model)
    scores = {}
    with clock("evaluate"), seconds("evaluate"):
        for split in job["splits"]:
            scores[split] = trainer.predict(splits[split]).metrics["test_accuracy"]
    found = {name: cell[name] for name in ("task", "strategy", "seed", "head")}
    return found | {"rate": cell["phases"][-1]["rate"], "scores": scores, "seconds": seconds.parts}


def main(job: dict, clock: Clock) -> dict:
    """Train all cells, one after the other."""
    with clock("load"):
        tokenizer = AutoTokenizer.from_pretrained(job["encoder"])
        splits = {name: tokenised(tokenizer, task) for name, task in job["tasks"].items()}
    reused = Reused(job["cells"])
    found = [train_cell(cell, job, splits[cell["task"]], tokenizer, reused, clock) for cell in job["cells"]]
    return {"cells": found, "bf16": job["bf16"], "threads": torch.get_num_threads()}


if __name__ == "__main__":
    run(main)
