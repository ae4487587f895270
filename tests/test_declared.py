"""Every file that a rule writes is declared, and on a shared disk nothing runs again for want of one."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from thaw.core import layout
from thaw.planning import written_files
from thaw.planning.configuration import load_plan
from tiny import tiny_encoder
from workflow import Workplace

HOME = Path(__file__).parents[1]
CARD = "results/data/things/card.json"


@pytest.fixture
def place(tmp_path) -> Workplace:
    """A user's folder; the encoder is a folder with a file in it, which no job here loads."""
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder/config.json").write_text("{}")
    return Workplace(tmp_path, tmp_path / "encoder")


def plan_of(place: Workplace, monkeypatch, **changes):
    """Return the plan of an experiment on a user's folder."""
    monkeypatch.chdir(place.folder)
    return load_plan(place.experiment("mine", **changes), HOME)


def test_what_comes_with_a_file(place, monkeypatch):
    plan = plan_of(place, monkeypatch, strategies=["linear_probe", {"short_top": [1]}])
    run, store = "results/runs/colour/all/tiny/linear/short_top/k01/seed1", "results/features/tiny/things/joint"
    names = {Path(file).name for file in written_files.next_to(plan, [f"{run}/metrics.json"])}
    assert names == {"cost.json", "history.csv", "predictions.parquet", "head.safetensors"}
    assert written_files.next_to(plan, [f"{store}/b3.json", f"{store}/tokens.json"]) == [
        f"{store}/b3.safetensors",
        f"{store}/tokens.parquet",
    ]
    assert written_files.as_declared(plan, CARD) == "results/data/things"
    assert written_files.as_declared(plan, f"{run}/metrics.json") == f"{run}/metrics.json"
    assert written_files.next_to(plan, ["data/train.csv", "results/nothing/at/all.json"]) == []
    shown = written_files.shown(plan)
    assert f"{store}/b3.json" in shown and f"{store}/b3.safetensors" not in shown


def test_runs_that_keep_their_encoder_have_a_rule_of_their_own(place):
    strategies = place.files["my/strategies.yaml"]
    strategies["strategies"]["short_top"]["keep"] = True
    place.write("my/strategies.yaml", strategies)
    place.write("mine.yaml", place.experiment("mine", strategies=[{"short_top": [1]}, "short_full"]))
    planned = place.planned()
    assert planned["train_kept"] == planned["train"] == 2
    place.write("mine.yaml", place.experiment("mine", strategies=[{"short_top": [1]}, "short_full"], seeds=[1, 2]))
    assert place.planned()["train_kept"] == place.planned()["train"] == 4
    together = {"threads": 1, "together": 2}
    changed = place.experiment("mine", strategies=[{"short_top": [1]}, "short_full"], seeds=[1, 2], compute=together)
    place.write("mine.yaml", changed)
    assert place.planned()["train_1_2_kept"] == place.planned()["train_1_2"] == 2


@pytest.mark.parametrize("together", [1, 3])
def test_a_run_that_keeps_its_encoder_for_a_merge_declares_it_though_other_seeds_do_not(place, together):
    """Only the seed that is served is kept; with a storage its encoder is named, and some rule has to write it."""
    merges = {"near": {"strategies": [{"short_top": [1]}]}}
    compute = {"threads": 1, "together": together}
    asked = {"strategies": [{"short_top": [1]}], "seeds": [1, 2, 3], "merges": merges, "compute": compute}
    place.write("mine.yaml", place.experiment("mine", **asked))
    planned = place.planned()
    tasks = planned["train_kept"]
    assert planned["train_2_3"] == tasks if together == 3 else planned["train"] == 2 * tasks
    run = "results/runs/colour/all/tiny/linear/short_top/k01"
    assert "job " in place.checked("--dry-run", "--cores", "1", f"{run}/seed1/{layout.ENCODER}").lower()
    refused = place.checked("--dry-run", "--cores", "1", f"{run}/seed2/{layout.ENCODER}", status=1)
    assert "MissingRuleException" in refused


def test_a_result_of_an_older_version_is_finished_and_a_changed_setting_still_makes_it_again(place):
    """Its folder was not declared: Snakemake has no record of it. Nor is a file missed that no job names."""
    place.snakemake("--cores", "1", CARD)
    place.checked("--cleanup-metadata", "results/data/things")
    (place.folder / "results/data/things/test.parquet").unlink()
    assert "Nothing to be done" in place.checked("--dry-run", "--cores", "1", CARD)
    content = place.files["my/tasks.yaml"]
    content["corpora"]["things"]["files"]["quoting"] = "none"
    place.write("my/tasks.yaml", content)
    assert "params have changed since last execution" in place.checked("--dry-run", "--cores", "1", CARD).lower()


def test_every_profile_for_machines_without_a_shared_disk_says_so():
    profile = yaml.safe_load((HOME / "workflow/profiles/kubernetes/config.yaml").read_text())
    assert profile["shared-fs-usage"] == "none" and profile["default-storage-provider"] == "s3"


SUBMIT = """
folder=$(mktemp -d {jobs}/XXXXXX)
cp -r my data mine.yaml $folder
ln -s {home} $folder/thaw
cd $folder
sh "$1" > job.log 2>&1
echo $? > status
echo $folder
"""
STATUS = "sh -c 'if [ $(cat $0/status) = 0 ]; then echo success; else echo failed; fi'"


@pytest.mark.slow
@pytest.mark.parametrize(
    "experiment",
    [
        {"strategies": ["linear_probe"], "baselines": [], "outputs": ["main_table"]},
        {"strategies": ["linear_probe", {"short_top": [1]}, "short_full", "short_stack"], "seeds": [1, 2]},
    ],
    ids=["linear_probe", "trained"],
)
def test_a_job_that_sees_only_what_it_names_has_all_it_reads(tmp_path, experiment):
    """Snakemake's storage plug-in, and its plug-in for clusters with a command that gives each job its own folder."""
    pytest.importorskip("snakemake_storage_plugin_fs")
    pytest.importorskip("snakemake_executor_plugin_cluster_generic")
    if not shutil.which("rsync"):
        pytest.skip("snakemake-storage-plugin-fs needs rsync")
    (folder := tmp_path / "place").mkdir()
    (jobs := tmp_path / "jobs").mkdir()
    place = Workplace(folder, tiny_encoder("bert", tmp_path / "encoder"))
    strategies = place.files["my/strategies.yaml"]
    strategies["strategies"]["short_top"]["keep"] = True
    place.write("my/strategies.yaml", strategies)
    compute = {"threads": 1, "together": 2}
    place.write("mine.yaml", place.experiment("mine", tasks=["colour"], compute=compute, **experiment))
    (folder / "thaw").symlink_to(HOME)
    (tmp_path / "submit.sh").write_text(SUBMIT.format(jobs=jobs, home=HOME))
    # of Snakemake's options that are given twice the last counts
    words = ["--snakefile", "thaw/Snakefile", "--workflow-profile", "none", "--executor", "cluster-generic"]
    words += ["--jobs", "2", "--scheduler", "greedy", "--rerun-triggers", "mtime", "params", "input"]
    words += ["--cluster-generic-submit-cmd", f"sh {tmp_path}/submit.sh", "--cluster-generic-status-cmd", STATUS]
    words += ["--shared-fs-usage", "none", "--default-storage-provider", "fs"]
    words += ["--default-storage-prefix", f"{tmp_path}/storage"]
    place.snakemake(*words)
    results = tmp_path / "storage/results"
    assert (results / "outputs/mine/report.html").is_file() and not (folder / "results").exists()
    runs = list(results.glob("runs/colour/*/*/*/*/*/seed*"))
    assert runs and all((run / name).is_file() for run in runs for name in ("metrics.json", *layout.WRITTEN["train"]))
    specs = {run: json.loads((run / "metrics.json").read_text())["spec"] for run in runs}
    assert all((run / layout.ENCODER).is_file() == bool(spec.get("keep")) for run, spec in specs.items())
    assert len(list(jobs.iterdir())) >= 2 and "Nothing to be done" in place.snakemake(*words)
