"""Early exits of an export: heads on the layers below the last, and from which probability a text leaves at them.

K exits, the last of which is the run's own head, N texts, C labels, d width.
"""

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional

from thaw.core.errors import UserError
from thaw.core.files import read_json, save_tensors, write_json
from thaw.evaluation.exits import THRESHOLDS, Exits, lowest
from thaw.evaluation.metrics import score
from thaw.evaluation.result_files import select_rows
from thaw.exporting.all_rows import fit_of
from thaw.exporting.checking import FreshProcess, examples, predictions_of
from thaw.exporting.finished_run import FinishedRun, LayersNotKept, finished, open_run
from thaw.exporting.formats import trained_encoder
from thaw.exporting.standalone_model import Model
from thaw.schema.experiment import threads_of
from thaw.schema.head import HeadConfig

AGREES = 0.95  # share of texts that must leave where Thaw's own vectors say: stored states are rounded


def check_exits(run: Path, within: float) -> None:
    """Refuse a run that has no layers to leave at, and points below 0. Args: the run's folder."""
    if not within >= 0:  # nor nan
        raise UserError(f"--exits {within:g}: expected the points that leaving early may lose, 0 or more")
    searched = HeadConfig.model_validate(finished(run)[2]["spec"]["head"]).layers.searched
    no_heads = f"{run}: early exits need a head on each layer; add the strategy frozen_best_layer, export its run"
    try:
        source = open_run(run)
    except LayersNotKept as error:
        raise error if searched else UserError(no_heads) from None  # kept layers would not help
    if source.target != "label" or source.reads == "words" or source.separate_encoding:
        raise UserError(f"{source.run}: early exits are for labels of texts, or of pairs that are read as one sequence")
    if not searched:
        raise UserError(no_heads)
    if source.read == [0]:
        raise UserError(f"{source.run}: validation chose the embeddings, below which there is nothing to leave at")


def add_exits(source: FinishedRun, folder: Path, within: float) -> dict:
    """Write the exits of a run into its export, read the test splits once more, and return what both say.

    The threshold is the lowest from which on none loses more than `within` points on validation. Exits are fitted on
    the training rows alone. An export that leaves elsewhere than the stored states say is a UserError.

    Args: the run; the folder, written without exits; points. Returns threshold; by split layers executed, their number
    without exits, and main metric with and without.
    """
    fit = fit_of(source)
    read, last = fit.head.combination.read, source.metrics["chosen"]["layer"]
    below = [(n, *one) for n, one in zip(read, fit.by_layer(), strict=True) if n <= last]
    own = load_file(source.made / "head.safetensors")
    task, validation, metric = source.task, fit.context.validation, fit.context.main_metric
    exits, gold = {}, {}
    for split in (validation, *task["test"]):
        logits = [solution.logits(vectors[split].values) for _, solution, vectors in below[:-1]]
        logits.append(functional.linear(below[-1][2][split].values, own["output.weight"], own["output.bias"]))
        exits[split] = Exits(torch.stack(logits).softmax(2).numpy(), [n for n, *_ in below])
        gold[split] = select_rows(source.corpus.targets(task, split), fit.context.rows[split])

    def scored(split: str, answers: np.ndarray) -> float | None:
        return score(task | {"metrics": [metric]}, gold[split], answers, source.labels)[metric]

    curve = {threshold: scored(validation, exits[validation].leave(threshold)[1]) for threshold in THRESHOLDS}
    threshold = lowest(curve, curve[THRESHOLDS[-1]], within)
    save_tensors(
        folder / "exits.safetensors",
        {f"{n}.{name}": tensor for n, solution, _ in below[:-1] for name, tensor in solution.state().items()},
    )
    modules = trained_encoder(source).anatomy.layers
    said = {"threshold": threshold, "layers": [n for n, *_ in below[:-1]], "last": last, "modules": modules}
    write_json(folder / "thaw.json", read_json(folder / "thaw.json") | {"exits": said})
    _shrink(source, folder, float(np.median(exits[task["test"][0]].sure[0])))
    report: dict = {"threshold": threshold, "within": within, "layers": last, "splits": {}}
    with FreshProcess(threads_of(source.spec)) as process:
        predictions = {split: predictions_of(process, source, split, folder) for split in task["test"]}
    for split in task["test"]:
        found = select_rows(predictions[split], fit.context.rows[split])
        executed = np.array([one["layers"] for one in found])
        answers = np.array([source.labels.index(one["prediction"]) for one in found])
        agreeing = float((executed == exits[split].leave(threshold)[0]).mean())
        if agreeing < AGREES and (executed != exits[split].leave(threshold)[0]).sum() > 1:
            raise UserError(
                f"{split}: {1 - agreeing:.0%} of the texts leave the export at another layer than the run's states "
                f"say, so that it was not written; this architecture has no early exits"
            )
        whole = scored(split, exits[split].best[-1])
        part = {"executed": float(executed.mean()), "metric": metric, "score": scored(split, answers), "whole": whole}
        report["splits"][split] = part | {"agreeing": agreeing}
    return report


def _shrink(source: FinishedRun, folder: Path, threshold: float) -> None:
    """Let half of some texts leave at the lowest exit: layers must take fewer texts than the model was given.

    Raises UserError for an architecture whose layers do not.
    """
    model = Model(folder)
    model.exits.threshold = threshold
    try:
        list(model.predict_with_probabilities(examples(source, source.task["test"][0])[:64]))
    except (RuntimeError, ValueError, IndexError) as error:
        kind = model.model.config.model_type
        raise UserError(
            f"--exits: {kind} computes all texts of a batch to the last layer; export without it"
        ) from error


def exits_text(report: dict) -> list[str]:
    """Say of each split how many layers its texts execute, and what that costs."""
    lines = [f"early exits: a text leaves at a probability of {report['threshold']:g}"]
    if report["threshold"] > 1:
        lines = [f"early exits: none, since every threshold loses more than {report['within']:g} points on validation"]
    for split, part in report["splits"].items():
        scores = " and ".join("undefined" if part[key] is None else f"{part[key]:.4f}" for key in ("score", "whole"))
        ran = f"{part['executed']:.2f} of {report['layers']} layers"
        lines.append(f"  {split}: {ran}; {part['metric']} with and without exits {scores}")
    return lines
