"""Run an experiment with Snakemake; finished results stay, and only what is missing is computed.

thaw run my.yaml                                   the experiment, and overlays after it
thaw run my.yaml --config data_dir=path --cores 4  every option of Snakemake
thaw run my.yaml --dry-run                         what would run
thaw run my.yaml --workflow-profile slurm          on a cluster
thaw run my.yaml --no-server                       leave no process behind that has imported the libraries
thaw demo --cores 2                                the demo, which is run where no other experiment is here

Without a file it runs the only experiment in this folder, else its config/config.yaml, else the demo. Results are
written to ./results. The exit code is Snakemake's; `snakemake --help` describes its options. At a terminal two
processes wait ten minutes for the next command in this folder, which then starts some seconds sooner.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from thaw.cli.selection import DEFAULT, configuration, default_file, leading_experiment
from thaw.core import fork_server, lasting_servers
from thaw.core.fork_client import stop_with
from thaw.core.home import HOME, PACKAGE
from thaw.core.runtime import machine_size
from thaw.schema.experiment import ComputeConfig

PROFILE = "--workflow-profile"
HELP = ("-h", "--help")
# Options of Snakemake with which it starts jobs on this machine.
STARTING = {"--cores", "-c", "--keep-going", "-k", "--printshellcmds", "-p"}


def main(words: list[str]) -> None:
    if any(word in HELP for word in words):
        print(__doc__)
        return
    given, further = leading_experiment("run", lasting_servers.refuse(words))
    given.configfile = given.configfile or [default_file()]
    if given.configfile == [str(HOME / DEFAULT)]:
        print("no experiment is named: this is the demo; thaw run my.yaml runs yours", file=sys.stderr)
    run_snakemake(given, further)


def demo(words: list[str]) -> None:
    """Run the demo, config/config.yaml of Thaw; the words are Snakemake's."""
    main([str(HOME / DEFAULT), *words])


def run_snakemake(given: argparse.Namespace, further: list[str]) -> None:
    """Run Snakemake in this process, which ends with its exit code: another one would import all this again.

    Args: the experiment's files and single keys, as `leading_experiment` has them; Snakemake's options.
    """
    # A broken file or value is one sentence of ours; Snakemake would show where in its code it noticed.
    config = configuration(given.configfile, given.config)
    ready_for_jobs(threads_of_jobs_here(config, further), ("models",))
    from snakemake.cli import main as snakemake

    arguments = snakemake_arguments(given, further)
    sys.argv = ["snakemake", *arguments]  # by which it calls itself in messages
    with graceful_interrupt():
        snakemake(arguments)


def ready_for_jobs(threads: int | None, servers: tuple[str, ...]) -> None:
    """Set what jobs find in their environment, and start servers that jobs here are forked from.

    Args: the threads of a job, None where it is not certain that jobs run here; kinds of servers.
    """
    fork_server.prepare_environment()
    if threads:
        fork_server.start(PACKAGE.parent, threads, servers)


def _interrupt() -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def graceful_interrupt(on_first=_interrupt, on_third=lambda: None):
    """Let the first Ctrl-C stop Snakemake, which ends its jobs, and say what is next; only a third one ends it at once.

    A second one would interrupt the ending of jobs. Where a shell ignores Ctrl-C, as behind a script, it stays ignored.
    Args: what the first one does; what the third one does before it ends this process.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    times = []

    def stop(number, frame):
        times.append(number)
        if len(times) == 1:
            print("\nstopping, once the jobs have ended; Ctrl-C twice more does not wait for them", file=sys.stderr)
            on_first()
        if len(times) > 2:
            on_third()
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if times:
            print("stopped; what is finished stays, and the same command goes on from there", file=sys.stderr)


def threads_of_jobs_here(config: dict, further: list[str]) -> int | None:
    """Return the threads of a job if jobs will run on this machine, so that it may prepare while Snakemake starts.

    Only for certain: options that start jobs, no profile of the user's, and a core to spare.
    """
    options = {word.split("=")[0] for word in further if word.startswith("-")}
    profiles = Path("profiles/default").is_dir() or "SNAKEMAKE_PROFILE" in os.environ
    if not options <= STARTING or profiles or machine_size()["cores"] == 1:
        return None
    with contextlib.suppress(ValidationError):  # which Snakemake reports
        return min(ComputeConfig.model_validate(config.get("compute", {})).threads, _cores_given(further))
    return None


def _cores_given(further: list[str]) -> int:
    """Return how many cores Snakemake may use by its options: of this machine all, unless they say a number."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--cores", "-c", nargs="?")
    with contextlib.suppress(argparse.ArgumentError, TypeError, ValueError):  # no number, as `all`
        return max(1, int(parser.parse_known_args(further)[0].cores))
    return machine_size()["cores"]


def run_in_subprocess(
    given: argparse.Namespace, further: list[str], results: list[str], output=None, meanwhile: Callable = int
) -> int:
    """Run Snakemake in a process of its own and return its exit code; a job that fails stops no other one.

    What ends this process ends Snakemake first, as it ends `thaw run`, and this process once its jobs have ended. They
    are a process group of their own, to which that is passed on: else Ctrl-C in a terminal, which reaches a whole
    group, and a signal to this process alone would look the same, and would come twice or never. Args: as of
    `run_snakemake`; the results to make, none for all of them; the open file for what Snakemake prints; what is
    done some times a second until it ends.
    """
    command = snakemake_command(given, ["--keep-going", *further])
    command += ["--", *results] if results else []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)}
    ended = []

    def pass_on(number: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(process.pid, number)

    def end(number: int) -> None:
        ended.append(number)
        pass_on(number)

    stop = stop_with(pass_on, signal.SIGTSTP)  # of which its jobs hear from Snakemake's group

    with subprocess.Popen(command, process_group=0, stdout=output, stderr=output) as process:
        try:
            for number in (number for number, handler in before.items() if handler is not signal.SIG_IGN):
                signal.signal(number, stop if number == signal.SIGTSTP else lambda number, _: end(number))
            with graceful_interrupt(lambda: end(signal.SIGINT), lambda: end(signal.SIGKILL)):
                while (code := process.poll()) is None:
                    meanwhile()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(0.2)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    if ended:
        sys.exit(max(code, 1) if ended[0] == signal.SIGINT else 128 + ended[0])
    return code


def snakemake_command(given: argparse.Namespace, further: list[str]) -> list[str]:
    """Return the command of Snakemake for an experiment, in a process of its own."""
    return [sys.executable, "-m", "snakemake", *snakemake_arguments(given, further)]


def snakemake_arguments(given: argparse.Namespace, further: list[str]) -> list[str]:
    """Return Snakemake's arguments for an experiment, under the default profile; a later option overrides it."""
    arguments = ["--configfile", *given.configfile] if given.configfile else []
    arguments += ["--config", *given.config] if given.config else []
    arguments += ["--snakefile", str(HOME / "Snakefile")]
    arguments += [] if Path("profiles/default").is_dir() else [PROFILE, str(HOME / "profiles/default")]
    return [*arguments, *further]
