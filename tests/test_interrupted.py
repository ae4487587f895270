"""What `thaw advise` leaves when it is stopped, and says after a run that was killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from jobs_of_server import lives, state, until
from thaw.core.errors import UserError
from tiny import tiny_encoder
from workflow import HOME, Workplace

# A process of Snakemake that is slow to stop, with a job, and the part of a command that waits for it.
SNAKEMAKE = """
import pathlib, signal, subprocess, sys, time
job = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stderr=subprocess.DEVNULL)
pathlib.Path("job").write_text(str(job.pid))
try:
    job.wait()
except KeyboardInterrupt:
    job.wait()
    time.sleep(1)
    pathlib.Path("stopped").write_text("")
    sys.exit(1)
"""
WAITING = """
import argparse, sys
from thaw.cli import run_command
from thaw.core.runtime import run_step
run_command.snakemake_command = lambda *_: [sys.executable, "snakemake.py"]
given = argparse.Namespace(configfile=[], config=[])
run_step(lambda: print(run_command.run_in_subprocess(given, [], [])))
"""


def started(folder, *command: str, environment: dict | None = None) -> subprocess.Popen:
    """Start a command as a process group of its own, as a shell does."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    own = (environment or os.environ) | {"PYTHONPATH": str(HOME / "scripts")}
    return subprocess.Popen([sys.executable, *command], cwd=folder, env=own, process_group=0, **pipes)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="asks /proc which processes run")
@pytest.mark.parametrize(
    ("send", "signals", "status"),
    [
        pytest.param(os.killpg, [signal.SIGINT], 1, id="ctrl-c, as a terminal does"),
        pytest.param(os.killpg, [signal.SIGINT] * 3, -signal.SIGINT, id="ctrl-c three times"),
        pytest.param(os.kill, [signal.SIGINT], 1, id="to the command alone"),
        pytest.param(os.kill, [signal.SIGTERM], 143, id="terminated"),
        pytest.param(os.killpg, [signal.SIGHUP], 129, id="hung up"),
    ],
)
def test_what_ends_a_command_ends_snakemake_and_its_jobs_first(tmp_path, send, signals, status):
    (tmp_path / "snakemake.py").write_text(SNAKEMAKE)
    with started(tmp_path, "-c", WAITING) as command:
        until(lambda: (tmp_path / "job").exists() and (tmp_path / "job").read_text())
        for number in signals:
            time.sleep(0.3)
            send(command.pid, number)
        _, said = command.communicate(timeout=60)
    assert command.returncode == status and "Traceback" not in said
    assert not lives(int((tmp_path / "job").read_text()))
    if signals[0] == signal.SIGINT:
        assert said.count("stopping, once the jobs have ended") == 1
    if signals == [signal.SIGINT]:
        assert (tmp_path / "stopped").exists(), "the command has waited for Snakemake"
        assert "stopped; what is finished stays, and the same command goes on from there" in said


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="asks /proc which processes run")
def test_ctrl_z_stops_snakemake_and_its_jobs_until_the_command_goes_on(tmp_path):
    (tmp_path / "snakemake.py").write_text(SNAKEMAKE)
    with started(tmp_path, "-c", WAITING) as command:
        until(lambda: (tmp_path / "job").exists() and (tmp_path / "job").read_text())
        job = int((tmp_path / "job").read_text())
        command.send_signal(signal.SIGTSTP)
        until(lambda: state(job) == state(command.pid) == "T")
        command.send_signal(signal.SIGCONT)
        until(lambda: state(job) == state(command.pid) == "S")
        command.terminate()
        assert command.wait(60) == 143 and not lives(job)


@pytest.fixture(scope="module")
def place(tmp_path_factory, servers):
    """A workplace of which nothing has run."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    more = {
        "tasks": ["colour"],
        "strategies": ["linear_probe", "short_full"],
        "outputs": ["main_table"],
        "allow_missing": True,
    }
    place.write("mine.yaml", Workplace.experiment("mine", **more))
    place.write("other.yaml", Workplace.experiment("other", **more))
    place.servers = servers
    return place


def test_a_stopped_command_leaves_no_lock_and_a_killed_one_is_told_of(place):
    locks = place.folder / ".snakemake/locks"
    words = ("-m", "thaw.cli.main", "advise", "mine.yaml", "--cores", "1")
    with started(place.folder, *words, environment=place.environment) as stopped:
        until(lambda: any(locks.glob("*.lock")))
        stopped.send_signal(signal.SIGINT)
        said = "".join(stopped.communicate(timeout=100))
    assert stopped.returncode == 1 and "the same command goes on from there" in said
    assert "half-written" not in said.splitlines()[-1] and not list(locks.glob("*.lock"))

    locks.mkdir(exist_ok=True)
    (locks / "0.output.lock").write_text("results/runs/colour/all/tiny/linear/linear_probe/base/seed1/metrics.json\n")
    with started(place.folder, *words, environment=place.environment) as refused:
        said = refused.communicate(timeout=60)[1]
    (locks / "0.output.lock").unlink()
    assert refused.returncode == 1 and said == (
        "error: this folder is locked: another run is at work here, or one was killed. If none is: "
        "thaw run mine.yaml --unlock, then the same command\n"
    )


def test_a_run_that_makes_other_files_locks_nothing(place, monkeypatch):
    """As in Snakemake: two runs may read the same finished results."""
    from thaw.cli.selection import given_plan, parser_of

    monkeypatch.chdir(place.folder)
    locks = place.folder / ".snakemake/locks"
    locks.mkdir(parents=True, exist_ok=True)
    card = place.folder / "results/data/things/card.json"
    (locks / "0.input.lock").write_text("results/data/things/card.json\ndata/train.csv\n")
    (locks / "0.output.lock").write_text("results/outputs/other/report.html\n")
    before = card.read_text() if card.exists() else None
    card.unlink(missing_ok=True)
    with pytest.raises(UserError, match="locked"):
        given_plan("advise", parser_of("advise", ""), ["mine.yaml"])
    card.parent.mkdir(parents=True, exist_ok=True)
    card.write_text(before or "{}")
    given_plan("advise", parser_of("advise", ""), ["mine.yaml"])
    for lock in locks.glob("*.lock"):
        lock.unlink()
    card.write_text(before) if before else card.unlink()
