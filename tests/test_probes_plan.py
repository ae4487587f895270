"""Probes in a plan, and in a figure: their jobs and specs, what is refused, and the curves' numbers."""

import pytest

from plans import plan_of
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.outputs.figures.probe_curves import build, points
from thaw.outputs.frame.output_data import OutputData


def planned(**changes):
    """Return the plan of the demo experiment with probes, and some keys replaced."""
    chosen = {
        "strategies": ["frozen"],
        "probes": ["linear"],
        "outputs": ["main_table", "probe_curves"],
        "tasks": ["acceptability"],
    } | changes
    return plan_of(**chosen)


def test_one_job_reads_all_layers_for_all_seeds():
    plan = planned(probes=["linear", "linear_first"])
    assert list(plan.jobs["probe"]) == [f"acceptability/all/minilm/{p}/pretrained" for p in ("linear", "linear_first")]
    job = plan.job("probe", "acceptability/all/minilm/linear/pretrained")
    assert job.spec["read"] == list(range(7)) and job.spec["seeds"] == [1, 2]
    assert job.spec["phases"] == [{"boundary": n} for n in range(7)]
    assert plan.boundaries["minilm/acceptability/joint"] == list(range(7))
    assert len(job.inputs["boundaries"]) == 7
    assert plan.status.probed("figure", "probe_curves") == [
        f"results/probes/acceptability/all/minilm/{p}/pretrained/metrics.json" for p in ("linear", "linear_first")
    ]


def test_probes_change_the_spec_of_their_figure_and_of_nothing_else():
    plain, probed = planned(probes=[], outputs=["main_table"]), planned()
    for step in ("train", "fit_heads", "features", "table", "collect"):
        assert {k: j.digest for k, j in plain.jobs[step].items()} == {k: j.digest for k, j in probed.jobs[step].items()}
    more = planned(seeds=[1, 2, 3]).job("figure", "demo/probe_curves").spec
    assert more["probed"] != probed.job("figure", "demo/probe_curves").spec["probed"]


def test_over_budget_a_layer_is_computed_from_a_stored_one():
    tokens = planned().catalogue.get("corpora", "acceptability", "test").size.tokens
    plan = planned(store={"max_gib": 2.5 * tokens * 384 * 2 / 2**30})
    phases = plan.job("probe", "acceptability/all/minilm/linear/pretrained").spec["phases"]
    assert [phase["boundary"] for phase in phases] == [None, None, None, 3, 3, 3, 6]


def test_a_probe_of_labels_is_left_out_on_scores():
    plan = planned(tasks=["acceptability", "similarity"], probes=["linear", "mutual_information"])
    assert [key.split("/")[0] for key in plan.jobs["probe"]] == ["acceptability", "similarity", "acceptability"]


def record(task, encoder, probe, main, values) -> dict:
    """Return what a probe leaves; values by layer and seed."""
    ends = [
        {"layer": layer, "seed": seed, "scores": {"validation": {main: 0.1}, "test": {main: value}}}
        for layer, seeds in enumerate(values)
        for seed, value in enumerate(seeds)
    ]
    of = {"task": task, "subset": "all", "encoder": encoder, "probe": probe}
    spec = {"of": of, "task": {"id": task}}
    return {"spec": spec, "main": main, "layers": ends, "majority": {"test": {"accuracy": 0.5}}}


def test_curves_show_means_and_the_spread_over_seeds(tmp_path):
    records = [
        record("one", "a", "linear", "accuracy", [[0.6, 0.7, 0.8], [0.9, 0.9, 0.9]]),
        record("one", "b", "linear", "accuracy", [[0.5, 0.7], [0.8, None]]),
        record("one", "a", "mutual_information", "bound", [[2.0], [3.0]]),
    ]
    paths = [tmp_path / f"{number}.json" for number in range(3)]
    for path, content in zip(paths, records, strict=True):
        write_json(path, content)
    found, majority = points(OutputData("", probes=paths).probes, "test")
    assert majority == {("one", "all", "accuracy"): 50.0}
    lines = found.set_index(["encoder", "probe", "layer"])
    assert tuple(lines.loc[("a", "linear", 0), ["mean", "low", "high", "seeds"]]) == pytest.approx((70, 60, 80, 3))
    assert tuple(lines.loc[("b", "linear", 0), ["mean", "low", "high", "seeds"]]) == pytest.approx((60, 50, 70, 2))
    assert tuple(lines.loc[("b", "linear", 1), ["mean", "seeds"]]) == pytest.approx((80, 1))
    assert lines.loc[("a", "mutual_information", 1), "mean"] == 3.0
    assert points(OutputData("", probes=paths).probes, "validation")[0]["mean"].tolist()[:2] == [10.0, 10.0]


def test_unlike_measures_share_no_axis(tmp_path):
    paths = [tmp_path / "linear.json", tmp_path / "bits.json"]
    write_json(paths[0], record("one", "a", "linear", "accuracy", [[0.6], [0.9], [0.7]]))
    write_json(paths[1], record("one", "a", "mutual_information", "bound", [[2.0], [3.0], [2.5]]))
    spec = {
        "split": "test",
        "labels": {"tasks": {"one": "First"}},
        "probes": {"linear": "Linear", "mutual_information": "Code"},
    }
    figure = build(OutputData("", probes=paths), spec)
    axes = figure.drawn.get_axes()
    assert [axis.get_ylabel() for axis in axes] == ["accuracy × 100", "Bits shared with the labels, at least"]
    assert [axis.get_title("left") for axis in axes] == ["First", "First"]
    assert list(axes[0].get_lines()[0].get_ydata()) == pytest.approx([60, 90, 70])
    assert axes[0].get_lines()[1].get_ydata()[0] == 50 and len(axes[1].get_lines()) == 1
    assert [text.get_text() for text in figure.drawn.legends[0].get_texts()] == ["Linear", "Code", "Majority class"]
    assert [row["mean"] for row in figure.records] == pytest.approx([60, 90, 70, 2, 3, 2.5])
    with pytest.raises(UserError, match="no probe of this experiment has a result yet; run the workflow first"):
        build(OutputData(""), spec)
