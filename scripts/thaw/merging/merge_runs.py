"""A merge from first to last: a folder is written next to its target, proved, and moved there whole."""

import shutil
from pathlib import Path

from thaw.core.branch_counts import executed
from thaw.core.errors import UserError, suggestion
from thaw.core.files import read_json, write_json
from thaw.core.phrases import plural
from thaw.core.runtime import log
from thaw.exporting.new_folder import replaced, require_new
from thaw.merging import merged_folder
from thaw.merging.proof import proof_summary, prove, unchanged
from thaw.merging.run_branch import Pretrained, RunBranch, check_encoder, open_branches


def merge(runs: list[Path], target: Path, record: dict | None = None, counted=None) -> dict:
    """Write some runs, one a task, as one folder that is new or empty, and return its check.

    Args: record, what merge.json is to say; counted, which returns what else it says of a folder and its encoder. A
    folder that predicts otherwise than its runs did is a UserError, and leaves nothing behind.
    """
    require_new(target, "name a folder that is new, or use --add and --remove to change it")
    pretrained, branches = open_branches(runs)
    with replaced(target) as folder:
        merged_folder.write(pretrained, branches, folder)
        report = _proved(pretrained, branches, folder, target)
        if record is not None:
            write_json(folder / "merge.json", record | counted(folder, pretrained))
    return report


def change(target: Path, add: list[Path], remove: list[str]) -> dict:
    """Replace or add the branches of some runs in a merged folder, remove those of some tasks, and return its check.

    All other branches keep their bytes. The folder changes in one step, or not at all.
    """
    about = merged_folder.open_folder(target)
    if unknown := [task for task in remove if task not in about["tasks"]]:
        raise UserError(f"{target} has no task {unknown[0]}{suggestion(unknown[0], about['tasks'])}")
    pretrained, branches = open_branches(add) if add else (None, [])
    if pretrained:
        check_encoder(about["encoder"], pretrained.folder, str(target))
    gone = {*remove, *(branch.task for branch in branches)}
    if not branches and gone >= set(about["tasks"]):
        raise UserError(f"{target} would have no task left; delete the folder instead")
    with replaced(target) as folder:
        kept = sorted(set(about["tasks"]) - gone)
        for task in kept:
            shutil.copytree(target / "branches" / task, folder / "branches" / task)
        for branch in branches:
            merged_folder.write_branch(branch, folder / "branches" / branch.task)
        if pretrained:
            merged_folder.write_trunk(pretrained, folder)
        else:
            pretrained = merged_folder.pretrained_of(target, about)
            merged_folder.copy_trunk(pretrained, folder)
        merged_folder.finish(pretrained, folder)
        report = _proved(pretrained, branches, folder, target)
        same = unchanged(target, folder, kept)
        if not all(same.values()):
            raise UserError(f"{target}: other tasks would change ({same}), so it was left as it is")
        old = read_json(target / "check.json")["tasks"]
        report |= {"tasks": {task: old[task] for task in kept} | report["tasks"], "kept": same}
        write_json(folder / "check.json", report)
    return report


def merge_summary(folder: Path, report: dict) -> str:
    """Return the outcome of a merge in words."""
    about, lines = read_json(folder / "thaw.json"), [proof_summary(report)]
    if kept := report.get("kept"):
        lines.append(f"unchanged to the byte: {', '.join(task for task, same in kept.items() if same)}")
    stored, layers = executed(merged_folder.sizes_of(folder).values()), about["trunk"]["of"]
    lines.append(f"{_share(stored, layers * len(about['tasks']))} are stored")
    for reads, group in merged_folder.layers_by_input(folder, layers).items():
        lines.append(f"{_share(group['executed'], group['of'])} are run for one {reads}: {', '.join(group['tasks'])}")
    warnings = merged_folder.warnings_of(merged_folder.branches_of(folder))
    return "\n".join([*lines, *(f"warning: {line}" for line in warnings)])


def _share(layers: int, of: int) -> str:
    """Return how many layers are left of those of a full model for each task."""
    return f"{layers} of {of} layers ({layers / of:.1%})"


def _proved(pretrained: Pretrained, branches: list[RunBranch], folder: Path, target: Path) -> dict:
    """Return the check of a folder, which is written into it; one that failed is a UserError."""
    written = plural(len(merged_folder.branches_of(folder)), "branch", "branches")
    log(f"wrote {written} on {plural(merged_folder.depth(folder), 'layer')}")
    report = prove(pretrained, branches, folder)
    if not report["passed"]:
        raise UserError(f"{target} would not predict what its runs did, so it was not written\n{proof_summary(report)}")
    write_json(folder / "check.json", report)
    return report
