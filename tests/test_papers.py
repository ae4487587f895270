"""The experiments of papers, scaled down to the local data; tests/test_specs.py plans each of them whole."""

import re

import pytest

from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan

PAPERS = ["peters2019", "peters2019_layers", "peters2019_domains", "lee2019", "lee2019_roberta", "lee2019_rates"]
PAPERS += ["wang2019", "wei2022", "wei2022_students", "houlsby2019", "ulmfit", "kovaleva2019"]


def planned(home, name: str, data, overlay: bool = False):
    """Return the plan of a paper's experiment, or of it under the overlay offline.yaml."""
    files = [f"config/experiments/{name}.yaml"] + ["config/experiments/offline.yaml"] * overlay
    return load_plan(read_config([str(home / file) for file in files], {"data_dir": str(data)}), home)


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
