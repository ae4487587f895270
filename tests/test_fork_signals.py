"""How jobs of the fork server end, or do not start: by signals, with who asked, with the server; and what is said."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs_of_server import asked, handles, lives, parent, started, state, until, waiting
from thaw.core.runtime import LESS_MEMORY

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


@pytest.mark.parametrize(
    "number, said",
    [
        (signal.SIGKILL, f"error: the job was killed by SIGKILL, usually because memory ran out: {LESS_MEMORY}\n"),
        (signal.SIGSEGV, "error: the job was killed by SIGSEGV, usually because compiled code failed\n"),
        (signal.SIGUSR1, "error: the job was killed by SIGUSR1\n"),
    ],
)
def test_of_a_job_that_is_killed_the_log_says_so_and_the_server_goes_on(server, tmp_path, number, said):
    done = asked(server[0], tmp_path, "die", str(int(number)))
    assert (done.returncode, done.stderr) == (128 + number, said)
    assert asked(server[0], tmp_path, "facts").returncode == 0


def test_an_exit_status_that_is_no_signal_is_not_said_to_be_one(server, tmp_path):
    done = asked(server[0], tmp_path, "leave")
    assert (done.returncode, done.stderr) == (255, "")


@pytest.mark.parametrize(
    "number, status, said",
    [
        (signal.SIGINT, 1, "error: interrupted; nothing half-written was left\n"),
        (signal.SIGTERM, 128 + signal.SIGTERM, "error: interrupted by SIGTERM; nothing half-written was left\n"),
    ],
)
def test_a_signal_to_who_asked_reaches_the_job(server, tmp_path, number, status, said):
    client, job = waiting(server[0], tmp_path)
    client.send_signal(number)
    assert client.communicate(timeout=30)[1] == said and client.returncode == status and not lives(job)


def test_ctrl_z_stops_a_job_with_who_asked_until_both_go_on(server, tmp_path):
    client, job = waiting(server[0], tmp_path, process_group=0)  # as a shell starts a command
    for _ in range(2):
        client.send_signal(signal.SIGTSTP)
        until(lambda: state(job) == state(client.pid) == "T")
        client.send_signal(signal.SIGCONT)
        until(lambda: state(job) == state(client.pid) == "S")
    client.send_signal(signal.SIGTSTP)
    until(lambda: state(job) == state(client.pid) == "T")
    client.terminate()  # as a shell ends a stopped command: both signals
    client.send_signal(signal.SIGCONT)
    assert client.wait(30) == 128 + signal.SIGTERM and not lives(job)


def test_a_stopped_job_dies_with_who_asked(server, tmp_path):
    client, job = waiting(server[0], tmp_path, process_group=0)  # as a shell starts a command
    client.send_signal(signal.SIGTSTP)
    until(lambda: state(job) == "T")
    client.kill()
    client.wait()
    until(lambda: not lives(job))


def test_ctrl_z_stops_nothing_where_no_shell_could_let_it_go_on(server, tmp_path):
    """As in a container whose first process is `thaw run`: by default Linux stops nothing there."""
    client, job = waiting(server[0], tmp_path, start_new_session=True)
    client.send_signal(signal.SIGTSTP)
    time.sleep(0.3)
    until(lambda: state(job) == state(client.pid) == "S")
    client.terminate()
    assert client.wait(30) == 128 + signal.SIGTERM


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
        said = client.communicate(timeout=30)[1]
        assert client.returncode == 1 and said.startswith("error: the process that the job was forked from ended, ")
        assert said.count("\n") == 1 and said.endswith(f"usually because memory ran out: {LESS_MEMORY}\n")
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
    said = client.communicate(timeout=30)[1]
    assert client.returncode == 128 + signal.SIGKILL and "memory" not in said, "somebody was ending it"
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
