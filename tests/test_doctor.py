"""The doctor: a line for each thing that a machine has or lacks, and an exit code that says whether it will do."""

import subprocess
import sys

import pytest

WORDS = ("packages", "cores", "memory", "disk", "gpu", "bf16", "sources", "slurm", "tex")


@pytest.fixture
def asked(home, tmp_path):
    """Return a function that asks the doctor, in an empty folder and without the Hub, and gives (exit code, lines)."""

    def ask(*config: str, files=("config/config.yaml",)):
        command = [sys.executable, home / "scripts/doctor.py", "--configfile", *(home / file for file in files)]
        command += ["--config", *config] if config else []
        environment = {"PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)}
        done = subprocess.run([str(c) for c in command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.stderr == "" and list(tmp_path.iterdir()) == [], done.stderr
        return done.returncode, {line.split()[1]: line for line in done.stdout.splitlines()}

    return ask


def test_the_demo_needs_nothing_that_is_not_here(asked):
    code, lines = asked()
    assert code == 0 and tuple(lines) == WORDS
    assert "the Hub is not needed" in lines["sources"] and "pinned packages" in lines["packages"]
    assert lines["disk"].startswith("ok") and "MiB" in lines["disk"]


def test_what_cannot_end_here_is_a_problem_and_says_what_to_change(asked):
    code, lines = asked("data_dir=nowhere", "compute={threads: 200}", files=["config/experiments/lee2019.yaml"])
    assert code == 1
    assert lines["sources"].startswith("PROBLEM") and "HF_HUB_OFFLINE is 1" in lines["sources"]
    assert "encoder bert_base_uncased" in lines["sources"] or "more" in lines["sources"]
    assert lines["cores"].startswith("note") and "asks for 200 threads" in lines["cores"]


def test_a_wrong_selection_is_one_sentence(home):
    command = [sys.executable, str(home / "scripts/doctor.py"), "--config", "seed=[1]"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("error: config: seed: unknown key; did you mean 'seeds'?")
