"""The doctor: a line for each thing that a machine has or lacks, and an exit code that says whether it will do."""

import pytest

import forked
from thaw.cli import doctor_command as doctor

WORDS = ("packages", "cores", "memory", "disk", "gpu", "sources")


@pytest.fixture
def asked(home, tmp_path):
    """Return a function that asks the doctor, in an empty folder and without the Hub, and gives (exit code, lines)."""

    def ask(*config: str, files=("config/config.yaml",)):
        command = ["thaw.cli.main", "doctor", *(home / file for file in files)]
        command += ["--config", *config] if config else []
        environment = {"PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)}
        done = forked.run(command, tmp_path, environment)
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
    assert lines["sources"].startswith("PROBLEM") and "HF_HUB_OFFLINE is set" in lines["sources"]
    assert "encoder bert_base_uncased" in lines["sources"] or "more" in lines["sources"]
    assert lines["cores"].startswith("note") and "asks for 200 threads" in lines["cores"]


H100 = ("NVIDIA H100 80GB HBM3", 85_029_158_912, (9, 0))
T4 = ("Tesla T4", 15_655_829_504, (7, 5))
V100 = ("Tesla V100-SXM2-16GB", 16_935_682_048, (7, 0))
SLICE = ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5_100_273_664, (8, 0))
CODE = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]  # of torch 2.13's wheels for CUDA 13.0
CARDS = {
    H100: ("ok", "79.2 GiB, compute capability 9.0, bf16 native"),
    T4: ("ok", "compute capability 7.5, bf16 emulated, so that phases are computed in fp32"),
    V100: ("PROBLEM", "compute capability 7.0, and torch 2.13.0+cu130 has code for sm_75,"),
    SLICE: ("note", "bf16 native; a MIG instance"),
}


@pytest.mark.parametrize("card", CARDS)
def test_a_card_is_described_and_one_without_code_is_a_problem(card):
    name, memory, capability = card
    mark, about, said = doctor.one_gpu(name, memory, capability, "2.13.0+cu130", CODE)
    assert (mark, about) == (CARDS[card][0], "gpu") and said.startswith(name) and CARDS[card][1] in said


def test_a_card_that_torch_does_not_see_is_a_problem_and_no_card_is_none():
    promise = "this machine has an NVIDIA card (/dev/nvidia0)"
    mark, _, said = doctor.no_gpu(promise, "2.13.0+cpu", None, "")
    assert mark == "PROBLEM" and said.startswith(promise) and "built without CUDA" in said
    assert doctor.no_gpu(None, "2.13.0+cpu", None, "")[0] == "note"
