"""Centre of gravity, expected layer and divergence, against what Tenney et al. 2019 printed and against scipy."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import entropy

from thaw.outputs.frame.probe_frame import ProbeRecord
from thaw.papers import layer_mix
from thaw.papers.layer_mix import deltas, divergence, expected_layer

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
