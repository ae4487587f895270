"""Which finished runs a merge takes, by their scores on validation, and what the choice costs."""

from dataclasses import dataclass
from pathlib import Path

from thaw.core import branch_choice
from thaw.core.branch_choice import BranchSize, EncoderSize, Offer, choose
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.merging.merged_folder import branches_of, layers_by_input, sizes_of, stored_bytes
from thaw.merging.run_branch import Pretrained, recorded_score


@dataclass(frozen=True)
class ServedRun:
    """A run that a merge takes: its folder, where it comes from, its size, and scores in percent.

    validation: the mean over seeds. test: of this run; None where it has none. flags: of this run, as recorded.
    """

    folder: Path
    strategy: str
    variant: str
    size: BranchSize
    validation: float
    test: float | None
    flags: list[str]


def select(spec: dict, runs: list[Path]) -> dict[str, ServedRun]:
    """Return by task the run that is served. Args: spec of the merge; metrics.json of all its runs, tasks by name.

    A task of which every point has a run that diverged or has no score is a UserError.
    """
    waiting, served = iter(runs), {}
    for task, points in sorted(spec["tasks"].items()):
        files = [[next(waiting) for _ in point["runs"]] for point in points]
        branches = [_served_run(point, some, spec) for point, some in zip(points, files, strict=True)]
        served[task] = {str(number): run for number, run in enumerate(branches) if run}
        if not served[task]:
            raise UserError(f"{task}: every run that a branch may come from diverged or has no validation score")
    offers = {
        task: [Offer(id, run.size, run.validation) for id, run in points.items()] for task, points in served.items()
    }
    chosen = choose(offers, spec["choose"], spec["margin"])
    return {task: served[task][offer.id] for task, offer in chosen.items()}


def _served_run(point: dict, files: list[Path], spec: dict) -> ServedRun | None:
    """Return the run of a point that would be served; None where one of the point's runs diverged or has no score.

    Args: a point of a task in the spec of the merge; metrics.json of its runs, one a seed; that spec.
    """
    records = [read_json(file) for file in files]
    scores = [score for record in records if (score := recorded_score(record, "validation"))]
    if len(scores) < len(records) or any("diverged" in record["flags"] for record in records):
        return None
    place = spec["seeds"].index(spec["seed"])
    test = recorded_score(records[place], "test")
    return ServedRun(
        files[place].parent,
        point["strategy"],
        point["variant"],
        BranchSize(point["frozen"], point["own"]),
        100 * sum(score["value"] for score in scores) / len(scores),
        None if test is None else 100 * test["value"],
        records[place]["flags"],
    )


def counted(folder: Path, pretrained: Pretrained) -> dict:
    """Return what a merged folder executes and stores, by closed form, next to other ways to serve its tasks."""
    abouts, sizes, size = branches_of(folder), sizes_of(folder), encoder_size(pretrained)
    heads = [about["head_parameters"] for about in abouts.values()]
    layers, of = branch_choice.executed(sizes.values()), len(sizes) * size.layers
    facts = {"embeddings": size.embeddings, "layer": size.layer, "layers": size.layers}
    return {
        "layers": {"executed": layers, "of": of, "by_input": layers_by_input(folder, size.layers)},
        "parameters": {
            "merged": branch_choice.stored_merged(sizes.values(), size, heads),
            "separate": branch_choice.stored_separate(size, heads),
        },
        "encoder": facts | {"width": pretrained.config.hidden_size},
        "bytes": stored_bytes(folder),
    }


def encoder_size(pretrained: Pretrained) -> EncoderSize:
    """Return the numbers of parameters of an encoder; those of a layer are the mean over layers."""
    embeddings = sum(value.numel() for value in pretrained.up_to(0).values())
    every = sum(value.numel() for value in pretrained.tensors.values())
    return EncoderSize(embeddings, round((every - embeddings) / pretrained.layers), pretrained.layers)


def record(spec: dict, digest: str, served: dict[str, ServedRun], results: Path) -> dict:
    """Return what merge.json says of the choice."""
    tasks = {
        task: {
            "run": run.folder.resolve().relative_to(results.resolve()).as_posix(),
            "strategy": run.strategy,
            "variant": run.variant,
            "frozen": run.size.frozen,
            "own": run.size.own,
            "validation": run.validation,
            "test": run.test,
            "flags": run.flags,
        }
        for task, run in served.items()
    }
    return {"spec": spec, "digest": digest, "tasks": tasks}
