"""A merged folder as ONNX: a graph of the trunk, and one of each branch, which reads the trunk's state.

`onnx/trunk.onnx` gives the states state_<n> [S, T, d] where branches begin, `onnx/<task>.onnx` logits from one of them,
`onnx/graphs.json` says which.
"""

from pathlib import Path

import torch

from thaw.core.files import write_json
from thaw.exporting.onnx_graph import OnnxGraph, compared, require_onnx, write_graph
from thaw.merging.merged_model import MergedModel

WORDS = "a few words of several lengths and then some more of them".split()
PLACE = "onnx"


def texts_of(reads: str) -> list:
    """Return texts of many lengths in the form that a task reads."""
    texts = [" ".join(WORDS[: 1 + n % len(WORDS)]) for n in range(40)]
    return {"text": texts, "pair": [[text, texts[-1 - n]] for n, text in enumerate(texts)]}.get(
        reads, [text.split() for text in texts]
    )


def write_onnx(folder: Path) -> dict[str, dict]:
    """Write the graphs of a merged folder, and return how each branch compares with the folder's own predictions."""
    require_onnx()
    model, place = MergedModel(folder), folder / PLACE
    place.mkdir(exist_ok=True)
    starts = sorted({branch.frozen for branch in model.branches.values()})
    first = next(iter(model.branches.values()))
    inputs = dict(first._inputs(texts_of(first.reads)[:2]))

    def trunk(given: dict) -> tuple[torch.Tensor, ...]:
        states = model.trunk.states(given, set(starts))
        return tuple(states[start] for start in starts)

    write_graph(trunk, inputs, [f"state_{start}" for start in starts], place / "trunk.onnx", model.trunk.model)
    graph, comparisons = OnnxGraph(place / "trunk.onnx"), {}
    for task in model.branches:
        comparisons[task] = _branch(model, task, graph, starts, place)
    tasks = {task: {"reads": f"state_{branch.frozen}"} for task, branch in model.branches.items()}
    write_json(place / "graphs.json", {"tasks": tasks, "check": comparisons})
    return comparisons


def _branch(model: MergedModel, task: str, trunk: OnnxGraph, starts: list[int], place: Path) -> dict:
    """Write the graph of a branch, and compare trunk and branch in a row with the model."""
    branch, texts = model.branches[task], texts_of(model.branches[task].reads)
    inputs = dict(branch._inputs(texts[:2]))
    with torch.no_grad():
        state = model.trunk.states(inputs, {branch.frozen})[branch.frozen]

    def from_state(given: dict) -> torch.Tensor:
        return branch.logits({name: value for name, value in given.items() if name != "state"}, given["state"])

    layers = branch.own_layers.model if branch.own_layers else None
    write_graph(from_state, inputs | {"state": state}, ["logits"], place / f"{task}.onnx", layers)
    graph, output = OnnxGraph(place / f"{task}.onnx"), starts.index(branch.frozen)

    def ours(given: dict) -> torch.Tensor:
        return branch.logits(given, model.trunk.states(given, {branch.frozen})[branch.frozen])

    return compared(ours, lambda given: graph(given | {"state": trunk(given)[output]})[0], branch, texts)
