"""The cluster profile: what jobs ask for. quality/test_cluster.py runs a small experiment on a real SLURM."""

import re

import pytest
import yaml

import forked
from plans import plan_of
from thaw.planning.job_request import DAY, first_of_cells, request
from workflow import HOME


def test_jobs_ask_for_more_with_a_larger_encoder_and_at_each_retry():
    asked = {}
    for encoder in ("minilm", "bert_base_uncased"):
        plan = plan_of(encoders=[encoder], strategies=["full"], seeds=[1])
        asked[encoder] = [request(plan, step, key) for step in ("features", "train") for key in plan.jobs[step]]
        for step in ("features", "train"):
            for key in plan.jobs[step]:
                once, again = request(plan, step, key), request(plan, step, key, attempt=2)
                assert {name: 2 * value for name, value in once.items()} == again
    for small, large in zip(asked["minilm"], asked["bert_base_uncased"], strict=True):
        assert small["mem_mb"] < large["mem_mb"] and small["runtime"] <= large["runtime"]


def test_a_job_with_a_gpu_asks_for_the_time_that_it_takes_there():
    plan = plan_of(encoders=["bert_large_uncased"], tasks=["conll2003"], sources=["hub"], strategies=["lee_full_10"])
    asked = [request(plan, "train", key, gpu=True) for key in plan.jobs["train"]]
    assert {found["mem_mb"] for found in asked} == {request(plan, "train", key)["mem_mb"] for key in plan.jobs["train"]}
    assert all(30 < found["runtime"] < DAY / 4 for found in asked)


MINUTES_BY_RULE = """
include: "{home}/Snakefile"
of = {{
    "train": dict(task="conll2003", subset="all", encoder="bert_base_uncased", head="linear", strategy="full",
                  variant="base", seed="3"),
    "features": dict(weights="bert_base_uncased", corpus="conll2003", view="whole"),
}}
for name, wildcards in of.items():
    print("asks", name, workflow.get_rule(name).resources["runtime"]._value(wildcards, attempt=1))
"""


@pytest.mark.parametrize("rule", ["train", "features"])
def test_a_rule_that_is_given_a_gpu_by_its_name_asks_for_the_time_that_it_takes_there(tmp_path, rule):
    (tmp_path / "Snakefile").write_text(MINUTES_BY_RULE.format(home=HOME))
    wish = {"encoders": ["bert_base_uncased"], "tasks": ["conll2003"], "sources": ["hub"]}
    wish |= {"strategies": ["linear_probe", "full"], "seeds": [1, 2, 3], "baselines": [], "outputs": ["main_table"]}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(wish))
    command = ["snakemake", "--configfile", HOME / "tests/base.yaml", "mine.yaml", "--dry-run", "--cores", "2"]
    minutes = []
    for more in ([], ["--set-resources", f"{rule}:gpu=1"]):
        done = forked.run([*command, *more], tmp_path)
        assert done.returncode == 0, done.stderr
        asked = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("asks ")]
        minutes.append({name: int(count) for name, count in asked})
    assert [name for name, count in minutes[0].items() if minutes[1][name] < count] == [rule]


def test_no_job_asks_for_more_than_a_day():
    plan = plan_of(encoders=["bert_large_uncased"], tasks=["conll2003"], sources=["hub"], strategies=["lee_full_10"])
    assert {request(plan, "train", key)["runtime"] for key in plan.jobs["train"]} == {DAY}


def test_all_seeds_of_a_cell_ask_for_as_much():
    plan = plan_of(strategies=["full", {"top_k": [1, 2]}], seeds=[1, 2, 3])
    first = first_of_cells(plan)
    assert list(first) == list(plan.jobs["train"]) and 3 * len(set(first.values())) == len(first)
    assert all(request(plan, "train", key) == request(plan, "train", other) for key, other in first.items())


def rules() -> dict[str, bool]:
    """Return whether each rule runs where Snakemake does, always or by what it reads, by its name."""
    local = {}
    for file in (HOME / "workflow/rules").glob("*.smk"):
        parts = re.split(r"^ *rule (\w+):$", file.read_text(), flags=re.MULTILINE)[1:]
        local |= {name: "localrule: " in body for name, body in zip(parts[::2], parts[1::2], strict=True)}
    return local


def test_where_each_rule_runs_on_a_cluster_is_said_in_the_profile_and_on_its_page():
    local = rules()
    assert len(local) == 19 and local["prepare"] and local["free"] and not local["train"] and not local["teach"]
    page = (HOME / "docs/howto/cluster.md").read_text()
    lines = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", page.partition("## What runs where")[2], re.MULTILINE)
    named = {name: where.startswith("login node") for names, where in lines for name in re.findall(r"`(\w+)`", names)}
    assert {name: here for name, here in named.items() if name in local} == local
    head = (HOME / "workflow/profiles/slurm/config.yaml").read_text().partition("executor:")[0]
    parts = head.partition("All others are SLURM jobs")
    said = {name: part == parts[0] for part in (parts[0], parts[2]) for name in re.findall(r"\w+", part)}
    assert {name: here for name, here in said.items() if name in local} == local


def test_every_profile_reruns_by_the_same_triggers():
    profiles = {path.parent.name: yaml.safe_load(path.read_text()) for path in HOME.glob("workflow/profiles/*/*.yaml")}
    assert {"default", "slurm"} <= set(profiles)
    assert all(profile["rerun-triggers"] == ["mtime", "params", "input"] for profile in profiles.values())
