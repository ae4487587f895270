"""Which files come with those that a job reads: what their jobs wrote next to them and declare. No torch.

On a shared file system a step finds them there, and jobs depend on one file of each result: a finished result of an
older version, or a payload that was deleted to free disk, makes nothing run again. Where each job has a folder of its
own, it sees what it names as input, and these are named too.
"""

from pathlib import PurePath

from thaw.core import layout
from thaw.declarations.encoders import ENCODER_KINDS
from thaw.declarations.output_kind import FORMATS
from thaw.planning.plan import Plan

# Steps whose results tables, figures and reports read; of the stores they read the cards and the tokens.
SHOWN = ("prepare", "fetch", "pretrain", "features", "train", "fit_heads", "search_heads", "select", "teach")
SHOWN += ("baseline", "external", "ensemble", "probe")
NAME = "[a-z0-9_]+"
OF_PARTS = ("features", "teach")  # steps that write a payload for each part, with a card of its own


def next_to(plan: Plan, files: list[str]) -> list[str]:
    """Return what jobs wrote next to files of their results."""
    jobs = ((file, job) for file in files if (job := _job(plan, file)))
    return list(dict.fromkeys(name for file, job in jobs for name in _written(plan, *job, PurePath(file))))


def as_declared(plan: Plan, file: str) -> str:
    """Return a file of a job's result, or its folder where the job declares that as a whole.

    Of a folder and a file in it Snakemake would fetch one, and take the other for fetched.
    """
    job = _job(plan, file)
    return str(PurePath(file).parent) if job and job[0] in layout.WHOLE else file


def shown(plan: Plan) -> list[str]:
    """Return all files of results that outputs may read."""
    files = [file for step in SHOWN for key in plan.jobs[step] for file in plan.files(step, key)]
    parts = {card for step in OF_PARTS for key in plan.jobs[step] for card in plan.files(step, key)[1:]}
    read = next_to(plan, [file for file in files if file not in parts])
    return [*(as_declared(plan, file) for file in files), *read]


def drawn(files: list[str]) -> list[str]:
    """Return tables and figures in all their formats. Args: the file of each by which it is known to be done."""
    return [str(PurePath(file).with_suffix(ending)) for file in files for ending in _endings(file)]


def runs_by_keeping(plan: Plan) -> tuple[str, str]:
    """Return, as patterns for the wildcard `task`, the runs that do not keep their encoder, and those that do.

    The second is empty where there are none. A pattern looks at the path that follows, up to the seed, so that of one
    cell some seeds may be among the first and some among the second.
    """
    cells: dict[str, dict[str, bool]] = {}
    for key, job in plan.jobs["train"].items():
        names = layout.names_in_folder("train", key)
        cell, seed = layout.cell(names).partition("/")[2], layout.of_seed(names["seed"])
        cells.setdefault(cell, {})[seed] = bool(job.spec["keep"])
    runs = [f"{cell}/" if all(seeds.values()) else f"{cell}/{_any(seeds)}/" for cell, seeds in cells.items()]
    runs = "|".join(run for run, seeds in zip(runs, cells.values(), strict=True) if any(seeds.values()))
    return (f"(?!(?:{runs})){NAME}", f"(?=(?:{runs})){NAME}") if runs else (NAME, "")


def _any(seeds: dict[str, bool]) -> str:
    """Return, as a pattern, the seeds that keep their encoder."""
    return f"(?:{'|'.join(seed for seed, keeps in seeds.items() if keeps)})"


def _job(plan: Plan, file: str) -> tuple[str, str] | None:
    """Return step and key of the job whose result a file is; None for a file that is no result of a job."""
    path = PurePath(file)
    if not path.is_relative_to(plan.results):
        return None
    folder = path.relative_to(plan.results).parent.as_posix()
    for step, jobs in plan.jobs.items():
        try:
            key = layout.key(step, layout.names_in_folder(step, folder))
        except ValueError:
            continue
        if key in jobs and (step in OF_PARTS or path.name == PurePath(plan.files(step, key)[0]).name):
            return step, key
    return None


def _written(plan: Plan, step: str, key: str, path: PurePath) -> list[str]:
    """Return what a job writes next to one of its declared files."""
    if step in layout.WHOLE:
        return []
    if step == "features":
        encoder = layout.encoder_of(layout.names_in_key(step, key)["weights"])
        spelt = path.name == "tokens.json" and _is_spelt(plan, encoder)
        return [layout.payload(str(path)), *([str(path.with_name(layout.SPELLINGS))] if spelt else [])]
    if step == "teach" and path.name != PurePath(plan.files(step, key)[0]).name:
        return [layout.payload(str(path))]
    names = layout.WRITTEN.get(step, ())
    if step == "teach" and _is_spelt(plan, layout.names_in_key(step, key)["encoder"]):
        names = (*names, layout.SPELLINGS)
    if step == "train" and plan.job(step, key).spec["keep"]:
        names = (*names, layout.ENCODER)
    return [str(path.with_name(name)) for name in names]


def _is_spelt(plan: Plan, encoder: str) -> bool:
    """Return whether the tokens of an encoder have no vocabulary."""
    return ENCODER_KINDS[plan.catalogue.get("encoders", encoder, "encoders").kind].spelt


def _endings(file: str) -> list[str]:
    return next(endings for endings in map(list, FORMATS.values()) if file.endswith(endings[0]))
