"""A merge from first to last: a folder is written next to its target, proved, and moved there whole."""

from dataclasses import asdict, dataclass
from pathlib import Path

from thaw.core import branch_choice
from thaw.core.branch_choice import BranchSize, EncoderSize, Offer, choose, executed
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.core.phrases import plural
from thaw.core.runtime import log
from thaw.exporting.finished_run import replaced, require_new
from thaw.merging import merged_folder
from thaw.merging.merged_folder import branches_of, layers_by_input, sizes_of, stored_bytes
from thaw.merging.proof import proof_summary, prove
from thaw.merging.run_branch import Pretrained, open_branches, recorded_score


def merge(runs: list[Path], target: Path, record: dict | None = None) -> dict:
    """Write some runs, one a task, as one folder that is new or empty, and return its check.

    Args: record, what merge.json is to say beside what is counted; None for no such file. A folder that predicts
    otherwise than its runs did is a UserError, and leaves nothing behind.
    """
    require_new(target)
    pretrained, branches = open_branches(runs)
    with replaced(target) as folder:
        merged_folder.write(pretrained, branches, folder)
        log(f"wrote {plural(len(branches), 'branch', 'branches')} on {plural(merged_folder.depth(folder), 'layer')}")
        report = prove(pretrained, branches, folder)
        if not report["passed"]:
            said = proof_summary(report)
            raise UserError(f"{target} would not predict what its runs did, so it was not written\n{said}")
        write_json(folder / "check.json", report)
        if record is not None:
            write_json(folder / "merge.json", record | counted(folder, pretrained))
    return report


def merge_summary(folder: Path, report: dict) -> str:
    about, lines = read_json(folder / "thaw.json"), [proof_summary(report)]
    stored, layers = executed(merged_folder.sizes_of(folder).values()), about["trunk"]["of"]
    size = stored_bytes(folder) / 1e6
    lines.append(f"{_share(stored, layers * len(about['tasks']))} are stored, {size:,.1f} MB with embeddings and heads")
    for reads, group in merged_folder.layers_by_input(folder, layers).items():
        lines.append(f"{_share(group['executed'], group['of'])} are run for one {reads}: {', '.join(group['tasks'])}")
    warnings = merged_folder.warnings_of(merged_folder.branches_of(folder))
    return "\n".join([*lines, *(f"warning: {line}" for line in warnings)])


def _share(layers: int, of: int) -> str:
    """Return how many layers are left of those of a full model for each task."""
    return f"{layers} of {of} layers ({layers / of:.1%})"


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
    """Return what a merged folder executes and stores, by closed form, next to other ways to serve its tasks.

    A layer counts with the mean of all.
    """
    abouts, sizes = branches_of(folder), sizes_of(folder)
    embeddings = sum(value.numel() for value in pretrained.up_to(0).values())
    every = sum(value.numel() for value in pretrained.tensors.values())
    size = EncoderSize(embeddings, round((every - embeddings) / pretrained.layers), pretrained.layers)
    heads = [about["head_parameters"] for about in abouts.values()]
    layers, of = branch_choice.executed(sizes.values()), len(sizes) * size.layers
    return {
        "layers": {"executed": layers, "of": of, "by_input": layers_by_input(folder, size.layers)},
        "parameters": {
            "merged": branch_choice.stored_merged(sizes.values(), size, heads),
            "separate": branch_choice.stored_separate(size, heads),
        },
        "encoder": asdict(size) | {"width": pretrained.config.hidden_size},
        "bytes": stored_bytes(folder),
    }


def record(spec: dict, digest: str, served: dict[str, ServedRun], results: Path) -> dict:
    tasks = {
        task: {
            "run": run.folder.resolve().relative_to(results.resolve()).as_posix(),
            **asdict(run.size),
            **{name: getattr(run, name) for name in ("strategy", "variant", "validation", "test", "flags")},
        }
        for task, run in served.items()
    }
    return {"spec": spec, "digest": digest, "tasks": tasks}
