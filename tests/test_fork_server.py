"""The fork server: a job in it is as one that a shell starts, however it ends; where it cannot be, it runs alone."""

import contextlib
import importlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from transformers import conversion_mapping

from jobs_of_server import ASK, HOME, JOB, asked, handles, lives, parent, started, state, until, waiting
from thaw.cli import doctor_command, run_command
from thaw.core import fork_server, home, lasting_servers, runtime
from thaw.core.runtime import LESS_MEMORY
from thaw.core.steps import STEPS
from thaw.outputs import templates


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The environment of a server's jobs, and the process that started it, which tests leave alone."""
    yield from started(tmp_path_factory.mktemp("server"))


def test_a_job_has_the_folder_the_arguments_the_environment_and_the_streams_of_who_asked(server, tmp_path):
    environment = server[0] | {"TMPDIR": str(tmp_path)}
    (tmp_path / "below").mkdir()
    done = [asked(environment, tmp_path / "below", "facts", "--out", "a b") for _ in range(2)]
    facts = [json.loads(one.stdout) for one in done]
    for one in facts:
        assert one["folder"] == str(tmp_path / "below") and one["asked"] == "yes" and one["group"] and one["imported"]
        assert one["library"] and one["temporary"] == str(tmp_path)
        assert Path(one["argv"][0]).stem == "some_job" and one["argv"][1:] == ["facts", "--out", "a b"]
    assert facts[0]["parent"] == facts[1]["parent"], "two servers"
    assert [one.returncode for one in done] == [0, 0] and done[0].stderr == "a log line\n"


def test_a_mistake_is_one_sentence_and_exit_status_1(server, tmp_path):
    done = asked(server[0], tmp_path, "mistake")
    assert (done.returncode, done.stderr, done.stdout) == (1, "error: tasks.yaml:3: no such task\n", "")


def test_a_job_that_breaks_shows_where_and_runs_what_python_runs_at_its_end(server, tmp_path):
    done = asked(server[0], tmp_path, "crash")
    assert done.returncode == 1 and "some_job.py" in done.stderr and "ValueError: nobody foresaw this" in done.stderr
    assert done.stdout == "at the end\n"


@pytest.mark.parametrize(
    "other", [{"OMP_NUM_THREADS": "2"}, {"OF_ANOTHER": "conda environment"}, {"THAW_FORK_SERVER": "/none"}]
)
def test_what_was_imported_in_another_environment_is_not_used(server, tmp_path, other):
    code = "from thaw.core import fork_client; print(fork_client.ask('some_job', ['facts'], 'prepare'))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=server[0] | other, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "None\n", done.stderr
    (name,) = other
    said = (
        f"{name} is not what it was where the workflow was started, so this job imports its libraries itself, which "
        "takes some seconds\n"
    )
    assert done.stderr == (said if name != "THAW_FORK_SERVER" else "")


def test_what_a_shell_changes_in_its_environment_is_no_other_environment(tmp_path):
    """Snakemake runs a job in bash, which unsets the prompt that a virtual environment's `activate` has exported."""
    of_a_shell = {"PS1": "(.venv) ", "PS2": "> ", "PS4": "* ", "IFS": ":", "OPTIND": "2", "SHELLOPTS": "braceexpand"}
    for environment, starter in started(tmp_path, **of_a_shell):
        ask = ["bash", "-c", 'set -euo pipefail; "$@"', "bash", sys.executable, "-c", ASK, "facts"]
        done = subprocess.run(ask, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["parent"] not in (starter.pid, os.getpid()) and "PS1" in environment


def test_the_server_ends_with_who_started_it_after_its_last_job(tmp_path):
    for environment, starter in started(tmp_path):
        (client, job), address = waiting(environment, tmp_path), Path(environment["THAW_FORK_SERVER"])
        starter.kill()
        starter.wait()
        time.sleep(0.3)
        assert lives(job) and client.poll() is None
        client.send_signal(signal.SIGTERM)
        client.wait(30)
        until(lambda address=address: not address.exists())


@pytest.mark.parametrize(
    "config, words, threads",
    [
        ({}, ["--cores", "2"], 2),
        ({}, ["--cores", "all"], 2),
        ({}, ["-c"], 2),
        ({}, ["-c", "1"], 1),
        ({"compute": {"threads": 8}}, ["--cores=4"], 4),
        ({}, ["--dry-run"], None),
        ({}, ["--cores", "2", "-n"], None),
        ({}, ["--workflow-profile", "slurm"], None),
        ({"compute": {"threads": "many"}}, [], None),
        ({"compute": 3}, [], None),
    ],
)
def test_before_snakemake_a_server_starts_only_where_jobs_surely_run_here(
    monkeypatch, tmp_path, config, words, threads
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    monkeypatch.setattr(run_command, "machine_size", lambda: {"cores": 2})
    assert run_command.threads_of_jobs_here(config, words) == threads
    monkeypatch.setattr(run_command, "machine_size", lambda: {"cores": 1})
    assert run_command.threads_of_jobs_here(config, words) is None


def test_a_server_has_as_many_threads_as_the_jobs_that_ask_it():
    """A job with another number of threads imports torch or matplotlib for itself: seconds of each table and figure."""
    asked = {}
    for path in sorted((HOME / "workflow/rules").glob("*.smk")):
        for rule in re.split(r"^ *(?:use )?rule\b", path.read_text(), flags=re.MULTILINE):
            if step := re.search(r"python -m thaw\.steps (\w+)", rule):
                threads = re.search(r"^ *threads: (.+)", rule, re.MULTILINE)
                asked.setdefault(step[1], set()).add(threads[1] if threads else "1")
    asked = {step: threads for step, threads in asked.items() if not STEPS[step].own_threads}
    found = {step: {"PLAN.threads"} if STEPS[step].libraries == "models" else {"1"} for step in asked}
    assert asked == found and len(asked) > 12


def test_fetch_waits_for_nothing_that_reads_tables():
    assert not set(fork_server.NEEDED[STEPS["fetch"].libraries]) & set(fork_server.TABLES)


def test_what_a_server_works_out_before_it_forks_is_there_and_kept():
    """A server says nothing of what it cannot do: a job would do it for itself, and take longer."""
    names = [name for libraries in fork_server.LIBRARIES.values() for name in libraries if ":" in name]
    assert len(set(names)) == 4
    for module, function in (name.split(":") for name in names):
        getattr(importlib.import_module(module), function)()
    assert conversion_mapping._checkpoint_conversion_mapping_cache
    assert len(templates._html().cache) > 10 and len(templates._tex().cache) == 1
    assert runtime._installed.cache_info().currsize and home.release.cache_info().currsize


def test_a_step_that_says_how_many_threads_it_has_may_have_any_number_of_cores():
    one, two = fork_server.environment_of_jobs("scripts", 1), fork_server.environment_of_jobs("scripts", 2)
    assert fork_server.other_variable(STEPS["fetch"], one, two) is None
    assert fork_server.other_variable(STEPS["train"], one, two) == "OMP_NUM_THREADS"
    assert fork_server.other_variable(STEPS["train"], one | {"PWD": "/here"}, one | {"PWD": "/there"}) is None


def test_a_step_runs_by_itself_where_no_server_listens(tmp_path):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOME / "scripts")}
    command = [sys.executable, "-m", "thaw.steps", "prepare", "--help"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "--spec" in done.stdout


ASK_OR_RUN = "import sys; from thaw.core.fork_client import ask_or_run; ask_or_run(sys.argv[1], ['facts'], 'prepare')"
# A module whose import lets the driver answer as it does once CUDA is initialised. No such driver is here.
CUDA_IS_OPEN = """
import os, sys
sys.modules["__main__"].driver_answer = lambda: 0

def main():
    print(os.getpid())
"""
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


@pytest.mark.parametrize(
    ("answer", "have"),
    [
        (None, True),  # no driver: nothing could have initialised it
        (3, True),  # CUDA_ERROR_NOT_INITIALIZED
        (0, False),  # there is an answer, so CUDA is initialised
        (4, False),  # CUDA_ERROR_DEINITIALIZED
        (100, False),  # CUDA_ERROR_NO_DEVICE
    ],
)
def test_forks_have_cuda_while_nothing_has_initialised_it(answer, have):
    assert fork_server.forks_have_cuda(answer) == have


def test_the_driver_is_asked_where_there_is_one():
    code = "from thaw.core.fork_server import driver_answer; print(driver_answer())"
    environment = {"PYTHONPATH": str(HOME / "scripts")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() in ("None", "3"), done.stderr


def test_a_step_for_a_card_is_not_forked_from_a_server_in_which_cuda_is_open(tmp_path):
    """Others are: `fetch` reads an encoder on the processor."""
    (tmp_path / "cuda_is_open_job.py").write_text(CUDA_IS_OPEN)
    (tmp_path / "torch.py").write_text("raise ImportError")  # which takes seconds, and says nothing here
    found, pipes = {}, {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    for environment, _ in started(tmp_path, "models"):
        for step in ("fit_heads", "fetch"):
            command = [sys.executable, "-c", ASK_OR_RUN.replace("prepare", step), "cuda_is_open_job"]
            client = subprocess.Popen(command, env=environment, text=True, **pipes)
            out, err = client.communicate(timeout=120)
            found[step] = int(out) == client.pid, err
    said = (
        "a library has opened CUDA in the fork server, whose forks have none, so this job imports its libraries itself"
    )
    assert found["fit_heads"][0] and found["fit_heads"][1].startswith(said)
    assert found["fetch"] == (False, "")


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


@pytest.fixture
def runtime_folder():
    """A short path, since that of a socket has at most 108 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@contextlib.contextmanager
def shell_at_a_terminal(folder: Path, environment: dict):
    """Yield a function that runs a command in a shell whose standard input is a terminal; returns what it prints."""
    terminal, end = pty.openpty()
    how = {"stdin": end, "stdout": subprocess.PIPE, "cwd": folder, "env": environment, "text": True}
    shell = subprocess.Popen(["bash", "--noprofile", "--norc"], start_new_session=True, **how)
    os.close(end)

    def typed(line: str) -> str:
        os.write(terminal, f"{line}\n".encode())
        return shell.stdout.readline().strip()

    try:
        yield typed
    finally:
        shell.kill()
        shell.wait()
        os.close(terminal)


def test_at_a_terminal_servers_wait_for_the_next_command_and_end_with_the_shell(tmp_path, runtime_folder):
    (tmp_path / "some_job.py").write_text(JOB)
    path = f"{tmp_path}{os.pathsep}{HOME / 'scripts'}"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "ASKED": "yes"}
    environment |= {"XDG_RUNTIME_DIR": str(runtime_folder)} | dict.fromkeys(fork_server.OF_CORES, "1")
    started = (
        f"from thaw.core import fork_server, fork_client; fork_server.start('{path}', 1, ('outputs',)); import sys; "
        "sys.exit(fork_client.ask('some_job', ['facts'], 'prepare'))"
    )
    command = f'{sys.executable} -c "{started}" 2>/dev/null'
    with shell_at_a_terminal(tmp_path, environment) as typed:
        facts = [json.loads(typed(line)) for line in (command, command, f"OTHER=1 {command}")]
        (first, second, other) = (one["parent"] for one in facts)
        assert first == second != other and lives(first), "the second command finds the first one's server"
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("XDG_RUNTIME_DIR", str(runtime_folder))
            assert set(lasting_servers.waiting()) == {first, other}
            ((_, _, said),) = doctor_command.servers(None)
            assert said.startswith("2 processes of earlier commands; `kill ") and str(first) in said
        os.kill(first, signal.SIGKILL)
        until(lambda: not lives(first))
        assert json.loads(typed(command))["parent"] not in (first, other), "what a killed server left is replaced"
    until(lambda: not list(runtime_folder.glob("thaw-*/*/*")))


WAITS = "from thaw.core import fork_server as f; f.prepare_environment(); f.start(f.PACKAGE.parent, 2, ('models',))"
COMMAND = "import sys; from thaw.core import fork_server as f; f.ask_waiting(sys.argv[1:]) is None and print('nobody')"


def test_a_command_that_imports_torch_is_forked_of_the_server_that_waits(tmp_path, runtime_folder):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOME / "scripts"), "HOME": str(tmp_path)}
    environment |= {"XDG_RUNTIME_DIR": str(runtime_folder)}
    asked, wrong = f'{sys.executable} -c "{COMMAND}" --version', f'{sys.executable} -c "{COMMAND}" predict nowhere 2>&1'
    with shell_at_a_terminal(tmp_path, environment) as typed:
        assert typed(asked) == "nobody"
        typed(f'{sys.executable} -c "{WAITS}"; echo')
        assert typed(asked) == f"thaw {home.release()}"
        assert typed(wrong) == "error: nowhere is not an exported model (no thaw.json); create one with thaw export"
        assert [typed(f"{name} {asked}") for name in ("THAW_FORK_SERVER=", "OMP_NUM_THREADS=1")] == ["nobody"] * 2


def test_streams_of_a_command_are_those_of_who_asked():
    """A server's are open on nothing, where one can seek, and then on a pipe, where one cannot."""
    moved = (
        "import os, sys; from thaw.core import fork_server; print(end='', flush=True); os.dup2(2, 1); "
        "fork_server._reopen_streams(); sys.stdout.reconfigure(encoding='utf-8'); print('é')"
    )
    environment = os.environ | {"PYTHONPATH": str(HOME / "scripts")}
    with open(os.devnull, "w") as nothing:
        done = subprocess.run([sys.executable, "-c", moved], env=environment, stdout=nothing, stderr=subprocess.PIPE)
    assert done.stderr.decode() == "é\n" and done.returncode == 0


def test_a_server_ends_where_nobody_asks_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr(lasting_servers, "PATIENCE", 0.2)
    owner = os.pidfd_open(os.getpid())
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "outputs"))
        listener.listen()
        assert fork_server.Server(listener, (), owner).serve() is None
    os.close(owner)


def test_no_server_lasts_for_a_script_in_a_folder_of_others_or_against_the_option(runtime_folder, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime_folder))
    assert lasting_servers.folder({}) is None, "the standard input of tests is no terminal"
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert lasting_servers.folder({}) != lasting_servers.folder({"A": "1"})
    with pytest.MonkeyPatch.context() as patched:
        before = lasting_servers.folder({})
        patched.setattr(os, "getpriority", lambda *_: 7)
        assert lasting_servers.folder({}) != before, "under nice"
    (runtime_folder / f"thaw-{os.getuid()}").chmod(0o755)
    assert lasting_servers.folder({}) is None
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime_folder / "of another machine"))
    assert lasting_servers.folder({}) is None
    monkeypatch.delenv("THAW_FORK_SERVER", raising=False)
    assert lasting_servers.refuse(["my.yaml", "--no-server"]) == ["my.yaml"]
    assert Path(os.environ["THAW_FORK_SERVER"]).parent != lasting_servers.of_user()
    Path(os.environ.pop("THAW_FORK_SERVER")).rmdir()
