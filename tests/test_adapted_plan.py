"""Probes of adapted encoders in a plan: which runs keep their weights, which rows are read, what is refused."""

from plans import plan_of
from thaw.core.digests import digest
from thaw.core.files import write_json

CHOSEN = {
    "strategies": ["linear_probe", "full", {"top_k": [0, 2]}, "stack_then_finetune"],
    "adapted": ["full", "top_k", "stack_then_finetune"],
    "subsets": ["n100_d1"],
    "tasks": ["acceptability"],
    "probes": ["linear"],
    "outputs": ["main_table", "probe_curves"],
    "seeds": [1, 2],
}


def planned(**changes):
    """Return the plan of the demo experiment with probes of adapted encoders, and some keys replaced."""
    return plan_of(**CHOSEN | changes)


def test_a_run_that_left_more_than_is_asked_for_is_not_made_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked, first = planned(), next(key for key in planned().jobs["train"] if "/full/" in key)
    spec = asked.job("train", first).spec
    plain = {"adapted": [], "probes": [], "outputs": ["main_table"]}
    for made, left in (
        (spec, True),
        (spec | {"seed": 3}, False),
        (spec | {"keep": False}, False),
    ):
        write_json(tmp_path / "results" / first / "metrics.json", {"spec": made, "digest": digest(made)})
        less = planned(**plain)
        assert less.status.is_current("train", first) == (left or not made["keep"])
        assert not less.job("train", first).spec["keep"], "the plan follows from the configuration alone"
        assert less.status.spec("train", first)["keep"] == left, "what Snakemake compares with what it did before"
        assert planned().status.is_current("train", first) == left, "what is asked for and not there is made"


def test_pretrained_and_adapted_are_probed_on_the_same_rows():
    plan = planned()
    probed = plan.probes
    names = ["pretrained.outside", *(f"acceptability.linear.{s}" for s in ("full.base", "top_k.k02"))]
    names.append("acceptability.linear.stack_then_finetune.base")
    assert probed == [f"acceptability/n100_d1/minilm/linear/{name}" for name in names]
    specs = [plan.job("probe", key).spec for key in probed]
    assert all(spec["rows"] == "outside" and spec["read"] == list(range(7)) for spec in specs)
    adapted = plan.job("probe", probed[1])
    cards = [f"results/adapted/acceptability/n100_d1/minilm/linear/full/base/seed{n}/acceptability" for n in (1, 2)]
    assert adapted.inputs["adapted"] == [f"{card}/card.json" for card in cards] and adapted.inputs["boundaries"] == []
    for seed, run in (("1", adapted.inputs["runs"][0]), ("2", adapted.inputs["runs"][1])):
        card = plan.job("features_adapted", run.removeprefix("results/runs/").replace("metrics.json", "acceptability"))
        assert card.digest == adapted.spec["adapted"][seed]
        assert card.spec["run"] == plan.job("train", run.removeprefix("results/").removesuffix("/metrics.json")).digest


def test_what_is_made_from_a_run_that_left_more_goes_by_the_digest_on_record(tmp_path, monkeypatch):
    """An ensemble of runs that kept their encoder serves an experiment that asks for none."""
    monkeypatch.chdir(tmp_path)
    wish = {"ensembles": {"two": {"members": [{"strategy": "full"}]}}, "strategies": ["full"], "baselines": []}
    kept, plain = planned(**wish, adapted=["full"]), planned(**wish, adapted=[])
    (key,) = plain.jobs["ensemble"]
    planned_digest, noted = plain.job("ensemble", key).digest, kept.job("ensemble", key)
    for run, job in kept.jobs["train"].items():
        assert not plain.status.is_current("train", run) and plain.job("train", run).digest != job.digest
        write_json(tmp_path / "results" / run / "metrics.json", {"spec": job.spec, "digest": job.digest})
    assert all(plain.status.is_current("train", run) for run in plain.jobs["train"])
    assert plain.status.spec("ensemble", key) == noted.spec != plain.job("ensemble", key).spec
    assert noted.digest != planned_digest


def test_states_that_one_probe_compares_and_another_scores_have_the_rows_of_both(tmp_path):
    """The comparison reads no row of train, since `next` has trained on two tasks of the corpus."""
    again = "tasks: {again: {corpus: acceptability, target: label, type: classification, metrics: [accuracy]}}\n"
    (tmp_path / "tasks.yaml").write_text(again)
    kept = "  kept: {phases: [{train: [all]}], keep: true}\n"
    later = "  next: {phases: [{train: [all]}], after: {strategy: kept, task: again}}\n"
    (tmp_path / "strategies.yaml").write_text(f"strategies:\n{kept}{later}")
    wish = {"strategies": [{"adapters": [2]}, "next"], "adapted": ["adapters", "next"], "catalogues": [str(tmp_path)]}
    rows = []
    for probes in (["cka", "adapter_removal"], ["adapter_removal", "cka"]):
        plan = planned(probes=probes, outputs=["main_table"], **wish)
        rows.append({key.split("/")[4]: job.spec["rows"] for key, job in plan.jobs["features_adapted"].items()})
    assert rows == [{"adapters": "outside", "next": "none"}] * 2
