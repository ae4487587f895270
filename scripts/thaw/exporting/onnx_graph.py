"""A model as ONNX, checked with ONNX Runtime: logits from token ids, or from a state of a trunk.

onnx and onnxruntime are the optional extra `onnx`. Graphs come from tracing, so batch and length are dynamic only where
the traced code leaves them so; the check reads batches of several shapes. B examples, T tokens, C outputs.
"""

import warnings
from collections.abc import Callable
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


class TracedCall(nn.Module):
    """A function of tensors by name, as a module that is traced."""

    def __init__(self, function: Callable, names: list[str], model: nn.Module | None):
        super().__init__()
        self.function, self.names, self.model = function, names, model
        self.eval()

    def forward(self, *tensors):
        """Return the function's tensor, or tensors."""
        return self.function(dict(zip(self.names, tensors, strict=True)))


def require_onnx() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise UserError(MISSING) from error


def write_graph(
    function: Callable, inputs: dict[str, torch.Tensor], outputs: list[str], path: Path, model: nn.Module | None = None
) -> None:
    """Write a function of named tensors as ONNX; their first axis is the batch, the second the tokens.

    Args: model, the module whose parameters the function reads, if any. Raises UserError where it can not be traced.
    """
    axes = {name: {0: "batch", 1: "tokens"} for name in (*inputs, *outputs)}
    settings: Any = {"input_names": list(inputs), "output_names": outputs, "dynamic_axes": axes, "opset_version": OPSET}
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tracer's; the check reads batches of other shapes
            call = TracedCall(function, list(inputs), model)
            torch.onnx.export(call, tuple(inputs.values()), path, dynamo=False, **settings)
    except (RuntimeError, TypeError, ValueError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UserError(f"this model can not be written as ONNX ({first}); export it without --onnx") from error


class OnnxGraph:
    """A graph of a file, as a function of named tensors; inputs that it does not read are left out."""

    def __init__(self, path: Path):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = torch.get_num_threads(), 3
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._names = {one.name for one in self._session.get_inputs()}

    def __call__(self, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        given = {name: value.cpu().numpy() for name, value in inputs.items() if name in self._names}
        return [torch.from_numpy(value) for value in self._session.run(None, given)]


def export_onnx(source: FinishedRun, folder: Path) -> dict:
    """Write model.onnx into the folder of an exported run, and return how it compares with the run's own model.

    Raises UserError where it computes otherwise.
    """
    require_onnx()
    model = Model(folder)
    texts = examples(source, checked(source)[0])[:CHECKED]
    inputs = dict(model._inputs(texts[:2]))
    write_graph(model._logits, inputs, ["logits"], folder / "model.onnx", model.model)
    graph = OnnxGraph(folder / "model.onnx")
    return compared(model._logits, lambda inputs: graph(inputs)[0], model, texts)


def compared(ours: Callable, theirs: Callable, model: Model, texts: list) -> dict:
    """Return {"examples", "largest_difference", "changed"} of two functions from inputs to logits.

    Args: model, which reads the texts. Differences are of probabilities, or of scores. More than CLOSE, or another
    label, is a UserError.
    """
    largest, changed = 0.0, 0
    for size in (1, 3, BATCH):  # batches of several shapes
        for start in range(0, len(texts), size) if size > 3 else (0,):
            inputs = dict(model._inputs(texts[start : start + size]))
            with torch.no_grad():
                first, second = (_values(function(inputs), model) for function in (ours, theirs))
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
