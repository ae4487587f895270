"""The figure of mixes: numbers of Tenney et al. 2019 and of scipy, what is drawn, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import entropy

from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.probe_frame import ProbeRecord
from thaw.papers import layer_mix
from thaw.papers.layer_mix import deltas, divergence, expected_layer

LABELS = {"tasks": {"pos": "Parts of speech"}, "encoders": {"e": "Encoder"}, "strategies": {"full": "Full"}}
MIXES = {
    1: [[0.5, 0.5, 0.7], [0.2, 0.3, 0.5]],
    2: [[0.5, 0.8, 0.7], [0.6, 0.4, 0.0]],
    3: [[0.4, 0.5, 0.4], [0, 0, 1.0]],
}


def record(task: str, alone: dict[int, list[float]], mixes=None, main="edge_f1", run=None, more=()) -> dict:
    """A probe's record: by seed the scores of each layer alone, and those of its mixes with the weights of the last."""
    ends = []
    for seed, values in alone.items():
        for layer, score in enumerate(values):
            ends.append({"layer": layer, "seed": seed, "scores": {"test": {main: score} | dict.fromkeys(more, 0.5)}})
            if mixes:
                ends[-1]["mix"] = {
                    "scores": {"test": {main: mixes[seed][0][layer]}},
                    "weights": mixes[seed][1][: layer + 1],
                }
    of = {"task": task, "subset": "all", "encoder": "e", "probe": "edge"} | ({"run": run} if run else {})
    spec = {"of": of, "task": {"id": task}, "seeds": list(alone), "probe": {"kind": "edge"}}
    return {"spec": spec, "main": main, "layers": ends, "majority": {}}


def written(folder, records: list[dict]) -> list:
    paths = [folder / f"{number}.json" for number in range(len(records))]
    for path, content in zip(paths, records, strict=True):
        write_json(path, content)
    return paths


def test_quantities_are_those_of_each_seed_and_their_spread(tmp_path):
    records = [record("pos", {1: [0.5] * 3, 2: [0.5] * 3, 3: [0.4] * 3}, MIXES)]
    found = layer_mix.quantities(OutputData("", probes=written(tmp_path, records)).probes, "test").set_index(
        ["quantity", "layer"]
    )
    assert found.loc[("weight", 1), "mean"] == pytest.approx((0.3 + 0.4) / 3)
    assert found.loc[("delta", 2), "mean"] == pytest.approx((20 - 10 - 10) / 3)
    centres = [0.3 + 1.0, 0.4, 2.0]
    centre, expected = found.loc[("centre_of_gravity", "")], found.loc[("expected_layer", "")]
    assert centre["mean"] == pytest.approx(sum(centres) / 3) and centre["seeds"] == 3
    assert centre["high"] - centre["mean"] == pytest.approx(0.8021, abs=1e-3)  # the deviation of three, by hand
    assert expected["mean"] == pytest.approx((2 + (0.3 - 0.2) / 0.2) / 2)
    assert expected["seeds"] == 2  # that of the third adds up to nothing
    assert (expected["low"], expected["high"]) == pytest.approx((0.5, 2.0))


def test_a_figure_of_mixes(tmp_path):
    records = [record("pos", {1: [0.5] * 3}, MIXES)]
    spec = {"split": "test", "labels": LABELS, "probes": {"edge": "Edge"}}
    made = layer_mix.build(OutputData("", probes=written(tmp_path, records)), spec)
    axes = made.drawn.get_axes()
    assert [axis.get_title("left").split("\n")[1].split(";")[0] for axis in axes] == [
        "centre of gravity 1.30",
        "expected layer 2.00",
    ]
    assert [bar.get_height() for bar in axes[0].patches[:3]] == pytest.approx([0.2, 0.3, 0.5])
    assert axes[0].get_lines()[-2].get_xdata()[0] == pytest.approx(1.3)
    assert [row["mean"] for row in made.records if row["quantity"] == "expected_layer"] == [2.0]
    for broken in (records[0]["layers"][1:], records[0]["layers"][:1]):
        paths = written(tmp_path, [records[0] | {"layers": broken}])
        with pytest.raises(UserError, match="a figure of mixes needs every layer; leave layers: out"):
            layer_mix.build(OutputData("", probes=paths), spec)
    with pytest.raises(UserError, match="no probe of this experiment has a result yet"):
        layer_mix.build(OutputData(""), spec)


TABLES = yaml.safe_load((Path(__file__).parents[1] / "config/reference/tenney2019.yaml").read_text())["tables"]
PRINTED = {name: row["values"] for name, row in TABLES["figures_1_and_2"]["rows"].items()}


def test_divergence_is_that_of_scipy():
    shares = np.random.default_rng(0).dirichlet(np.ones(7))
    assert divergence(shares) == pytest.approx(entropy(shares, np.full(7, 1 / 7), base=2))
    assert divergence([1, 0, 0, 0]) == 2.0 and divergence([3, 3]) == 0.0
    assert divergence([0.5, -0.2, 0.5]) == pytest.approx(entropy([0.5, 0, 0.5], [1 / 3] * 3, base=2))
    assert divergence([0.0, -1.0]) is None


def test_what_becomes_of_a_layer_that_takes_away():
    scores = [0.5, 0.7, 0.6, 0.9]
    assert deltas(scores) == pytest.approx([0.2, -0.1, 0.3])
    assert expected_layer(scores) == pytest.approx((0.2 - 2 * 0.1 + 3 * 0.3) / 0.4)
    assert expected_layer([0.5, 0.4]) is None and expected_layer([0.5, 0.5, 0.5]) is None


@pytest.mark.parametrize("task", PRINTED)
def test_the_figure_gives_the_papers_numbers(task):
    """The same through what the figure calls, from a record as a probe writes it."""
    _, _, expected, centre, k_delta, k_s = PRINTED[task]
    scores = TABLES["scores_bert_large"]["rows"][task]["values"]
    weights = TABLES["weights_bert_large"]["rows"][task]["values"]
    mixes = [{"scores": {"test": {"f1": score / 100}}, "weights": weights} for score in scores]
    layers = [{"layer": layer, "seed": 1, "mix": mix} for layer, mix in enumerate(mixes)]
    of = {"task": task, "subset": "all", "encoder": "bert", "probe": "edge"}
    spec = {"of": of, "task": {"id": task, "test": ["test"], "validation": "validation"}, "seeds": [1]}
    frame = layer_mix.quantities([ProbeRecord(Path("x"), {"spec": spec, "main": "f1", "layers": layers})], "test")
    found = frame[frame["layer"] == ""].set_index("quantity")["mean"]
    due = {"centre_of_gravity": centre, "expected_layer": expected, "k_delta": k_delta, "k_s": k_s}
    assert {name: found[name] for name in due} == pytest.approx(due, abs=0.0061)
    # by hand, without our module: the mean layer under the weights
    assert found["centre_of_gravity"] == pytest.approx(sum(n * weight for n, weight in enumerate(weights)))
