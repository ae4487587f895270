"""Averaged weights: ends that are the runs themselves, the mean by hand, the choice, the step, and the plan."""

import json

import numpy as np
import pandas
import pytest
import torch
from safetensors.numpy import load_file

from plans import plan_of
from test_early_exit import noisy
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.encoders.transformers import Encoder
from thaw.training.averages import SHARES, Averaged
from tiny_corpus import Bench, run_in_process, tiny_corpus

FULL = {"train": ["all"], "rate": 1e-2}


class Runs:
    """A frozen run and two tuned ones that start from it, with a transfer set."""

    def __init__(self, folder):
        splits = {"train": noisy(40, 1), "validation": noisy(40, 2), "test": noisy(30, 3)}
        self.bench = Bench(folder, "bert", tiny_corpus(folder / "data", "classification", **splits), "classification")
        self.bench.others["other"] = small_berts_of(folder / "other")
        spec = self.bench.spec({"epochs": 1}, also=[self.bench.also("other")])
        self.files = {"frozen": self.bench.step("train", spec, folder / "frozen") / "metrics.json"}
        after = {"run": read_json(self.files["frozen"])["digest"], "epoch": "last"}
        for seed in (1, 2):
            spec = self.bench.spec(FULL, seed=seed, after=after, keep=True, also=[self.bench.also("other")])
            need = ("--need", "start", self.files["frozen"])
            self.files[seed] = self.bench.step("train", spec, folder / f"seed{seed}", *need) / "metrics.json"

    def averaged(self, *ends) -> Averaged:
        """Return what averages runs, by end."""
        read = [[(self.files[name], read_json(self.files[name])["digest"]) for name in end] for end in ends]
        return Averaged(self.bench.inputs(spec=read_json(self.files[1])["spec"]), read)

    def tensors(self, name) -> dict[str, np.ndarray]:
        """Return all tensors of a run's model, from its files and the pretrained encoder's."""
        found = {name: t.numpy() for name, t in Encoder.load(self.bench.encoder).model.state_dict().items()}
        if name != "frozen":
            found |= load_file(self.files[name].with_name("encoder.safetensors"))
        head = load_file(self.files[name].with_name("head.safetensors"))
        return {f"encoder.model.{name}": t for name, t in found.items()} | {f"head.{n}": t for n, t in head.items()}

    def predictions(self, name, split: str) -> np.ndarray:
        frame = pandas.read_parquet(self.files[name].with_name("predictions.parquet"))
        return np.stack(frame[frame["split"] == split]["probabilities"])


def small_berts_of(folder) -> Bench:
    folder.mkdir()
    return Bench(folder, "bert", tiny_corpus(folder / "data", "classification"), "classification")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("averages"))


@pytest.mark.parametrize(("share", "name"), [(0.0, "frozen"), (1.0, 1)])
def test_the_ends_are_the_runs_themselves_to_the_bit(runs, share, name):
    model = runs.averaged(["frozen"], [1])
    model.put([1 - share, share])
    state, due = model.model.state_dict(), runs.tensors(name)
    assert state.keys() == due.keys() and all(np.array_equal(state[n].numpy(), due[n]) for n in due)
    for split in ("validation", "test"):
        assert np.array_equal(model.predict_rows(split).probabilities.astype(np.float32), runs.predictions(name, split))


def test_between_the_ends_and_over_seeds_it_is_the_mean_by_hand(runs):
    frozen, one, two = (runs.tensors(name) for name in ("frozen", 1, 2))
    model = runs.averaged(["frozen"], [1, 2])
    model.put([0.7, 0.3])
    for name, tensor in model.model.state_dict().items():
        due = 0.7 * frozen[name] + 0.15 * one[name].astype(np.float64) + 0.15 * two[name]
        assert np.allclose(tensor.numpy(), due, rtol=0, atol=1e-7), name
    soup = runs.averaged([1, 2]).model.state_dict()
    assert all(np.allclose(soup[name].numpy(), (one[name] + two[name]) / 2, rtol=0, atol=1e-7) for name in soup)
    assert any(not np.array_equal(one[name], two[name]) for name in soup)


def test_validation_chooses_and_of_equals_the_share_nearest_to_the_tuned_run(runs):
    model = runs.averaged(["frozen"], [1])
    chosen, scores = model.choose(), {}
    state = {name: tensor.clone() for name, tensor in model.model.state_dict().items()}
    for share in SHARES:
        model.put([1 - share, share])
        scores[share] = model.context.main_score(model.predict_rows("validation"), "validation")
    assert len(set(scores.values())) > 1 and chosen == max(s for s in SHARES if scores[s] == max(scores.values()))
    model.put([1 - chosen, chosen])
    assert all(torch.equal(state[name], tensor) for name, tensor in model.model.state_dict().items())


@pytest.mark.parametrize("ends", [[[0, 2]], [[0, 1], [1, 2]]])
def test_the_step_scores_all_that_a_run_is_scored_on(runs, tmp_path, ends):
    bench, names = runs.bench, [1, 2] if len(ends) == 1 else ["frozen", 1]
    files = [runs.files[name] for name in names]
    spec = {"version": 1, "ensemble": "two", "task": bench.spec()["task"], "subset": {}, "ends": ends}
    spec |= {"data": bench.upstream["data"], "members": [read_json(file)["digest"] for file in files]}
    other = bench.others["other"]
    folders = ("--data", bench.corpus.folder, "--encoder", bench.encoder / "card.json", "--features")
    folders += (bench.features / "tokens.json", "--also-data", other.corpus.folder / "card.json", "--also-tokens")
    folders += (other.features / "tokens.json", "--out", tmp_path / "two")
    run_in_process("ensemble", "--spec", json.dumps(spec), "--members", *files, *folders)
    found, model = read_json(tmp_path / "two/metrics.json"), runs.averaged(*([names[a:b] for a, b in ends]))
    assert found["scores"].keys() == read_json(files[1])["scores"].keys() - {"train"} >= {"test", "other/test"}
    chosen = {"share": model.choose()} if len(ends) > 1 else {}
    assert found["chosen"] == chosen
    for split in ("validation", "test"):
        due = model.context.main_score(model.predict_rows(split), split)
        assert found["scores"][split]["accuracy"] == due


def test_runs_of_other_shapes_are_refused(runs, tmp_path):
    spec = runs.bench.spec({"epochs": 1, "boundary": None}, head={"layers": {"combine": "concat"}})
    runs.files["wide"] = runs.bench.step("train", spec, tmp_path / "wide") / "metrics.json"
    with pytest.raises(UserError, match=r"wide: its model has other tensors than that of .*seed1"):
        runs.averaged([1], ["wide"])


def planned(by: str, members: list, **changes):
    wish = {"ensembles": {"two": {"by": by, "members": members}}, "seeds": [1, 2], "tasks": ["acceptability"]}
    return plan_of(**wish | {"strategies": ["full"]} | changes)


def test_the_plan_keeps_the_members_encoders_and_reads_what_they_read():
    plan = planned("interpolation", [{"strategy": "linear_probe", "seeds": [1]}, {"strategy": "full"}])
    job = plan.job("ensemble", "acceptability/all/two")
    assert job.spec["ends"] == [[0, 1], [1, 3]] and job.spec["by"] == "interpolation"
    tuned = [run for run in plan.runs if run.strategy == "full"]
    assert [plan.job(run.step, run.key).spec["keep"] for run in tuned] == [True, True]
    assert job.inputs["tokens"] == plan.job(tuned[0].step, tuned[0].key).inputs["tokens"]
    of_predictions = planned("mean", [{"strategy": "full"}]).job("ensemble", "acceptability/all/two")
    assert "ends" not in of_predictions.spec and "encoder" not in of_predictions.inputs
