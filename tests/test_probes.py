"""Probes on a small encoder and on made-up vectors: what a layer is known to hold, what is chosen where, bad input."""

import json

import numpy as np
import pandas
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from thaw.core import boundaries
from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.heads.convex import Scale
from thaw.probes.linear_probe import linear
from thaw.probes.reading import Reading
from thaw.training.head_candidates import best_strength
from tiny_corpus import Bench, by_type

STRENGTHS = [1e-3, 1e-1]


benches = pytest.fixture(scope="module")(by_type)


def spec_of(bench: Bench, kind="linear", read=None, stored=None, **entry) -> dict:
    """Return the spec of a probe; `stored` are the boundaries that the store may hold."""
    every = list(range(bench.layers + 1))
    found = {
        key: value for key, value in bench.spec().items() if key not in ("head", "phases", "after", "keep", "seed")
    }
    phases = [boundaries.resume_plan(stored or every, bench.layers, [n]) for n in read or every]
    probe = {"kind": kind, "l2": STRENGTHS} | entry
    of = {"task": "t", "subset": "all", "encoder": "e", "probe": kind}
    return found | {"of": of, "probe": probe, "read": read or every, "phases": phases, "seeds": [1, 2]}


def reading_of(bench: Bench, **changes) -> Reading:
    torch.set_num_threads(1)
    return Reading(spec_of(bench, **changes), bench.inputs())


@pytest.mark.parametrize("kind", ["pair_classification", "regression", "spans"])
def test_the_records_of_a_probe(benches, kind, tmp_path):
    bench, spec = benches[kind], spec_of(benches[kind])
    out = bench.step("probe", spec, tmp_path / "out")
    metrics, table = json.loads((out / "metrics.json").read_text()), pandas.read_csv(out / "layers.csv")
    assert metrics["digest"] == digest(spec) and {path.name for path in out.iterdir()} == {
        "metrics.json",
        "layers.csv",
        "cost.json",
    }
    assert len(table) == 2 * 4 * len(STRENGTHS) and table.groupby(["seed", "layer"])["chosen"].sum().eq(1).all()
    assert [(end["layer"], end["seed"]) for end in metrics["layers"]] == [(n, s) for s in (1, 2) for n in range(4)]
    main, picked = metrics["main"], table[table["chosen"]]
    assert [end["scores"]["test"][main] for end in metrics["layers"]] == pytest.approx(list(picked[f"test_{main}"]))
    assert set(metrics["majority"]) == {"validation", "test"}


@pytest.mark.parametrize("kind", ["pair_classification", "regression"])
def test_a_layer_scores_what_scikit_learn_scores_on_it(benches, kind):
    reading = reading_of(benches[kind], pooling="mean")
    fitted, _ = reading.divided(1)
    solutions, scale = reading.fit(fitted), Scale.of(fitted.layers[2].values)
    scaled = {
        name: ((split.layers[2].values.double() - scale.mean) / scale.deviation).numpy()
        for name, split in reading.splits.items()
    }
    places = np.searchsorted(reading.splits["train"].rows, fitted.rows)
    l2, gold = STRENGTHS[0], fitted.targets()
    count, targets = len(gold), reading.splits["test"].targets()
    if kind == "regression":
        model = Ridge(alpha=count * l2 / 2).fit(scaled["train"][places], gold)
        due = np.corrcoef(model.predict(scaled["test"]), targets)[0, 1]
    else:
        model = LogisticRegression(C=2 / (count * l2), tol=1e-8, max_iter=5000).fit(scaled["train"][places], gold)
        due = model.score(scaled["test"], targets)
    assert reading.main(reading.splits["test"], 2, solutions[2][0]) == pytest.approx(due, abs=2e-3)


def test_pooling_is_as_it_says_and_layers_are_those_of_the_encoder(benches):
    bench = benches["pair_classification"]
    batch = bench.store.batch("test", [3])
    states = bench.store.states(1, "test").gather([3], batch)[0]
    for pooling, due in {"mean": states.mean(0), "max": states.amax(0), "first": states[0]}.items():
        reading = reading_of(bench, pooling=pooling, read=[0, 1])
        assert reading.splits["test"].layers[1].values[3] == pytest.approx(due, abs=1e-6)


def test_a_layer_that_is_not_stored_is_computed(benches):
    bench = benches["spans"]
    stored, computed = reading_of(bench, read=[0, 1, 2]), reading_of(bench, read=[0, 1, 2], stored=[1, 3])
    for one, other in zip(stored.splits["test"].layers, computed.splits["test"].layers, strict=True):
        assert one.values == pytest.approx(other.values, abs=1e-4)


def test_the_strength_is_chosen_on_rows_that_are_neither_fitted_nor_scored(benches):
    reading = reading_of(benches["regression"])
    fitted, held = reading.divided(1)
    assert len(held.rows) == 5 and sorted([*fitted.rows, *held.rows]) == list(range(24))
    assert not np.array_equal(held.rows, reading.divided(2)[1].rows)
    table, ends = linear(reading, 1)
    for end in ends:
        found = [row for row in table if row["layer"] == end["layer"]]
        assert end["l2"] == max(found, key=lambda row: (row["choice"], row["l2"]))["l2"]
    assert best_strength([0.5, None, 0.5], [1e-3, 1.0, 1e-2]) == 2


def test_a_single_label_and_fewer_examples_than_labels_are_refused(benches, tmp_path):
    bench = benches["pair_classification"]
    with pytest.raises(UserError, match="all training rows of the subset have the label 'no'; a probe needs two"):
        bench.step("probe", spec_of(bench) | {"subset": {"rows": 1}}, tmp_path / "out")
    with pytest.raises(UserError, match="1 examples to fit for 2 labels; a probe needs at least one for each: take a"):
        bench.step("probe", spec_of(bench) | {"subset": {"rows": 2}}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
