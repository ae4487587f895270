"""Run an experiment with Snakemake; finished results stay, and only what is missing is computed.

thaw run my.yaml                                   the experiment, and overlays after it
thaw run my.yaml --config data_dir=path --cores 4  every option of Snakemake
thaw run my.yaml --dry-run                         what would run
thaw run my.yaml --workflow-profile slurm          on a cluster

Without a file it runs config/config.yaml of this folder, else the demo. Results are written to ./results. The exit code
is Snakemake's; `snakemake --help` describes its options.
"""

import os
import sys
from pathlib import Path

from thaw.cli.selection import DEFAULT, configuration, leading_files, parser_of, with_flags
from thaw.core.home import HOME

PROFILE = "--workflow-profile"
HELP = ("-h", "--help")


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
    configuration([*files, *given.configfile], given.config)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    sys.stdout.flush()
    os.execve(sys.executable, snakemake_command(files, further), os.environ | {"PATH": path, "THAW_RUN": "1"})


def snakemake_command(files: list[str], further: list[str]) -> list[str]:
    """Return the command of Snakemake for an experiment, under the default profile; a later option overrides it."""
    command = [sys.executable, "-m", "snakemake", *(["--configfile", *files] if files else [])]
    command += ["--snakefile", str(HOME / "Snakefile")]
    command += [] if Path("profiles/default").is_dir() else [PROFILE, str(HOME / "profiles/default")]
    return [*command, *further]
