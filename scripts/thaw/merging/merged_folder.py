"""The files of a merged folder: the trunk once, a folder for each branch, and the code that loads them."""

import inspect
import shutil
from pathlib import Path

from thaw.core import branch_choice
from thaw.core.branch_choice import BranchSize
from thaw.core.files import read_json, save_tensors, write_json, write_text
from thaw.declarations.flags import flag_label
from thaw.encoders import resume
from thaw.exporting import standalone_model
from thaw.exporting.formats import write_tokenizer
from thaw.merging import merged_model
from thaw.merging.run_branch import Pretrained, RunBranch

FORM = "merged"
OWN_IMPORTS = {  # lines of model.py, as they are here and in a folder
    "from thaw.encoders import resume": "import resume",
    "from thaw.exporting import standalone_model": "import standalone_model",
}
READ = {"text": '["a text"]', "pair": '[["a text", "another"]]', "words": '[["a", "few", "words"]]'}  # in the card
LONGEST = 10**6  # tokens: the branches say how long their texts may be


def write(pretrained: Pretrained, branches: list[RunBranch], folder: Path) -> None:
    """Write the branches of some runs into an empty folder, the trunk that they need, code, card and thaw.json."""
    for branch in branches:
        place = folder / "branches" / branch.task
        place.mkdir(parents=True)
        save_tensors(place / "layers.safetensors", branch.tensors)
        save_tensors(place / "head.safetensors", branch.head)
        write_json(place / "branch.json", branch.about)
    save_tensors(folder / "trunk.safetensors", pretrained.up_to(depth(folder)))
    pretrained.config.save_pretrained(folder)
    write_tokenizer(pretrained.folder, False, LONGEST, folder)
    if any(branch.about["reads"] == "words" for branch in branches):
        write_tokenizer(pretrained.folder, True, LONGEST, folder / "words")
    code = Path(merged_model.__file__).read_text(encoding="utf-8")
    for ours, own in OWN_IMPORTS.items():
        code = code.replace(ours, own)
    found = "sys.path.insert(0, str(Path(__file__).parent))  # for the two modules of this folder\n"
    first = next(iter(OWN_IMPORTS.values()))
    write_text(folder / "model.py", code.replace(f"\n{first}\n", f"\n{found}{first}\n"))
    for module in (resume, standalone_model):
        file = inspect.getfile(module)
        shutil.copyfile(file, folder / Path(file).name)
    write_text(folder / "README.md", card(pretrained, folder))
    anatomy = pretrained.anatomy
    names = {name: getattr(anatomy, name) for name in ("layers", "form", "parts", "outputs", "owner")}
    about = {"form": FORM, "encoder": pretrained.about, "anatomy": names, "tasks": sorted(branches_of(folder))}
    about |= {"trunk": {"layers": depth(folder), "of": pretrained.layers}}
    write_json(folder / "thaw.json", about)


def branches_of(folder: Path) -> dict[str, dict]:
    return {path.parent.name: read_json(path) for path in sorted(folder.glob("branches/*/branch.json"))}


def warnings_of(abouts: dict[str, dict]) -> list[str]:
    """Return what the flags of runs say, a sentence each. Args: by task its branch.json."""
    return [f"{task}: {flag_label(flag)}" for task, about in abouts.items() for flag in about["flags"]]


def sizes_of(folder: Path) -> dict[str, BranchSize]:
    return {task: BranchSize(about["frozen"], len(about["layers"])) for task, about in branches_of(folder).items()}


def layers_by_input(folder: Path, layers: int) -> dict[str, dict]:
    """Return for each input how many layers one text of it executes, of how many in full models, and its tasks.

    Args: the layers of the encoder.
    """
    inputs = {task: input_of(about) for task, about in branches_of(folder).items()}
    counts = branch_choice.executed_by_input(sizes_of(folder), inputs)
    readers = {name: [task for task, reads in inputs.items() if reads == name] for name in counts}
    return {
        name: {"executed": count, "of": layers * len(readers[name]), "tasks": readers[name]}
        for name, count in counts.items()
    }


def depth(folder: Path) -> int:
    return max(size.frozen for size in sizes_of(folder).values())


def stored_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.safetensors"))


def input_of(about: dict) -> str:
    """Return in words what a branch reads: tasks of the same words share a pass of the trunk."""
    pairs = ", separately" if about["pairs"] == "separate" else ""
    return f"{about['reads']}{pairs}, at most {about['max_length']} tokens"


def card(pretrained: Pretrained, folder: Path) -> str:
    abouts = branches_of(folder)
    tests = {task: about["test"] for task, about in abouts.items()}
    scores = {
        task: f"{one['metric']} {one['value']:.4f} on {one['split']}" if one else "" for task, one in tests.items()
    }
    rows = [
        f"| {task} | {input_of(about)} | {', '.join(about['labels']) or 'a score'} | {about['frozen']} + "
        f"{len(about['layers'])} | {scores[task]} | {about['run']} |"
        for task, about in abouts.items()
    ]
    titles = "| task | reads | labels | layers: shared + own | test score of the run | run |"
    table = "\n".join([titles, "|---|---|---|---|---|---|", *rows])
    warnings = "".join(f"\n\nWarning: {line}." for line in warnings_of(abouts))
    task, about = next(iter(abouts.items()))
    use = f'    from model import Model\n    Model().predict({READ[about["reads"]]}, tasks=["{task}"])'
    return (
        "---\nlibrary_name: thaw\n---\n\n"
        f"# {len(abouts)} tasks on one trunk, {pretrained.about['name']}\n\nThe first {depth(folder)} of "
        f"{pretrained.layers} layers are {pretrained.whose} and run once for all tasks that read the same input."
        f"\n\n{table}{warnings}\n\n## Use\n\n{use}\n"
    )
