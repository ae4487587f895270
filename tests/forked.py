"""Commands of ours in processes of their own, forked from one that has imported what takes seconds.

A step imports torch and transformers in five seconds, Snakemake starts in one and a half. Tests of what a command
prints and leaves run it here. What a process imports is tried in fresh ones, and so is what Snakemake starts.
"""

import multiprocessing
import os
import runpy
import sys
import tempfile
from pathlib import Path
from subprocess import CompletedProcess

IMPORTED = ["snakemake.cli", "pandas", "matplotlib.pyplot", "transformers.modeling_utils"]
# What Snakemake and the Snakefile import in addition, half of the seconds of a dry run.
IMPORTED += ["snakemake.report.html_reporter", "snakemake.storage", "smart_open"]
IMPORTED += ["thaw.cli.show_command", "thaw.planning.run_progress", "thaw.planning.run_progress"]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(IMPORTED)


def _become(command: list[str], folder: str, environment: dict, files: list[str]) -> None:
    """Be the process of a command; the files are its stdin, stdout and stderr."""
    for number, name in enumerate(files):
        os.dup2(os.open(name, os.O_WRONLY if number else os.O_RDONLY), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin, sys.argv = open(0, encoding="utf-8"), command  # noqa: SIM115 - open until the process ends
    if command[0].endswith(".py"):
        sys.path.insert(0, str(Path(command[0]).parent))
        runpy.run_path(command[0], run_name="__main__")
    else:
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)


def start(command, files: list[str], folder=".", environment: dict | None = None):
    """Start a script (its path) or a module (its name) with arguments; return the process, of multiprocessing."""
    words, given = [str(word) for word in command], os.environ if environment is None else environment
    process = CONTEXT.Process(target=_become, args=(words, os.path.abspath(folder), dict(given), files))
    process.start()
    return process


def run(command, folder=".", environment: dict | None = None, given: str = "", seconds=600) -> CompletedProcess:
    """Run a script (its path) or a module (its name) with arguments, as subprocess.run does; `given` is its stdin."""
    with tempfile.TemporaryDirectory() as here:
        files = [f"{here}/{name}" for name in ("in", "out", "err")]
        for file, text in zip(files, (given, "", ""), strict=True):
            Path(file).write_text(text, encoding="utf-8")
        process = start(command, files, folder, environment)
        process.join(seconds)
        assert process.exitcode is not None or process.kill(), f"{command[0]} did not end in {seconds} seconds"
        return CompletedProcess(command, process.exitcode, *(Path(file).read_text() for file in files[1:]))
