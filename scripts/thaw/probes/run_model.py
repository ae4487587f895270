"""The model of a finished run, with its own head, and its score: what probes of runs begin with."""

import torch

from thaw.core.errors import wrap_corruption
from thaw.core.files import read_json
from thaw.probes.reading import Reading
from thaw.schema.head import HeadConfig
from thaw.training.task_model import BatchLoader, TaskModel


def finished(reading: Reading) -> TaskModel:
    """Return the model of the run whose encoder is read: its encoder and its own head, in eval mode."""
    from safetensors.torch import load_file

    adapted = reading.inputs.adapted
    assert adapted and adapted.run  # a probe of runs reads one
    folder = adapted.run
    record, file = read_json(folder / "metrics.json"), folder / "head.safetensors"
    head = reading.build_head(HeadConfig.of_run(record["spec"], record["chosen"]))
    with wrap_corruption(file, folder / "metrics.json"):
        head.load_state_dict(load_file(file))
    model = TaskModel(adapted.encoder(), head, "fp32").to(reading.device)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model.eval()


@torch.no_grad()
def validation_score(reading: Reading, model: TaskModel) -> float | None:
    """Return the main metric on the first `examples` rows of validation."""
    split = reading.task["validation"]
    rows = reading.rows[split][: reading.entry.examples]
    loader = BatchLoader(reading.inputs.store, [], reading.device)
    return reading.main_score(model.predict(loader, split, rows, reading.word_counts(split, rows)), split)
