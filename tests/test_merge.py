"""Merging: several runs of small encoders on one trunk, read again by a fresh process; what is refused."""

import contextlib
import shutil
from pathlib import Path

import pandas
import pytest
from safetensors.torch import load_file, save_file

from read_again import reader
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.exporting.finished_run import open_run
from thaw.merging import merged_folder
from thaw.merging.merge_runs import merge, merge_summary
from thaw.merging.merged_model import MergedModel
from thaw.merging.proof import prove
from thaw.merging.run_branch import open_branches
from tiny_corpus import Bench, tiny_corpus

FROZEN = {"train": ["head"], "epochs": 1}


def top(k: int) -> dict:
    return {"train": ["head", {"top": k}], "epochs": 1}


class Rooms:
    """A results folder with one encoder, in which runs of several tasks are trained, each on its own corpus."""

    def __init__(self, folder: Path, family: str):
        self.folder, self.family, self.benches = folder, family, {}

    def run(self, task: str, kind: str, phase: dict, name: str = "base", **changes) -> Path:
        """Train a run where there is none; return its folder. Tasks of one kind read the same text."""
        if kind not in self.benches:
            bench = Bench(self.folder / kind, self.family, tiny_corpus(self.folder / kind / "corpus", kind), kind)
            bench.linked(self.folder / kind / "results")
            self.benches[kind] = bench
        bench = self.benches[kind]
        out = self.folder / kind / "results/runs" / task / "all/e/linear" / name / "base/seed1"
        if not out.exists():
            spec = bench.spec(phase, keep=True, **changes)
            spec["task"] |= {"id": task}
            bench.step("train", spec, out)
        return out


@pytest.fixture(scope="module")
def rooms(tmp_path_factory):
    made = {}
    return lambda family="bert": made.setdefault(family, Rooms(tmp_path_factory.mktemp(family), family))


@pytest.fixture(scope="module")
def runs(rooms) -> dict[str, Path]:
    """Three tasks, two of which read the same text; the third reads pairs."""
    one = rooms()
    return {
        "sings": one.run("sings", "classification", top(1), head={"pooling": "mean"}),
        "rivers": one.run("rivers", "classification", top(2)),
        "pairs": one.run("pairs", "pair_classification", FROZEN),
    }


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory) -> Path:
    """The merged folder of these runs for tests of other files, which do not ask for a proof of it."""
    folder = tmp_path_factory.mktemp("merged")
    merged_folder.write(*open_branches(list(runs.values())), folder)
    return folder


def taught_student(one: Rooms, teacher: Path, folder: Path) -> Path:
    """Train a student of layers 1 and 2, from its teacher's weights and towards its logits; return its folder."""
    bench, run = one.benches["classification"], read_json(teacher / "metrics.json")
    spec = bench.spec(top(2), keep=True, student={"layers": [1, 2]})
    spec["task"] |= {"id": "taught"}
    spec["phases"][0] |= {"components": ["head", "layer.2"], "distil": {"logits": {"temperature": 2}}}
    asked = {key: spec[key] for key in ("version", "task", "subset", "compute", *bench.upstream)}
    asked |= {"run": run["digest"], "dtype": "fp32"}
    taught = bench.step("teach", asked, folder / "taught", "--run", teacher / "metrics.json", "--boundaries")
    spec |= {"after": {"run": run["digest"], "epoch": "last"}}
    spec |= {"teacher": {"taught": read_json(taught / "card.json")["digest"]}}
    needs = ("--need", "start", teacher / "metrics.json", "--need", "teacher", taught / "card.json")
    return bench.step("train", spec, teacher.parents[6] / "taught/all/e/linear/student/base/seed1", *needs)


@pytest.fixture(scope="module")
def student(rooms, runs, tmp_path_factory) -> Path:
    """A student of the second run."""
    return taught_student(rooms(), runs["rivers"], tmp_path_factory.mktemp("taught"))


@pytest.fixture(scope="module")
def merged(runs, student, tmp_path_factory):
    """The merged folder of these runs and the student, and its check."""
    folder = tmp_path_factory.mktemp("merged") / "out"
    return folder, merge([*runs.values(), student], folder)


def test_a_merged_folder_predicts_as_its_runs_to_the_bit_and_runs_its_trunk_once(merged):
    folder, report = merged
    assert report["passed"] and report == read_json(folder / "check.json")
    for task, frozen, own in (("sings", 2, 1), ("rivers", 1, 2), ("pairs", 3, 0)):
        part = report["tasks"][task]
        assert part["same_bits"] == {"examples": 8, "equal": True}
        assert part["layers"] == {"counted": frozen + own, "expected": frozen + own}
        assert part["splits"]["test"]["changed"] == 0 and part["splits"]["test"]["largest_difference"] < 1e-5
    together = report["inputs"]["text, at most 64 tokens"]
    assert sorted(together["tasks"]) == ["rivers", "sings", "taught"] and together["equal"]
    assert together["layers"] == {"counted": 2 + 1 + 2 + 1, "expected": 6}
    assert report["trunk"]["equal"] and report["trunk"]["below_a_branch"] == []


def test_the_folder_needs_no_thaw_and_holds_the_trunk_once(merged):
    folder, _ = merged
    code = {path.name: path.read_text() for path in folder.glob("*.py")}
    assert set(code) == {"model.py", "resume.py", "standalone_model.py"}
    assert "thaw." not in code["model.py"].replace("thaw.json", "")
    trunk = load_file(folder / "trunk.safetensors")
    layers = {name.split(".")[2] for name in trunk if name.startswith("encoder.layer.")}
    assert layers == {"0", "1", "2"}
    own = {name.split(".")[2] for name in load_file(folder / "branches/rivers/layers.safetensors")}
    assert own == {"1", "2"} and load_file(folder / "branches/pairs/layers.safetensors") == {}


def test_the_call_in_the_card_works(merged):
    card = (merged[0] / "README.md").read_text(encoding="utf-8")
    (call,) = [line.strip() for line in card.splitlines() if line.startswith("    Model().predict(")]
    assert list(eval(call, {"Model": lambda: MergedModel(merged[0])})) == ["pairs"]  # noqa: S307 - a line of our own


WARNED = "predicts a single class, or one set of labels, on validation"


def test_card_and_summary_have_scores_and_warnings_of_the_runs(merged, runs, student):
    folder, report = merged
    records = {task: read_json(run / "metrics.json") for task, run in (runs | {"taught": student}).items()}
    flagged = sorted(task for task, record in records.items() if "one_class" in record["flags"])
    assert flagged and "rivers" not in flagged, "of these runs some predict one class"
    card, summary = (folder / "README.md").read_text(encoding="utf-8"), merge_summary(folder, report).splitlines()
    said = [line.removeprefix("Warning: ") for line in card.splitlines() if WARNED in line]
    assert said == [f"{task}: {WARNED}." for task in flagged]
    assert [line for line in summary if WARNED in line] == [f"warning: {task}: {WARNED}" for task in flagged]
    for task, record in records.items():
        (row,) = [line for line in card.splitlines() if line.startswith(f"| {task} |")]
        assert f"| accuracy {record['scores']['test']['accuracy']:.4f} on test |" in row


@pytest.fixture
def read_by_one_process(monkeypatch):
    """Let the process that reads exports read what is merged too; `merged` has one of its own."""
    monkeypatch.setattr("thaw.merging.proof.FreshProcess", lambda threads: contextlib.nullcontext(reader()))


def test_a_tampered_branch_fails_the_proof(merged, runs, tmp_path, read_by_one_process):
    folder = tmp_path / "out"
    shutil.copytree(merged[0], folder, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "branches/sings/layers.safetensors"
    tensors = load_file(path)
    first = next(iter(tensors.values()))
    first.view(-1)[0] += 1e-3
    save_file(tensors, path)
    pretrained, branches = open_branches([runs["sings"]])
    report = prove(pretrained, branches, folder)
    assert not report["passed"] and not report["tasks"]["sings"]["same_bits"]["equal"]


def test_what_is_asked_wrongly_is_one_sentence(merged):
    model = MergedModel(merged[0])
    with pytest.raises(ValueError, match="no task 'songs'; there are pairs, rivers, sings, taught"):
        model.predict(["a"], ["songs"])
    with pytest.raises(ValueError, match="pairs reads lists of two strings, not 'a'"):
        model.predict(["a"], ["pairs"])
    with pytest.raises(ValueError, match="one text or more"):
        model.predict([], ["sings"])
    found = model.predict(["Anna sings", "the river"], ["sings", "rivers"])
    assert {task: len(labels) for task, labels in found.items()} == {"sings": 2, "rivers": 2}


@pytest.mark.parametrize(
    "mistake, sentence",
    [
        ("full", "its embeddings were trained, so it shares no layer"),
        ("twice", "sings is the task of two of the runs"),
        ("encoder", "has other weights than e"),
        ("layers", r"its head reads several layers \(concat\)"),
        ("there", "is there already"),
    ],
)
def test_runs_that_do_not_fit_are_refused(merged, runs, rooms, tmp_path, mistake, sentence):
    target, asked = tmp_path / "out", [runs["sings"]]
    if mistake == "full":
        asked = [rooms().run("sings", "classification", {"train": ["all"], "epochs": 1}, "full")]
    elif mistake == "twice":
        asked = [runs["sings"], runs["sings"]]
    elif mistake == "encoder":
        card = runs["pairs"].parents[7] / "encoders/e"
        other = tmp_path / "pair_results"
        shutil.copytree(runs["pairs"].parents[7], other, symlinks=True)
        (other / "encoders/e").unlink()
        shutil.copytree(card.resolve(), other / "encoders/e")
        write_json(other / "encoders/e/card.json", read_json(card / "card.json") | {"sha256": "0"})
        asked = [runs["sings"], other / runs["pairs"].relative_to(runs["pairs"].parents[7])]
    elif mistake == "layers":
        phase = FROZEN | {"reads": [0, 1, 2], "boundary": 3}
        asked = [rooms().run("sings", "classification", phase, "concat", head={"layers": {"combine": "concat"}})]
    else:
        target = merged[0]
    with pytest.raises(UserError, match=sentence):
        merge(asked, target)
    assert mistake == "there" or not target.exists()


def test_nobody_is_told_to_keep_a_run_that_is_refused_then(rooms, tmp_path):
    """An export trains a run again: that its embeddings were trained is said first."""
    run = rooms().run("sings", "classification", {"train": ["all"], "epochs": 1}, "full")
    results = tmp_path / "results"
    shutil.copytree(run.parents[7], results, symlinks=True)
    (results / run.relative_to(run.parents[7]) / "encoder.safetensors").unlink()
    with pytest.raises(UserError, match="its embeddings were trained, so it shares no layer"):
        merge([results / run.relative_to(run.parents[7])], tmp_path / "out")


def test_what_is_no_trained_run_is_no_run(runs, tmp_path):
    """A baseline has metrics.json too, and no head."""
    baseline = tmp_path / "results/baselines/sings/all/majority"
    baseline.mkdir(parents=True)
    shutil.copyfile(runs["sings"] / "metrics.json", baseline / "metrics.json")
    record = read_json(baseline / "metrics.json")
    record["spec"].pop("head")
    write_json(baseline / "metrics.json", record)
    with pytest.raises(UserError, match="is no finished run: expected a folder of"):
        merge([baseline], tmp_path / "out")


def test_the_summary_counts_layers_by_what_is_read(merged):
    """Four tasks, of which one reads pairs: no text runs all of them."""
    stored, pairs, texts = [line for line in merge_summary(*merged).splitlines() if " layers (" in line]
    assert stored == "7 of 12 layers (58.3%) are stored, 0.3 MB with embeddings and heads"
    assert pairs == "3 of 3 layers (100.0%) are run for one pair, at most 64 tokens: pairs"
    assert texts == "6 of 9 layers (66.7%) are run for one text, at most 64 tokens: rivers, sings, taught"


@pytest.mark.parametrize("family", ["modernbert", "deberta_v2_conv", "mpnet", "gpt2"])
@pytest.mark.slow
def test_other_architectures_are_merged_to_the_bit(rooms, tmp_path, family):
    one = rooms(family)
    asked = [
        one.run("sings", "classification", top(1), head={"pooling": "mean"}),
        one.run("tags", "spans", top(2)),
        one.run("low", "classification", FROZEN | {"boundary": 1}, head={"layers": {"layer": 1}, "pooling": "mean"}),
    ]
    report = merge(asked, tmp_path / "out")
    assert report["passed"] and all(part["same_bits"]["equal"] for part in report["tasks"].values())


def test_a_student_is_a_branch_of_the_layers_that_it_keeps(merged, student):
    """Teacher, student, merge: the folder predicts as the student did, and has no layer that the student dropped."""
    folder, report = merged
    part = report["tasks"]["taught"]
    assert report["passed"] and part["same_bits"]["equal"] and part["layers"] == {"counted": 2, "expected": 2}
    assert part["splits"]["test"]["changed"] == 0 and part["splits"]["test"]["largest_difference"] < 1e-5
    own = {name.split(".")[2] for name in load_file(folder / "branches/taught/layers.safetensors")}
    assert own == {"1"} and read_json(folder / "branches/taught/branch.json")["frozen"] == 1
    recorded = pandas.read_parquet(student / "predictions.parquet")
    texts = pandas.read_parquet(open_run(student).corpus.folder / "test.parquet")["text"]
    answers = MergedModel(folder).predict(list(texts), ["taught"])["taught"]
    assert answers == list(recorded[recorded.split == "test"].prediction)


ALL = {"train": ["all"], "epochs": 1}


def joint_runs(one: Rooms, phase: dict, name: str) -> list[Path]:
    """Train two tasks together, of texts and of pairs; return the folders of both runs."""
    first, second = one.benches["classification"], one.benches["pair_classification"]
    first.others = {"together": second}
    spec = first.spec(phase, keep=True, multi_task={}, auxiliary=[first.auxiliary("together")])
    spec["task"] |= {"id": "joint"}
    lead, run = (
        one.folder / kind / f"results/runs/{task}/all/e/linear/{name}/base/seed1"
        for kind, task in (("classification", "joint"), ("pair_classification", "together"))
    )
    first.step("train", spec, lead)
    own = second.spec(phase, multi_task={"run": read_json(lead / "metrics.json")["digest"]}, keep=True)
    own["task"] |= {"id": "together"}
    second.step("train", own, run, "--need", "multi_task", lead / "metrics.json")
    return [lead, run]


def test_what_was_trained_together_is_one_trunk_of_all_layers_with_a_head_for_each_task(
    rooms, runs, tmp_path, read_by_one_process
):
    """Also of the embeddings; each branch is its run to the bit."""
    joint = joint_runs(rooms(), ALL, "whole")
    report = merge(joint, tmp_path / "out")
    assert report["passed"] and report["trunk"]["equal"]
    for task in ("joint", "together"):
        part = report["tasks"][task]
        assert part["same_bits"]["equal"] and part["layers"] == {"counted": 3, "expected": 3}
        assert load_file(tmp_path / f"out/branches/{task}/layers.safetensors") == {}
        assert part["splits"]["test"]["changed"] == 0 and part["splits"]["test"]["largest_difference"] < 1e-5
    trained, trunk = load_file(joint[0] / "encoder.safetensors"), load_file(tmp_path / "out/trunk.safetensors")
    assert trained.keys() == trunk.keys() and all(trunk[name].equal(value) for name, value in trained.items())
    summary, card = merge_summary(tmp_path / "out", report), (tmp_path / "out/README.md").read_text()
    assert "3 of 6 layers (50.0%) are stored, 0.1 MB" in summary and "those of one training of several tasks" in summary
    assert "The first 3 of 3 layers are those of one training of several tasks" in card
    with pytest.raises(UserError, match="its embeddings are not those that several tasks have trained together"):
        merge([*joint, runs["sings"]], tmp_path / "other")


def test_layers_that_were_trained_together_above_frozen_ones_are_shared_with_them(
    rooms, runs, tmp_path, read_by_one_process
):
    joint = joint_runs(rooms(), top(2), "upper")
    report = merge([*joint, runs["sings"]], tmp_path / "out")
    assert report["passed"]
    layers = {
        task: (about["frozen"], about["layers"]) for task, about in merged_folder.branches_of(tmp_path / "out").items()
    }
    assert layers == {"joint": (3, []), "together": (3, []), "sings": (1, [2, 3])}
