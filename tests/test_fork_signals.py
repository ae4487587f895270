"""How jobs of the fork server end, or do not start: by signals, with who asked, with the server; and what is said."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs_of_server import asked, handles, lives, parent, started, until, waiting

ASK_OR_RUN = "import sys; from thaw.core.fork_client import ask_or_run; ask_or_run(sys.argv[1], ['facts'], 'prepare')"
# A module whose import lets the next fork fail, as where a machine has no room for another process. The server imports
# it, as any job's; root, as whom tests may run, has no limit on processes that could be set instead.
NO_ROOM = """
import os
fork = os.fork

def no_room():
    os.fork = fork
    raise BlockingIOError(11, "Resource temporarily unavailable")

os.fork = no_room

def main():
    print(os.getppid())
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The environment of a server's jobs, and the process that started it, which tests leave alone."""
    yield from started(tmp_path_factory.mktemp("server"))


def test_a_job_that_is_killed_says_so_and_the_server_goes_on(server, tmp_path):
    assert asked(server[0], tmp_path, "die").returncode == 128 + signal.SIGKILL
    assert asked(server[0], tmp_path, "facts").returncode == 0


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 1), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_signal_to_who_asked_reaches_the_job(server, tmp_path, number, status):
    client, job = waiting(server[0], tmp_path)
    client.send_signal(number)
    assert client.wait(30) == status and not lives(job)


def test_a_job_dies_with_who_asked_for_it(server, tmp_path):
    client, job = waiting(server[0], tmp_path)
    client.kill()
    client.wait()
    until(lambda: not lives(job))


def test_a_job_dies_with_its_server(tmp_path):
    """Snakemake hears that it failed, and may start it again."""
    for environment, _ in started(tmp_path):
        client, job = waiting(environment, tmp_path)
        os.kill(parent(job), signal.SIGKILL)
        assert client.wait(30) == 1
        until(lambda job=job: not lives(job))


def test_a_signal_for_a_job_that_has_just_ended_ends_no_other_job(server, tmp_path):
    """A server that is busy, as while it imports, hears of both at once."""
    (tmp_path / "other").mkdir()
    (client, job), (other, other_job) = waiting(server[0], tmp_path), waiting(server[0], tmp_path / "other")
    process = parent(job)
    os.kill(process, signal.SIGSTOP)
    os.kill(job, signal.SIGKILL)
    until(lambda: not lives(job))
    client.send_signal(signal.SIGTERM)
    time.sleep(0.3)  # until it is passed on
    os.kill(process, signal.SIGCONT)
    assert client.wait(30) == 128 + signal.SIGKILL
    assert asked(server[0], tmp_path, "facts").returncode == 0 and lives(process) and lives(other_job)
    other.kill()


def test_where_no_process_can_be_forked_the_step_runs_by_itself_and_the_others_go_on(server, tmp_path):
    environment, _ = server
    Path(environment["PYTHONPATH"].split(os.pathsep)[0], "no_room_job.py").write_text(NO_ROOM)
    other, job = waiting(environment, tmp_path)
    command = [sys.executable, "-c", ASK_OR_RUN, "no_room_job"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{os.getpid()}\n", "")
    assert lives(job) and asked(environment, tmp_path, "facts").returncode == 0
    other.kill()


@pytest.mark.parametrize("number, status", [(0, 0), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_server_that_ends_before_it_takes_a_job_is_as_none_and_no_signal_is_lost(tmp_path, number, status):
    for environment, _ in started(tmp_path):
        process = json.loads(asked(environment, tmp_path, "facts").stdout)["parent"]
        os.kill(process, signal.SIGSTOP)
        command = [sys.executable, "-c", ASK_OR_RUN, "some_job"]
        client = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        until(lambda pid=client.pid: handles(pid, signal.SIGTERM))  # the request is sent
        if number:
            client.send_signal(number)
        time.sleep(0.3)  # until it is passed on
        os.kill(process, signal.SIGKILL)
        out, _ = client.communicate(timeout=60)
        assert client.returncode == status and (json.loads(out)["parent"] == os.getpid() if out else number)
