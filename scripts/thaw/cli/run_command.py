"""Run an experiment with Snakemake; finished results stay, and only what is missing is computed.

thaw run my.yaml                                   the experiment, and overlays after it
thaw run my.yaml --config data_dir=path --cores 4  every option of Snakemake
thaw run my.yaml --dry-run                         what would run
thaw run my.yaml --workflow-profile slurm          on a cluster

Without a file it runs config/config.yaml of this folder, else the demo. Results are written to ./results. The exit code
is Snakemake's; `snakemake --help` describes its options.
"""

import contextlib
import os
import sys
from pathlib import Path

from pydantic import ValidationError

from thaw.cli.selection import DEFAULT, configuration, leading_files, parser_of, with_flags
from thaw.core import fork_server
from thaw.core.home import HOME, PACKAGE
from thaw.core.runtime import machine_size
from thaw.schema.experiment import ComputeConfig

PROFILE = "--workflow-profile"
HELP = ("-h", "--help")
# Options of Snakemake with which it starts jobs on this machine.
STARTING = {"--cores", "-c", "--config", "-C", "--configfile", "--keep-going", "-k", "--printshellcmds", "-p"}


def main(words: list[str]) -> None:
    """Become Snakemake on the experiment that a command line begins with."""
    if any(word in HELP for word in words):
        print(__doc__)
        return
    files, further = leading_files(words)
    named = files or any(word.startswith("--configfile") for word in further)
    if not named and DEFAULT.is_file():
        files = [str(DEFAULT)]
    elif not named:
        print("no experiment is named: this is the demo; thaw run my.yaml runs yours", file=sys.stderr)
    become_snakemake(files, further)


def demo(words: list[str]) -> None:
    """Run the demo; the words are Snakemake's."""
    if any(word in HELP for word in words):
        print("Run the demo, config/config.yaml of Thaw; further options are Snakemake's.\n\nthaw demo --cores 2")
        return
    become_snakemake([str(HOME / DEFAULT)], words)


def become_snakemake(files: list[str], further: list[str]) -> None:
    """Replace this process by Snakemake, so that signals and the exit code are its own."""
    # A broken file or value is one sentence of ours; Snakemake would show where in its code it noticed.
    given, _ = with_flags(parser_of("run", __doc__)).parse_known_args(further)
    config = configuration([*files, *given.configfile], given.config)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    os.environ.update({"PATH": path, "THAW_RUN": "1"})
    if threads := threads_of_jobs_here(config, further):
        fork_server.start(PACKAGE.parent, threads, ("models",))
    sys.stdout.flush()
    os.execve(sys.executable, snakemake_command(files, further), os.environ)


def threads_of_jobs_here(config: dict, further: list[str]) -> int | None:
    """Return the threads of a job if jobs will run on this machine, so that it may prepare while Snakemake starts.

    Only for certain: options that start jobs, no profile of the user's, one experiment, and a core to spare.
    """
    options = {word.split("=")[0] for word in further if word.startswith("-")}
    profiles = Path("profiles/default").is_dir() or "SNAKEMAKE_PROFILE" in os.environ
    if "experiments" in config or not options <= STARTING or profiles or machine_size()["cores"] == 1:
        return None
    with contextlib.suppress(ValidationError):  # which Snakemake reports
        return ComputeConfig.model_validate(config.get("compute", {})).threads
    return None


def snakemake_command(files: list[str], further: list[str]) -> list[str]:
    """Return the command of Snakemake for an experiment, under the default profile; a later option overrides it."""
    command = [sys.executable, "-m", "snakemake", *(["--configfile", *files] if files else [])]
    command += ["--snakefile", str(HOME / "Snakefile")]
    command += [] if Path("profiles/default").is_dir() else [PROFILE, str(HOME / "profiles/default")]
    return [*command, *further]
