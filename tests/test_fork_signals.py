"""How jobs of the fork server end: by signals, with who asked for them, with the server; and what is said of it."""

import os
import signal
import time

import pytest

from jobs_of_server import asked, lives, parent, started, until, waiting


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
