"""The plan: selections become runs, and a run's spec holds what it depends on and nothing else."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from huggingface_hub import constants
from snakemake.cli import parse_config

import forked
from plans import plan_of, plan_with
from thaw.core.boundaries import cacheable_layers, resume_plan
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.planning import cost_estimate
from thaw.planning.configuration import load_plan, read_config
from thaw.planning.prepared_checks import refuse_shortfalls, shortfalls
from thaw.planning.questions import command


def test_over_budget_fewer_boundaries_are_stored_and_a_phase_resumes_below():
    tokens = plan_of().catalogue.get("corpora", "acceptability", "test").size.tokens
    room = 2.5 * tokens * 384 * 2 / 2**30
    plan = plan_of(strategies=[{"top_k": [0, 1, 4]}], seeds=[1], store={"max_gib": room})
    spec = {run.variant: plan.job(run.step, run.key).spec for run in plan.runs if run.task == "acceptability"}
    assert cacheable_layers(6, 384, tokens, "bf16", room) == [3, 6]
    assert [spec[v]["phases"][0]["boundary"] for v in ("k00", "k01", "k04")] == [6, 3, None]
    (sentence,) = [line for line in cost_estimate.left_out(plan) if "acceptability" in line]
    assert "holds b3 b6 of minilm/acceptability/joint; what starts elsewhere computes the layers below it" in sentence
    assert cost_estimate.left_out(plan_of()) == []


def test_the_precision_of_an_experiment_is_that_of_phases_which_state_none(tmp_path):
    entries = """
  plain: {base: full, label: P, from: task_text, phases: [{train: [head]}, {train: [all], epochs: 1}]}
  own: {label: O, phases: [{train: [all], precision: fp32}]}
"""
    wish = {"strategies": ["plain", "own", "frozen_sgd", "linear_probe"], "outputs": ["main_table"]}
    usual, asked = (
        plan_with(tmp_path / "own", entries, **wish, compute={"threads": 1} | precision)
        for precision in ({}, {"precision": "bf16"})
    )
    specs = {run.strategy: asked.job(run.step, run.key).spec for run in asked.runs}
    assert [phase["precision"] for phase in specs["plain"]["phases"]] == ["bf16"] * 2
    (pretrained,) = asked.jobs["pretrain"].values()
    assert pretrained.spec["settings"]["phase"]["precision"] == "bf16"
    for run in (run for run in usual.runs if run.strategy != "plain"):
        same = usual.job(run.step, run.key).digest == asked.job(run.step, run.key).digest
        assert same, f"{run.strategy} states its precision, or is fitted on vectors"
    said = asked.job("report", "demo").spec["strategies"]
    assert said["plain"]["phases"][1]["precision"] == "bf16" and "precision" not in said["linear_probe"]["phases"][0]


def test_a_start_is_the_other_strategys_own_run():
    plan = plan_of(strategies=["stack_then_finetune"], tasks=["acceptability"], seeds=[1])
    first, second = plan.runs
    assert (first.strategy, second.strategy) == ("frozen_sgd", "stack_then_finetune")
    both = plan_of(strategies=["frozen_sgd", "stack_then_finetune"], tasks=["acceptability"], seeds=[1])
    assert [r.folder for r in both.runs] == [first.folder, second.folder]
    labels = plan.job("report", "demo").spec["labels"]["strategies"]
    assert labels["frozen_sgd"] == "Frozen encoder (AdamW, 3 epochs)", "a start has its name in print too"
    assert plan.job("train", second.key).inputs["start"] == [f"results/{first.folder}/metrics.json"]


def test_a_spec_is_free_of_labels_paths_and_seeds_of_others(home):
    plan = plan_of()
    for run in plan.runs:
        text = canonical(plan.job(run.step, run.key).spec)
        assert plan.catalogue.get("strategies", run.strategy, "test").label not in text and str(home) not in text
        assert ("seed" in json.loads(text)) == (run.step == "train")


def test_a_catalogue_whose_folder_is_not_named_is_pointed_to(home, tmp_path):
    (tmp_path / "my").mkdir()
    (tmp_path / "my/encoders.yaml").write_text("encoders: {mine: {hub: a/b, layers: 2, width: 8}}\n")
    (tmp_path / "another").mkdir()
    (tmp_path / "another/encoders.yaml").write_text("encoders: [\n")
    (tmp_path / "mine.yaml").write_text("encoders: [mine]\n")
    files = [str(home / "tests/base.yaml"), str(tmp_path / "mine.yaml")]
    with pytest.raises(
        UserError, match=r"mine.yaml:1: encoders: no 'mine' .*; .*my/encoders.yaml has it: name its folder"
    ):
        load_plan(read_config(files), home, files=files)


def test_overlays_replace_lists_and_merge_mappings_and_files_stay_as_they_are(tmp_path):
    (tmp_path / "a.yaml").write_text("seeds: [1, 2]\nstore: {dtype: fp32, max_gib: 3}\n")
    (tmp_path / "b.yaml").write_text("seeds: [3]\nstore: {max_gib: 4}\n")
    for _ in range(2):
        merged = read_config([tmp_path / "a.yaml", tmp_path / "b.yaml"])
        assert merged == {"seeds": [3], "store": {"dtype": "fp32", "max_gib": 4}}
        merged["store"]["dtype"] = "bf16"
        merged["seeds"].append(9)


def test_the_plan_in_words_names_runs_jobs_bytes_and_time(home):
    printed = forked.run(["thaw.cli.main", "plan", home / "tests/base.yaml", "--runs", "--config", "seeds=[1]"]).stdout
    counted = "runs 26: linear_probe: 3, linear_probe_all_layers: 3, ladder: 3, top_k: 6, full: 3, frozen_sgd: 3, "
    assert counted in printed
    assert "acceptability/all/minilm/linear/top_k/k01/seed1  phase 1: from b5, trains head layer.6" in printed
    assert "after frozen_sgd: from text, trains head embeddings" in printed
    assert "MiB" in printed and "time, roughly" in printed


def test_the_plan_names_what_comes_from_the_hub(home, tmp_path):
    chosen = ["tasks=[sst2]", "encoders=[minilm, bert_base_uncased]", "strategies=[frozen]", "sources=[hub]"]
    done = forked.run(["thaw.cli.main", "plan", home / "tests/base.yaml", "--config", *chosen], tmp_path)
    assert "cache has them: sst2 (nyu-mll/glue), bert_base_uncased (google-bert/bert-base-uncased)\n" in done.stdout
    assert "from the Hub" not in forked.run(["thaw.cli.main", "plan", home / "tests/base.yaml"], tmp_path).stdout


def test_what_is_drawn_already_is_no_record_that_the_plan_reads(home, tmp_path):
    outputs = tmp_path / "results/outputs/demo"
    command = ["thaw.cli.main", "plan", home / "tests/base.yaml"]
    before = forked.run(command, tmp_path).stdout
    (outputs / "tables").mkdir(parents=True)
    for file in [outputs / "runs.csv", outputs / "tables/main_table.html"]:
        file.write_text("no JSON")
    done = forked.run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    for printed in (before, done.stdout):  # runs are missing, so that all is drawn again
        assert re.search(r"  collect +1 +1 to run\n", printed)


def test_a_head_on_several_layers_takes_them_from_the_store_or_from_the_encoder():
    every = [0, 1, 2, 3]
    assert resume_plan(every, 3, [3]) == {"boundary": 3}
    assert resume_plan(every, 3, [1]) == {"boundary": 1}, "nothing above the layer that is read is loaded"
    assert resume_plan(every, 3, every) == {"boundary": 3, "reads": [0, 1, 2]}
    assert resume_plan(every, 1, every) == {"boundary": 1, "reads": [0]}, "layers 2 and 3 are computed"
    assert resume_plan([1, 3], 3, [2, 3]) == {"boundary": 1}, "2 is not stored, so it is computed from 1"
    assert resume_plan([0, 3], 3, every) == {"boundary": 0}
    assert resume_plan([3], 3, every) == {"boundary": None} and resume_plan(every, None, every) == {"boundary": None}


def test_the_command_that_makes_files_again_says_what_snakemake_was_told(home):
    given = {
        "data_dir": "its 'own' data",
        "seeds": ["1", "2"],
        "allow_missing": True,
        "store": {"max_gib": "5"},
        "sources": "hub",
    }
    told = shlex.split(command(home, [home / "config/config.yaml"], given))
    assert told[-1] == "--" and parse_config(told[told.index("--config") + 1 : -1]) == given
    assert Path(told[told.index("--configfile") + 1]).samefile(home / "config/config.yaml")


def test_what_a_prepared_corpus_lacks_is_said_and_refused_unless_results_may_be_missing(home, tmp_path):
    """A subset of more rows than train has. F1 of one label is refused where the entry lists more."""
    base = yaml.safe_load((home / "tests/base.yaml").read_text()) | {"strategies": ["frozen"], "seeds": [1]}
    one = {"tasks": ["acceptability"], "subsets": ["n1000_d1"], "outputs": ["main_table"]}
    plan = load_plan(base | one, home, str(tmp_path))
    (corpus,) = plan.jobs["prepare"]
    card = {"digest": plan.job("prepare", corpus).digest, "splits": {"train": {"rows": 800}}, "labels": {}}
    write_json(tmp_path / f"data/{corpus}/card.json", card)
    lacks = f"acceptability: subset n1000_d1 of 1000 rows: train of {corpus} has 800; ask for fewer"
    plan = load_plan(base | one, home, str(tmp_path))
    assert shortfalls(plan) == [lacks]
    with pytest.raises(UserError, match=f"^{lacks}$"):
        refuse_shortfalls(plan)
    plan = load_plan(base | one | {"allow_missing": True}, home, str(tmp_path))
    assert shortfalls(plan) == [lacks] and refuse_shortfalls(plan) is None
    told = [f"{key}={json.dumps(value)}" for key, value in one.items()]
    told += [f"pathvars={{results: {tmp_path}}}", "strategies=[frozen]", "seeds=[1]"]
    done = forked.run(["thaw.cli.main", "plan", home / "tests/base.yaml", "--config", *told], tmp_path)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, f"error: {lacks}")
    (tmp_path / "tasks.yaml").write_text(
        "subsets: {most: {rows: 700, reserved: 200}, fewer: {rows: 600, reserved: 200}, half: {rows: 400, "
        "reserved: 500}, over: {rows: 401, reserved: 500}}"
    )
    own = {"subsets": ["most", "fewer", "half", "over"], "catalogues": [str(tmp_path)]}
    kept = (
        f"acceptability: subset most of 700 rows: train of {corpus} has 800, of which 200 are reserved; ask for fewer"
    )
    over = "acceptability: subset over of 401 rows: train of {} has 800, of which 400 are reserved; ask for fewer"
    assert shortfalls(load_plan(base | one | own, home, str(tmp_path))) == [kept, over.format(corpus)]
    write_json(tmp_path / f"data/{corpus}/card.json", card | {"digest": "of another entry"})
    assert shortfalls(load_plan(base | one, home, str(tmp_path))) == []
    own = "corpora: {c: {texts: [text], targets: {mood: label}, labels: {mood: [a, b, c]}, files: {format: csv, "
    own += "splits: {train: t.csv}}, carve: {validation: 0.2, test: 0.2}}}\n"
    own += "tasks: {mine: {corpus: c, target: mood, type: classification, metrics: [accuracy, f1]}}\n"
    (tmp_path / "tasks.yaml").write_text(own)
    (tmp_path / "t.csv").write_text("text,mood\na b,a\n")
    mine = base | {
        "tasks": ["mine"],
        "catalogues": [str(tmp_path)],
        "data_dir": str(tmp_path),
        "outputs": ["main_table"],
    }
    with pytest.raises(UserError, match=r"tasks.yaml:2: .*metric f1 is for two labels, and mood has 3; take f1_macro"):
        load_plan(mine, home, str(tmp_path))


def test_results_are_in_the_folder_that_the_configuration_names(tmp_path):
    """Whichever command loads the plan: run, plan, doctor or advise."""
    assert plan_of().results == plan_of(pathvars={"logs": "l"}).results == "results"
    assert plan_of(pathvars={"results": "a"}).results == "a"
    (tmp_path / "out").write_text("")
    with pytest.raises(UserError, match="out: is a file, and results are written to a folder of this name"):
        plan_of(pathvars={"results": str(tmp_path / "out")})


def test_a_plan_refuses_a_view_beyond_the_positions_and_what_cannot_be_downloaded(home, tmp_path, monkeypatch):
    base = yaml.safe_load((home / "tests/base.yaml").read_text()) | {"strategies": ["frozen"], "seeds": [1]}
    (tmp_path / "tasks.yaml").write_text(
        "views: {far: {max_length: 600}}\ntasks: {far: {base: acceptability, view: far}}\n"
    )
    far = base | {"tasks": ["far"], "encoders": ["minilm"], "catalogues": [str(tmp_path)]}
    said = r"tasks.yaml:1: views.far.max_length: 600 tokens, but minilm reads at most 512; write 512 or less$"
    with pytest.raises(UserError, match=said):
        refuse_shortfalls(load_plan(far, home, str(tmp_path)))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    plan = load_plan(base | {"tasks": ["acceptability"], "encoders": ["bert_base_uncased"]}, home, str(tmp_path))
    assert shortfalls(plan) == []
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (lacks,) = shortfalls(plan)
    assert lacks.startswith("HF_HUB_OFFLINE is set, and encoder google-bert/bert-base-uncased is in no cache")
    (tmp_path / "hub/models--google-bert--bert-base-uncased").mkdir(parents=True)
    assert shortfalls(plan) == []
