"""A model as ONNX, checked with ONNX Runtime: logits from token ids.

onnx and onnxruntime are the optional extra `onnx`. Graphs come from tracing, so batch and length are dynamic only where
the traced code leaves them so; the check reads batches of several shapes. B examples, T tokens, C outputs.
"""

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn

from thaw.core.errors import UserError
from thaw.exporting.checking import checked, examples
from thaw.exporting.finished_run import FinishedRun
from thaw.exporting.standalone_model import BATCH, Model

MISSING = "--onnx needs onnx and onnxruntime; pip install onnx onnxruntime"
CLOSE = 1e-4  # by which a probability, or a score, may differ: sums in another order
CHECKED = 128  # examples that are read with both
OPSET = 17


def require_onnx() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise UserError(MISSING) from error


class TracedModel(nn.Module):
    """The logits of an exported run's model from named tensors, as a module that is traced."""

    def __init__(self, model: Model, names: list[str]):
        super().__init__()
        self.logits, self.names, self.model = model._logits, names, model.model
        self.eval()

    def forward(self, *tensors):
        return self.logits(dict(zip(self.names, tensors, strict=True)))


def export_onnx(source: FinishedRun, folder: Path) -> dict:
    """Write model.onnx into the folder of an exported run, and return how it compares with the run's own model.

    Batch and tokens are free. Raises UserError where the model can not be traced, or the graph computes otherwise.
    """
    require_onnx()
    model, path = Model(folder), folder / "model.onnx"
    texts = examples(source, checked(source)[0])[:CHECKED]
    inputs = dict(model._inputs(texts[:2]))
    axes = {name: {0: "batch", 1: "tokens"} for name in (*inputs, "logits")}
    settings: Any = {"input_names": list(inputs), "output_names": ["logits"], "dynamic_axes": axes}
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tracer's; the check reads batches of other shapes
            traced = TracedModel(model, list(inputs))
            torch.onnx.export(traced, tuple(inputs.values()), path, dynamo=False, opset_version=OPSET, **settings)
    except (RuntimeError, TypeError, ValueError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UserError(f"this model can not be written as ONNX ({first}); export it without --onnx") from error
    return _compared(model, path, texts)


def _compared(model: Model, path: Path, texts: list) -> dict:
    """Return {"examples", "largest_difference", "changed"} of a model and its graph.

    Differences are of probabilities, or of scores. More than CLOSE is a UserError.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = torch.get_num_threads(), 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    read = {one.name for one in session.get_inputs()}
    largest, changed = 0.0, 0
    for size in (1, 3, BATCH):  # batches of several shapes
        for start in range(0, len(texts), size) if size > 3 else (0,):
            inputs = dict(model._inputs(texts[start : start + size]))
            given = {name: value.cpu().numpy() for name, value in inputs.items() if name in read}
            with torch.no_grad():
                first = _values(model._logits(inputs), model)
            second = _values(torch.from_numpy(session.run(None, given)[0]), model)
            if first.shape != second.shape:
                raise UserError("the ONNX graph has a fixed shape: tracing can not follow how this head reads a batch")
            largest = max(largest, float((first - second).abs().max()))
            changed += int((first.argmax(-1) != second.argmax(-1)).sum()) if model.labels else 0
    if largest > CLOSE:
        raise UserError(f"the ONNX graph computes otherwise: a difference of {largest:.1e}, at most {CLOSE:g} expected")
    return {"examples": len(texts), "largest_difference": largest, "changed": changed}


def _values(logits: torch.Tensor, model: Model) -> torch.Tensor:
    logits = logits.float().cpu()
    if not model.labels:
        return logits
    return logits.softmax(-1) if model.threshold is None else logits.sigmoid()
