"""A small experiment run by a real SLURM that this test starts; what jobs ask for is in tests/test_slurm.py."""

import os
import signal
import subprocess
import time

import pytest

from cluster import Cluster, missing
from tiny import tiny_encoder
from workflow import Workplace


@pytest.fixture
def cluster(tmp_path):
    """A SLURM of this test's own; skipped where none can be started."""
    if missing():
        pytest.skip(missing())
    with Cluster(tmp_path / "slurm") as started:
        yield started


def cancel_one(cluster: Cluster, rule: str) -> dict:
    """Wait until a job of a rule runs, cancel it, and return it."""
    for _ in range(1000):
        for job in cluster.jobs():
            if job["comment"].startswith(f"rule_{rule}_") and job["state"] == "RUNNING":
                subprocess.run(["scancel", job["number"]], check=True)
                return job
        time.sleep(0.5)
    raise TimeoutError(f"no job of rule {rule} ran")


def kill_workflow(cluster: Cluster, running: subprocess.Popen) -> None:
    """Kill Snakemake as soon as a job of its runs, and cancel what it leaves in the queue."""
    for _ in range(1000):
        if any(job["state"] == "RUNNING" for job in cluster.jobs()):
            break
        time.sleep(0.2)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    left = [job["number"] for job in cluster.jobs() if job["state"] in ("RUNNING", "PENDING")]
    assert left, "its jobs outlive it"
    subprocess.run(["scancel", *left], check=True)


@pytest.mark.slow
def test_a_small_experiment_runs_on_slurm_as_on_one_machine(cluster, tmp_path):
    """The workflow is killed between, one job cancelled, and one has too little memory at first."""
    encoder = tiny_encoder("bert", tmp_path / "tiny")
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    here, there = Workplace(tmp_path / "here", encoder), Workplace(tmp_path / "there", encoder)
    quick = ["--slurm-init-seconds-before-status-checks", "2", "--default-resources", "gpu=1"]
    quick += ["--set-resources", "baseline:mem_mb=100*attempt**3"]
    kill_workflow(cluster, there.start(*quick, profile="slurm"))
    there.snakemake("--unlock")
    before = len(cluster.jobs())
    with there.start(*quick, profile="slurm") as running:
        killed = cancel_one(cluster, "train")
        printed, _ = running.communicate(timeout=1500)
    assert running.returncode == 0, printed[-9000:]
    assert (there.folder / "results/outputs/mine/report.html").stat().st_size > 0

    jobs = cluster.jobs()[before:]
    rules = {job["comment"].partition("_wildcards")[0].removeprefix("rule_") for job in cluster.jobs()}
    assert rules == {"features", "fit_heads", "train", "baseline"}, "what needs a network stays here"
    assert {job["gpu"] for job in jobs if "rule_baseline" in job["comment"]} == {"N/A"}
    assert {job["gpu"] for job in jobs if "rule_baseline" not in job["comment"]} == {"gres:gpu:1"}

    first, second = (job for job in jobs if job["comment"] == killed["comment"])
    assert (first["state"], second["state"]) == ("CANCELLED", "COMPLETED")
    assert int(second["memory"].removesuffix("M")) == 2 * int(first["memory"].removesuffix("M"))
    small = [job["state"] for job in jobs if "rule_baseline" in job["comment"] and job["memory"] == "100M"]
    assert small and set(small) == {"FAILED"}, "SLURM kills what takes more than it asked for"

    grouped = ["--groups", "train=runs", "--group-components", "runs=2"]
    selection = {"tasks": ["colour"], "strategies": ["short_full"], "seeds": [1, 2, 3, 4], "baselines": []}
    for place in (here, there):
        place.write("seeds.yaml", place.experiment("seeds", **selection, outputs=["main_table"]))
    before = len(cluster.jobs())
    with there.start(*quick[:2], *grouped, config="seeds.yaml", profile="slurm") as running:
        printed, _ = running.communicate(timeout=600)
    assert running.returncode == 0, printed[-9000:]
    trainings = [job["state"] for job in cluster.jobs()[before:] if "train" in job["comment"]]
    assert trainings == ["COMPLETED"] * 2, "four seeds in two submissions"

    here.snakemake()
    here.snakemake(config="seeds.yaml")
    assert there.records() == here.records() and sum("/short_full/" in name for name in there.records()) == 4
    print(
        f"\n{len(cluster.jobs())} jobs: the workflow killed once, 1 job cancelled, {len(small)} out of memory; "
        f"{len(here.records())} of as many metrics.json are those of one machine"
    )
