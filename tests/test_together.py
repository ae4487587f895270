"""Seeds that one job trains: `compute: {together: 5}` changes no number and no spec, and trains what is missing."""

import signal
from pathlib import Path

import pytest

import forked
from thaw.core import layout, retraining
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan
from thaw.planning.jobs import JobTable
from thaw.planning.seed_parts import alone, pattern, seed_parts
from tiny import tiny_encoder
from tiny_corpus import Bench, small_berts
from workflow import Workplace

HOME = Path(__file__).parents[1]
FILES = ("metrics.json", "head.safetensors", "predictions.parquet", "history.csv")


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    """A small BERT and 24 sentences."""
    return small_berts(tmp_path_factory)("classification")


def specs(bench: Bench, *seeds: int, **changes) -> list[dict]:
    """Return the specs of runs that train the last layer for one epoch."""
    spec = bench.spec({"train": ("head", {"top": "k"}), "epochs": 1})
    return [spec | {"seed": seed} | changes for seed in seeds]


def train(bench: Bench, out: Path, *runs: dict) -> Path:
    """Run the step for several seeds."""
    return bench.step("train", {"together": list(runs)}, out)


def stamps(out: Path) -> dict[str, int]:
    """Return when the record of each seed was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in out.glob("seed*/metrics.json")}


def test_seeds_of_one_job_have_the_bytes_that_each_has_alone(bench, tmp_path):
    train(bench, tmp_path / "cell", *specs(bench, 1, 2))
    for spec in specs(bench, 1, 2):
        seed = bench.step("train", spec, tmp_path / f"alone{spec['seed']}")
        for name in FILES:
            assert (seed / name).read_bytes() == (tmp_path / "cell" / f"seed{spec['seed']}" / name).read_bytes(), name
        assert not (tmp_path / "cell" / f"seed{spec['seed']}" / "progress.safetensors").exists()


def test_only_seeds_that_are_missing_or_of_another_spec_are_trained(bench, tmp_path):
    """One more seed, a deleted one, one without its costs, one of an older spec; then none."""
    out = train(bench, tmp_path / "cell", *specs(bench, 1, 2))
    first = stamps(out)
    train(bench, out, *specs(bench, 1, 2, 3))
    second = stamps(out)
    assert set(second) == {"seed1", "seed2", "seed3"} and {name: second[name] for name in first} == first
    (out / "seed2/metrics.json").unlink()
    (out / "seed3/cost.json").unlink()
    train(bench, out, *specs(bench, 1, 2, 3))
    third = stamps(out)
    assert third["seed1"] == first["seed1"] and third["seed2"] > first["seed2"] and third["seed3"] > second["seed3"]
    record = read_json(out / "seed1/metrics.json")
    write_json(out / "seed1/metrics.json", record | {"digest": "0" * 16})
    train(bench, out, *specs(bench, 1, 2, 3))
    assert read_json(out / "seed1/metrics.json") == record
    last = stamps(out)
    train(bench, out, *specs(bench, 1, 2, 3))
    assert stamps(out) == last


def test_a_seed_that_fails_leaves_the_others(bench, tmp_path):
    """The job fails with what went wrong; its stale record is gone; what is there stays; the next trains that seed."""
    first, second, third = specs(bench, 1, 2, 3)
    out = train(bench, tmp_path / "cell", second | {"keep": True})
    wrong = second | {"features": "f" * 16}
    with pytest.raises(UserError, match=r"^1 of 3 runs failed \(seed 2: .*has digest .*\); the others are there$"):
        train(bench, out, first, wrong, third)
    assert set(stamps(out)) == {"seed1", "seed3"}
    there = stamps(out)
    train(bench, out, first, second, third)
    assert {name: stamps(out)[name] for name in there} == there and len(stamps(out)) == 3


def test_a_run_of_its_own_stays_where_it_was_trained_with_others(bench, tmp_path):
    """As when `together` is 1 again; another spec is trained, and so is one that asks for no look."""
    out = train(bench, tmp_path / "cell", *specs(bench, 1, 2))
    (first, second), (run, _) = specs(bench, 1, 2), (out / "seed1", out / "seed2")
    before = stamps(out)
    bench.step("train", first, run, "--if-missing")
    assert stamps(out) == before
    bench.step("train", first | {"keep": True}, run, "--if-missing")
    bench.step("train", second, out / "seed2")
    after = stamps(out)
    assert after["seed1"] > before["seed1"] and after["seed2"] > before["seed2"]


def test_a_record_of_an_older_spec_that_snakemake_puts_back_is_known(bench, tmp_path):
    """Counted before it is deleted, so that a kill does not hide it; what ended well leaves no trace, or the count."""
    (spec,), out = specs(bench, 1), tmp_path / "cell"
    run = train(bench, out, spec | {"keep": True}) / "seed1"
    assert retraining.begun(run) == 0
    older = (run / "metrics.json").read_bytes()
    for count in (1, 2):
        with pytest.raises(UserError, match="runs failed"):
            train(bench, out, spec | {"features": "f" * 16})
        assert retraining.begun(run) == count and not (run / "metrics.json").exists()
        (run / "metrics.json").write_bytes(older)  # as Snakemake does
    train(bench, out, spec)
    assert retraining.begun(run) == 2, "as the params of this job have it"
    train(bench, out, spec | {"keep": True})
    assert retraining.begun(run) == 2


@pytest.mark.slow
def test_snakemake_trains_the_seeds_of_a_cell_in_one_job(tmp_path):
    """A seed that is added or deleted is trained alone, however many share a job; then nothing is left to do."""
    place = Workplace(tmp_path / "place", tiny_encoder("bert", tmp_path / "encoder", 3))

    folder = place.folder / "results/runs/colour/all/tiny/linear/short_top/k01"

    def plan(seeds: list[int], together: int) -> dict[str, int]:
        chosen = {"tasks": ["colour"], "strategies": [{"short_top": [1]}], "baselines": [], "outputs": ["main_table"]}
        compute = {"compute": {"threads": 1, "together": together}}
        place.write("mine.yaml", place.experiment("mine", seeds=seeds, **chosen, **compute))
        return {name: count for name, count in place.planned().items() if name.startswith("train")}

    def run() -> dict[str, int]:
        """Return which file each seed's head is: one that is written again is another; Snakemake touches all."""
        place.snakemake()
        assert place.planned() == {}
        return {path.parent.name: path.stat().st_ino for path in folder.glob("seed*/head.safetensors")}

    assert plan([1, 2], 2) == {"train_1_2": 1}
    first = run()
    assert plan([1, 2, 3], 3) == {"train_1_2_3": 1}
    second = run()
    assert set(second) == {"seed1", "seed2", "seed3"} and {name: second[name] for name in first} == first
    (folder / "seed2/metrics.json").unlink()
    for name in ("runs.csv", "report.html"):  # else nothing asks for the seed
        (place.folder / "results/outputs/mine" / name).unlink()
    assert plan([1, 2, 3], 3) == {"train_1_2_3": 1}
    third = run()
    assert third["seed2"] != second["seed2"] and third | {"seed2": 0} == second | {"seed2": 0}
    assert plan([1, 2, 3], 1) == {"train": 3}
    assert run() == third, "each looks whether it is done"
    strategies = place.files["my/strategies.yaml"]
    strategies["strategies"]["short_top"]["phases"][0]["rate"] = "2e-3"
    place.write("my/strategies.yaml", strategies)
    (card,) = place.folder.glob("results/features/tiny/things/*/tokens.json")
    right = card.read_text()
    card.write_text(right.replace(read_json(card)["digest"], "0" * 16))
    plan([1, 2, 3], 3)
    assert "runs failed" in place.snakemake(check=False)
    card.write_text(right)
    assert plan([1, 2, 3], 3) == {"train_1_2_3": 1}, "although Snakemake put the old records back as made"
    assert all(file != third[name] for name, file in run().items())


KILLED = """
import os, signal, sys
from thaw.core.runtime import run_step
from thaw.steps import train
execute, done = train.execute, []
def dies(spec, folders):
    if done:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(execute(spec, folders))
train.execute = dies
run_step(train.main)
"""


def test_a_kill_between_two_seeds_keeps_the_first(bench, tmp_path):
    out, runs = tmp_path / "cell", specs(bench, 1, 2)
    folders = ("--data", bench.corpus.folder, "--encoder", bench.encoder, "--features", bench.features, "--out", out)
    script = tmp_path / "train_and_die.py"
    script.write_text(KILLED)
    done = forked.run([script, "--spec", canonical({"together": runs}), *folders])
    assert done.returncode == -signal.SIGKILL, done.stderr
    first = stamps(out)
    assert set(first) == {"seed1"}
    train(bench, out, *runs)
    assert set(stamps(out)) == {"seed1", "seed2"} and stamps(out)["seed1"] == first["seed1"]


def plan_of(**compute):
    """Return the plan of the demo with five seeds."""
    changes = {"seeds": [1, 2, 3, 4, 5], "compute": {"threads": 1, **compute}}
    return load_plan(read_config([str(HOME / "tests/base.yaml")], changes), HOME, results="no_results_yet")


def test_no_spec_says_how_many_seeds_a_job_trains():
    plain, shared = plan_of(together=1), plan_of(together=3)
    assert plain.trained_together()[0] == {}
    for step, jobs in plain.jobs.items():
        assert {key: job.canonical for key, job in jobs.items()} == {
            key: job.canonical for key, job in shared.jobs[step].items()
        }
    parts, others = shared.trained_together()
    assert set(parts) == {(1, 2, 3), (4, 5)} and others == "none"
    assert "(?<=/linear/full/)base" in parts[1, 2, 3].split("|") and "linear_probe" not in parts[1, 2, 3].replace(
        "frozen_", ""
    )


def test_cells_that_differ_in_their_seeds_have_a_job_for_each():
    """As trials of a search and the runs that follow have; a single seed that is left over is alone too."""
    table = JobTable("results", {1, 2, 3})
    runs = {"base": (1, 2, 3), "trial1": (1, 2)}
    for task, seeds in (("a", runs), ("b", runs | {"trial1": (1,)})):
        for variant, own in seeds.items():
            for seed in own:
                names = {"task": task, "subset": "all", "encoder": "e", "head": "linear", "strategy": "full"}
                table.add("train", layout.key("train", names | {"variant": variant, "seed": seed}), {}, {})
    parts = seed_parts(table, 2)
    assert parts == {(1, 2): [("linear", "full", "base")]} and seed_parts(table, 1) == {}
    assert pattern(parts[1, 2]) == "(?<=/linear/full/)base"
    assert alone(table, parts).split("|") == [
        f"(?<=/linear/full/{run}/seed){seed}" for run, seed in (("base", 3), ("trial1", 1), ("trial1", 2))
    ]
    table.executed["fit_heads"].add(("linear", "full"))
    assert seed_parts(table, 2) == {}


def test_seeds_that_keep_their_encoder_share_no_job_with_those_that_do_not():
    """They write a file more, which a rule has to declare."""
    table = JobTable("results", {1, 2, 3, 4, 5})
    for seed in (1, 2, 3, 4, 5):
        names = {"task": "a", "subset": "all", "encoder": "e", "head": "linear", "strategy": "top_k", "variant": "k01"}
        table.add("train", layout.key("train", names | {"seed": seed}), {"keep": seed in (1, 4)}, {})
    parts = seed_parts(table, 5)
    assert parts == {(2, 3, 5): [("linear", "top_k", "k01")], (1, 4): [("linear", "top_k", "k01")]}
    assert alone(table, parts) == "none"
