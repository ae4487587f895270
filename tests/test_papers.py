"""The experiments of papers: each is planned whole, and scaled down to the local data."""

import re

import pytest

from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan

TRAINED = ["peters2019", "lee2019", "lee2019_roberta", "lee2019_rates", "wang2019", "wei2022"]
TRAINED += ["wei2022_students", "houlsby2019", "ulmfit", "kovaleva2019"]
UNSEARCHED = {"lee2019_rates", "kovaleva2019"}
PROBED = ["peters2019_layers", "peters2019_domains"]
PAPERS = [TRAINED[0], *PROBED, *TRAINED[1:]]


def planned(home, name: str, data, overlay: bool = False):
    """Return the plan of a paper's experiment, or of it under the overlay offline.yaml."""
    files = [f"config/experiments/{name}.yaml"] + ["config/experiments/offline.yaml"] * overlay
    return load_plan(read_config([str(home / file) for file in files], {"data_dir": str(data)}), home)


@pytest.mark.parametrize("name", TRAINED)
def test_a_papers_experiment_is_planned_whole(name, home, tmp_path):
    plan = planned(home, name, tmp_path)
    assert all(sentence.startswith("Encoder elmo was left out") for sentence in plan.left_out)
    runs = plan.runs
    assert {run.seed for run in runs if run.trial}.isdisjoint(plan.experiment.seeds)
    assert len(plan.jobs["train"]) > (60 if name in UNSEARCHED else 200)
    assert bool(plan.jobs["select"]) == (name not in UNSEARCHED)


@pytest.mark.parametrize("name", PROBED)
def test_a_papers_probes_are_planned_whole(name, home, named_files):
    plan = planned(home, name, named_files)
    assert not plan.left_out and len(plan.jobs["probe"]) > 1


@pytest.mark.parametrize("name", PAPERS)
def test_scaled_down_it_runs_on_the_local_data_and_says_what_was_left_out(name, home, named_files):
    plan = planned(home, name, named_files, overlay=True)
    runs = plan.runs
    assert list(plan.jobs["report"]) == [f"{name}_scaled"]
    assert {run.encoder for run in runs} - {"minilm_random"} == {"minilm"} and {run.subset for run in runs} == {
        "n500_s300"
    }
    wanted = set(read_config([str(home / f"config/experiments/{name}.yaml")])["tasks"])
    gone = {task for task in wanted if any(s.startswith(f"Task {task} was left out") for s in plan.left_out)}
    assert {run.task for run in runs} == wanted - gone != set()


def test_make_papers_runs_them_all(home):
    (named,) = re.findall(r"^PAPERS := (.*)$", (home / "Makefile").read_text(), re.MULTILINE)
    assert named.split() == PAPERS


def test_an_optional_encoder_whose_files_are_missing_is_left_out_and_said_so(home, tmp_path):
    plan = planned(home, "peters2019", tmp_path)
    assert {run.encoder for run in plan.runs} == {"bert_base_uncased", "bert_base_cased"}
    assert "named in https://github.com/allenai/bilm-tf" in plan.left_out[0]
