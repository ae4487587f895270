"""Whether a merged folder predicts what its runs do: a fresh process reads the test splits again, from text.

Compared are: all tasks with their runs' recorded predictions and tensors; with exports of the single runs, to the bit;
all tasks of an input at once with each alone, to the bit; the layers that ran with the closed form; the trunk's
tensors with those of the shared encoder, to the bit.
"""

import tempfile
from pathlib import Path

from safetensors.torch import load_file

from thaw.core.branch_choice import executed
from thaw.core.phrases import plural
from thaw.core.runtime import log
from thaw.exporting import formats
from thaw.exporting.checking import (
    MAY_CHANGE,
    TOLERANCE,
    FreshProcess,
    checked,
    compare,
    examples,
    passes,
    predictions_of,
)
from thaw.merging.merged_folder import branches_of, depth, input_of
from thaw.merging.run_branch import Pretrained, RunBranch
from thaw.schema.experiment import threads_of

SAME = 256  # examples that are compared to the bit


def prove(pretrained: Pretrained, branches: list[RunBranch], folder: Path) -> dict:
    """Return the comparison of a folder with some of its runs, as check.json has it."""
    compute = [threads_of(branch.source.spec) for branch in branches]
    with FreshProcess(max(compute, default=1)) as process:
        tasks = {branch.task: _task(process, branch, folder) for branch in branches}
        together = _together(process, branches, folder)
    trunk = _trunk(pretrained, folder)
    passed = all(part["passed"] for part in (*tasks.values(), *together.values(), trunk))
    report = {"passed": passed, "tolerance": TOLERANCE, "may_change": MAY_CHANGE}
    return report | {"tasks": tasks, "inputs": together, "trunk": trunk}


def _task(process: FreshProcess, branch: RunBranch, folder: Path) -> dict:
    """Compare one task's predictions with its run's, and to the bit with those of an export of the run."""
    log(f"{branch.task}: a fresh process reads the test splits again")
    source, size = branch.source, branch.size
    splits = {
        split: compare(source, split, predictions_of(process, source, split, folder, branch.task))
        for split in checked(source)
    }
    some = examples(source, checked(source)[0])[:SAME]
    with tempfile.TemporaryDirectory(prefix=f".{branch.task}.", dir=folder.parent) as single:
        formats.write(source, Path(single))
        merged, alone = process.ask(some, folder, Path(single), tasks=[branch.task])["replies"]
    same = merged["predictions"][branch.task] == alone["predictions"][""]
    layers, expected = merged["layers"], merged["batches"] * (size.frozen + size.own)
    return {
        "passed": same and layers == expected and all(map(passes, splits.values())),
        "splits": splits,
        "same_bits": {"examples": len(some), "equal": same},
        "layers": {"counted": layers // merged["batches"], "expected": size.frozen + size.own},
    }


def _together(process: FreshProcess, branches: list[RunBranch], folder: Path) -> dict[str, dict]:
    """Compare all tasks of each input at once with each of them alone, and count the layers that run."""
    groups: dict[str, list[RunBranch]] = {}
    for branch in branches:
        groups.setdefault(input_of(branch.about), []).append(branch)
    compared = {}
    for name, group in groups.items():
        tasks = [branch.task for branch in group]
        texts = examples(group[0].source, checked(group[0].source)[0])[:SAME]
        (at_once,) = process.ask(texts, folder, tasks=tasks)["replies"]
        equal = True
        for task in tasks:
            (alone,) = process.ask(texts, folder, tasks=[task])["replies"]
            equal = equal and alone["predictions"][task] == at_once["predictions"][task]
        expected = executed(branch.size for branch in group)
        counted = at_once["layers"] / at_once["batches"]
        compared[name] = {"passed": equal and counted == expected, "tasks": tasks, "examples": len(texts)}
        compared[name] |= {"equal": equal, "layers": {"counted": counted, "expected": expected}}
    return compared


def _trunk(pretrained: Pretrained, folder: Path) -> dict:
    """Compare the trunk's tensors with the shared encoder's; no branch may have one that is below its start."""
    trunk, expected = load_file(folder / "trunk.safetensors"), pretrained.up_to(depth(folder))
    equal = trunk.keys() == expected.keys() and all(trunk[name].equal(value) for name, value in expected.items())
    low = [
        name
        for task, about in branches_of(folder).items()
        for name in load_file(folder / "branches" / task / "layers.safetensors")
        if pretrained.anatomy.component(name) <= about["frozen"]
    ]
    found = {"passed": equal and not low, "tensors": len(trunk), "equal": equal, "below_a_branch": low}
    return found | {"whose": pretrained.whose}


def proof_summary(report: dict) -> str:
    """Return the outcome in words, some lines for each task."""
    lines = []
    for task, part in report["tasks"].items():
        same, layers = part["same_bits"], part["layers"]
        words = "equal to the bit" if same["equal"] else "NOT equal to the bit"
        lines.append(f"{task}: {words} to the single run on {same['examples']} examples; {layers['counted']} layers")
        for split, compared in part["splits"].items():
            lines.append(
                f"  {split}: {compared['changed']} of {compared['answers']} predictions are others than recorded; "
                f"largest difference from the run's own tensors {compared['largest_difference']:.1e}"
            )
    for name, part in report["inputs"].items():
        words = "as alone" if part["equal"] else "NOT as alone"
        layers = part["layers"]
        lines.append(
            f"{name}: {plural(len(part['tasks']), 'task')} at once: predictions {words}; {layers['counted']:g} layers "
            f"ran, {layers['expected']} expected"
        )
    words = "equal" if report["trunk"]["equal"] else "NOT equal"
    return "\n".join([*lines, f"trunk: {report['trunk']['tensors']} tensors, {words} to {report['trunk']['whose']}"])
