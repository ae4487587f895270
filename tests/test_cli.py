"""The command `thaw`: it starts quickly, each sub-command has help and an exit code, a mistake is one sentence."""

import ast
import os
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
import torch
import yaml

import forked
import thaw
from code_digests import closure
from test_keep import answer_taking
from thaw import cli
from thaw.cli import list_command, run_command, show_command
from thaw.cli.main import COMMANDS, main
from thaw.cli.run_command import snakemake_command
from thaw.cli.selection import configuration, leading_experiment, leading_files, parsed, selecting
from thaw.compute_cost.stopwatch import Stopwatch, measure_cost
from thaw.core.errors import UserError
from thaw.core.home import HOME, IN_CHECKOUT, release
from thaw.decision import record

THAW = "thaw.cli.main"


def test_the_help_lists_every_command_and_loads_nothing_heavy(home):
    code = "import sys, thaw.cli.main as cli; cli.main(['--help']); print(*sys.modules, file=sys.stderr)"
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(home / "scripts")}
    )
    seconds = time.monotonic() - started
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)
    assert {"torch", "pandas", "yaml", "pydantic", "snakemake", "numpy"} & set(done.stderr.split()) == set()
    assert seconds < 2, "0.15 s on a quiet machine"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(name, capsys):
    with suppress(SystemExit):  # of argparse, with status 0 where nothing is on stderr
        main([name, "--help"])
    said = capsys.readouterr()
    assert f"thaw {name}" in said.out and said.err == ""


def test_without_words_it_prints_its_help_and_the_version_has_a_commit():
    assert forked.run([THAW]).stdout == forked.run([THAW, "--help"]).stdout
    assert forked.run([THAW, "--version"]).stdout == f"thaw {release()}\n"
    assert IN_CHECKOUT and (HOME / "Snakefile").is_file()


def test_the_version_is_in_one_place_and_in_what_names_it(home):
    assert tomllib.loads((home / "pyproject.toml").read_text())["tool"]["hatch"]["version"]["path"].endswith(
        "__init__.py"
    )
    citation = yaml.safe_load((home / "CITATION.cff").read_text())
    assert citation["version"] == thaw.__version__
    dated = f"\n## {thaw.__version__} ({citation['date-released'].isoformat()})\n"
    assert dated in (home / "CHANGELOG.md").read_text()


def test_a_cost_names_this_thaw_and_a_release_changes_the_code_of_no_step():
    cost = measure_cost(Stopwatch(), torch.device("cpu"))
    assert cost["versions"]["thaw"] == release() and cost["versions"]["thaw"].startswith(thaw.__version__)
    assert "thaw" not in closure("thaw.steps.train") and "thaw.core.home" in closure("thaw.steps.train")


@pytest.mark.parametrize(
    "word, hint", {"paln": "mean 'plan'?", "xyz": "are advise,", "a.csv": "mean thaw advise"}.items()
)
def test_an_unknown_command_is_one_sentence_with_a_near_name(word, hint, tmp_path):
    if "." in word:
        (tmp_path / word).touch()
    done = forked.run([THAW, word], tmp_path)
    assert done.returncode == 2 and done.stderr.startswith(f"error: thaw has no command '{word}'; ")
    assert done.stdout == "" and hint in done.stderr and done.stderr.count("\n") == 1


def test_the_experiment_of_this_folder_comes_before_the_demo(home, tmp_path):
    (tmp_path / "config").mkdir()
    text = (home / "config/config.yaml").read_text().replace("experiment: demo", "experiment: of_this_folder")
    (tmp_path / "config/config.yaml").write_text(text)
    assert forked.run([THAW, "plan"], tmp_path).stdout.startswith("experiment of_this_folder: ")


def test_the_only_experiment_in_this_folder_is_taken_and_of_two_none(home, tmp_path):
    text = (home / "config/config.yaml").read_text().replace("experiment: demo", "experiment: lonely")
    (tmp_path / "lonely.yaml").write_text(text)
    (tmp_path / "overlay.yaml").write_text("seeds: 1\n")
    done = forked.run([THAW, "plan"], tmp_path)
    assert done.stdout.startswith("experiment lonely: ")
    assert done.stderr == "no experiment is named: lonely.yaml is the only one here and is taken\n"
    (tmp_path / "other.yaml").write_text(text)
    assert forked.run([THAW, "plan"], tmp_path).stdout.startswith("experiment demo: ")


def test_files_come_first_and_the_rest_is_for_snakemake(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["a.yaml", "b.yml", "--cores", "2", "results/x.html"]
    assert leading_files(words) == (words[:2], words[2:])
    command = snakemake_command(*leading_experiment("run", words))
    assert command[1:6] == ["-m", "snakemake", "--configfile", "a.yaml", "b.yml"]
    assert command[-3:] == words[2:] and command[command.index("--snakefile") + 1] == str(HOME / "Snakefile")
    assert command[command.index("--workflow-profile") + 1] == str(HOME / "profiles/default")


@pytest.mark.parametrize("names", [("--configfile", "--config"), ("--configfiles", "-C")])
def test_files_and_keys_have_either_name_that_snakemake_has_for_them(home, names):
    words = [names[0], str(home / "tests/base.yaml"), names[1], "seeds=[7]", "compute={threads: 1}"]
    given = parsed(selecting("plan", ""), words)
    assert configuration(given.files, given.config)["seeds"] == [7]


def test_files_and_keys_that_are_given_twice_count_together(home):
    """Snakemake reads the last option of a name alone, so that it gets one."""
    file = str(home / "tests/base.yaml")
    words = [file, "-C", "seeds=[1]", "--configfile=b.yaml", "--config", "data_dir=data", "--cores", "2"]
    assert parsed(selecting("plan", ""), words[:-2]).config == ["seeds=[1]", "data_dir=data"]
    command = snakemake_command(*leading_experiment("run", words))
    assert command[3:9] == ["--configfile", file, "b.yaml", "--config", "seeds=[1]", "data_dir=data"]


@pytest.mark.parametrize("module", sorted(path.stem for path in Path(cli.__file__).parent.glob("*_command.py")))
def test_an_option_with_several_values_may_be_given_several_times(module):
    """By itself argparse forgets all but the last: `--text A --text B` would read B alone."""
    for call in ast.walk(ast.parse((Path(cli.__file__).parent / f"{module}.py").read_text())):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "add_argument":
            said = {word.arg: getattr(word.value, "value", None) for word in call.keywords}
            if call.args[0].value.startswith("-") and said.get("nargs") in ("+", "*"):
                assert said.get("action") == "extend", call.args[0].value


@pytest.fixture
def own(home, tmp_path):
    """A folder with an experiment of the demo's texts; gives a function that runs `thaw run` on it there."""
    text = (home / "config/config.yaml").read_text().replace("seeds: [1, 2]", "seeds: [1]")
    (tmp_path / "my.yaml").write_text(text)
    (tmp_path / "wrong.yaml").write_text(text.replace("seeds:", "sedes:"))

    def run(*words: str) -> subprocess.CompletedProcess:
        environment = {"PYTHONPATH": str(home / "scripts"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        return forked.run([THAW, "run", *words], tmp_path, environment)

    return run


def test_a_run_is_snakemakes_with_its_options_and_its_exit_code(own):
    done = own("my.yaml", "--dry-run", "--quiet", "rules")
    assert done.returncode == 0 and "fit_heads" in done.stdout + done.stderr


def test_a_mistake_in_the_file_is_one_sentence_alone(own):
    done = own("wrong.yaml", "--dry-run")
    *before, last = done.stderr.strip().splitlines()
    assert done.returncode == 1 and last == "error: wrong.yaml:24: sedes: unknown key; did you mean 'seeds'?"
    assert all(line.startswith("Using workflow specific profile") for line in before) and len(before) < 2


def test_an_experiment_may_follow_the_options_of_a_plan(home, tmp_path):
    (tmp_path / "my.yaml").write_text((home / "config/config.yaml").read_text())
    assert forked.run([THAW, "plan", "--runs", "my.yaml"], tmp_path).returncode == 0


@pytest.mark.parametrize(
    "setting, own, given",
    [
        ("GOMP_SPINCOUNT", None, "10000"),
        ("GOMP_SPINCOUNT", "0", "0"),
        ("OMP_WAIT_POLICY", None, "PASSIVE"),
        ("THP_MEM_ALLOC_ENABLE", None, "1"),
        ("THP_MEM_ALLOC_ENABLE", "0", "0"),
    ],
)
def test_jobs_have_settings_of_threads_and_memory_unless_the_user_says_otherwise(
    home, monkeypatch, setting, own, given
):
    assert environment_of_snakemake(home, monkeypatch, {setting: own} if own else {})[setting] == given


def test_threads_wait_as_the_user_says(home, monkeypatch):
    environment = environment_of_snakemake(home, monkeypatch, {"OMP_WAIT_POLICY": "ACTIVE"})
    assert environment["OMP_WAIT_POLICY"] == "ACTIVE" and "GOMP_SPINCOUNT" not in environment, "which would outweigh it"


def environment_of_snakemake(home, monkeypatch, own: dict[str, str]) -> dict[str, str]:
    """Return the environment in which `thaw run` starts Snakemake, where the user has set some variables."""
    settings = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "THP_MEM_ALLOC_ENABLE")
    environment = {name: value for name, value in os.environ.items() if name not in settings}
    monkeypatch.setattr(run_command.os, "environ", environment | own)
    found = {}
    monkeypatch.setattr(sys, "argv", ["thaw"])
    monkeypatch.setattr("snakemake.cli.main", lambda arguments: found.update(run_command.os.environ))
    run_command.run_snakemake(*leading_experiment("run", [str(home / "config/config.yaml"), "--dry-run"]))
    return found


LISTED = {"tasks": "sst2 ", "encoders": "minilm ", "strategies": "top_k ", "outputs": "main_table "}
LISTED |= {"subsets": "n1000_d1 ", "heads": "linear ", "probes": "linear "}


@pytest.mark.parametrize("kind", LISTED)
def test_what_can_be_selected_is_listed(kind, capsys):
    list_command.main([kind])
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.startswith("id ") and header.endswith("label") and len(lines) > 5
    assert any(line.startswith(LISTED[kind]) for line in lines), lines


def test_a_word_chooses_among_what_is_listed(capsys):
    list_command.main(["strategies", "LoRA"])
    listed = capsys.readouterr().out
    assert "lora" in listed and "bitfit" not in listed
    list_command.main(["strategy", "LoRA"])
    assert capsys.readouterr().out == listed
    with pytest.raises(UserError, match="no line of `thaw list tasks` contains 'nothing_like_it'"):
        list_command.main(["tasks", "nothing_like_it"])
    with pytest.raises(SystemExit) as caught:
        list_command.main(["nothing"])
    assert caught.value.code == 2


def test_show_prints_the_answers_and_where_the_report_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="results has no report; thaw run my.yaml makes one"):
        show_command.main([])
    page = tmp_path / "results/outputs/known/report.html"
    record.write(page.parent / record.ADVISED, [answer_taking("tuned")])
    page.write_text("<p>")
    (tmp_path / "my.yaml").write_text("experiment: known\n")
    for words in ([], ["my.yaml"], ["known"]):
        show_command.main(words)
        said = capsys.readouterr().out
        assert "→ Take tuned.\n" in said
        assert said.endswith("\n\nreport: results/outputs/known/report.html\n")
    with pytest.raises(UserError, match="no report of 'knwon'; did you mean 'known'?"):
        show_command.main(["knwon"])


STOPPED = """
import os, signal, time
from thaw.cli.run_command import graceful_interrupt
signal.signal(signal.SIGINT, signal.{before})
with graceful_interrupt():
    try:
        print("here", flush=True)
        time.sleep(1)
    except KeyboardInterrupt:
        time.sleep(3)  # as Snakemake, which waits for its jobs
        raise SystemExit(1)
"""


def test_a_second_ctrl_c_does_not_interrupt_the_ending():
    """What a third one does: tests/test_interrupted.py."""
    command = [sys.executable, "-c", STOPPED.format(before="default_int_handler")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        run.stdout.readline()
        for _ in range(2):
            run.send_signal(signal.SIGINT)
            time.sleep(0.3)
        said = run.communicate(timeout=60)[1]
    assert run.returncode == 1 and said.count("stopping, once the jobs have ended") == 1 and "Trace" not in said
    assert "the same command goes on from there" in said


def test_a_run_for_which_a_shell_ignores_ctrl_c_goes_on():
    command = [sys.executable, "-c", STOPPED.format(before="SIG_IGN")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        run.stdout.readline()
        run.send_signal(signal.SIGINT)
        assert run.communicate(timeout=60)[1] == "" and run.returncode == 0
