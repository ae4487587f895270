"""thaw advise: what it trains and in which order, and when it stops."""

import os
import subprocess
from collections.abc import Iterator

import pytest

import forked
from thaw.cli import finished_runs
from thaw.cli.advise_command import next_turns
from thaw.decision import record
from thaw.planning import pending_runs
from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan
from thaw.words import answer_text
from tiny import tiny_encoder
from workflow import HOME, Workplace, fork_servers

STRATEGIES = ["linear_probe", {"short_top": [1]}, "short_full"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Workplace]:
    """A workplace with one task, a probe and two strategies that train."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    more = {"tasks": ["colour"], "outputs": ["advice"], "strategies": STRATEGIES}
    place.write("mine.yaml", Workplace.experiment("mine", **more | {"seeds": [1]}))
    place.write("seeds.yaml", Workplace.experiment("seeds", **more | {"seeds": [1, 2]}))
    with fork_servers() as place.servers:
        yield place


def thaw(place: Workplace, *words: str) -> subprocess.CompletedProcess:
    environment = place.environment | {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOME / "scripts")}
    return forked.run(["thaw.cli.main", *words, "--cores", "2"], place.folder, environment)


@pytest.fixture(scope="module")
def done(place) -> subprocess.CompletedProcess:
    """What advice on the three strategies printed."""
    done = thaw(place, "advise", "mine.yaml")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def test_it_prints_the_cheapest_scores_first_and_ends_in_an_answer(place, done):
    (answer,) = record.read(place.folder / "results/outputs/mine")
    lines = done.stdout.splitlines()
    names = [answer.names[name] for name in ("linear_probe", "short_top k01", "short_full")]
    printed = [next(n for n, line in enumerate(lines) if line.startswith(f"{answer.title}: {name} ")) for name in names]
    assert printed == sorted(printed), "probes, then what trains, from cheap to dear"
    assert answer_text.in_terminal(answer) in done.stdout and "such answers lost " in done.stdout.splitlines()[-1]


def test_a_limit_is_a_time(place):
    wrong = thaw(place, "advise", "seeds.yaml", "--time", "soon")
    assert wrong.returncode == 1 and wrong.stderr == "error: soon: is no time; write 90s, 10m or 2h\n"


def test_more_seeds_are_trained_where_they_may_change_the_answer(place, tmp_path, monkeypatch):
    monkeypatch.chdir(place.folder)
    plan = load_plan(read_config(["seeds.yaml"]), HOME, results=str(tmp_path))
    turns = pending_runs.pending_runs(plan, "seeds")
    second = [turn for turn in turns if turn.number]
    assert {turn.number for turn in next_turns(turns, set(), Ten(), None)} == {0}
    assert len(next_turns(turns, set(), Ten(), 9.0)) == 0 and len(next_turns(turns, set(), Ten(), 10.0)) == 1
    (chosen,) = next_turns(second, {second[0].run.cell}, Ten(), None)
    assert chosen.run.cell == second[1].run.cell
    assert next_turns(second, {turn.run.cell for turn in second}, Ten(), None) == []


class Ten:
    """A run takes ten seconds, whatever its operations."""

    def seconds(self, operations: float) -> float:
        return 10.0


def test_what_cannot_change_the_answer_needs_no_further_seed(place, done):
    os.chdir(place.folder)
    plan = load_plan(read_config(["mine.yaml"]) | {"seeds": [1, 2]}, HOME)
    (answer,) = finished_runs.current_answers(plan, "mine")
    cells = {
        arm.name: f"runs/{'/'.join(answer.cell_of(arm.name).values())}" for arm in answer.decision.arms if arm.encoder
    }
    low = {cells[arm.name] for arm in answer.decision.arms if arm.encoder and arm.gain < finished_runs.LEAST_GAIN}
    assert set(finished_runs.decided([answer])) == low
