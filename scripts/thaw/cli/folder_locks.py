"""Whether Snakemake would find the folder locked by another run, or by one that was killed."""

import contextlib
from pathlib import Path

from thaw.core.errors import UserError
from thaw.planning.plan import Plan

LOCKS = Path(".snakemake/locks")  # of the working folder: lists of the files that runs read and write


def refuse_locked(plan: Plan, files: list[str], further: list[str]) -> None:
    """Raise UserError where a run in this folder has locked files of a plan, or has left its locks.

    Snakemake would say so at each call, amid its own words. As there, two runs may read the same finished results.
    Args: a plan; the files of its experiment; Snakemake's options, of which some ask for no lock or take locks away.
    """
    if {"--nolock", "--unlock"} & set(further) or not LOCKS.is_dir():
        return
    read, written = _locked("input"), _locked("output")
    if not read | written:
        return
    own = {file for step, keys in plan.jobs.items() for key in keys for file in plan.files(step, key)}
    if written & own or any(not Path(file).exists() for file in read & own):
        raise UserError(
            "this folder is locked: another run is at work here, or one was killed. If none is: "
            f"thaw run {' '.join(files)} --unlock, then the same command"
        )


def _locked(kind: str) -> set[str]:
    """Return the files that runs read (`input`) or write (`output`)."""
    files: set[str] = set()
    for lock in LOCKS.glob(f"*.{kind}.lock"):
        with contextlib.suppress(FileNotFoundError):  # that run has ended just now
            files.update(lock.read_text(encoding="utf-8").splitlines())
    return files
