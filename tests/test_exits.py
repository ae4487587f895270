"""Early exits of an export: texts leave where the run's states say, and no layer above is computed for them."""

from collections import Counter

import pytest

from corpora import prepared
from read_again import read_again
from test_early_exit import noisy
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.exporting.export import export, export_summary
from thaw.exporting.standalone_model import Model
from tiny_corpus import ENTRIES, Bench

BEST = {"train": ["head"], "optimizer": "lbfgs", "l2": [1e-2, 1e-1], "boundary": 3, "reads": [0, 1, 2]}
TEXTS = [row["text"] for row in noisy(40, 3)]


def run_of(folder, family: str, draw: int, layer="best") -> tuple[Bench, object]:
    """Return a bench of a family with a finished run of a head on the layer that validation chose."""
    (folder / "data").mkdir()
    splits = {"train": noisy(90, draw), "validation": noisy(40, draw + 1), "test": noisy(30, draw + 2)}
    data = prepared(folder / "data", ENTRIES["classification"], **splits)
    bench = Bench(folder, family, data, "classification")
    head = {"kind": "linear", "layers": {"layer": layer}, "pooling": "mean"}
    phase = BEST if layer == "best" else BEST | {"reads": []}
    spec = bench.spec(phase, head=head)
    results = bench.linked(folder / "results")
    run = results / "runs/t/all/e/linear/best/base"
    bench.step("fit_heads", {key: spec[key] for key in spec.keys() - {"seed"}}, run, "--seeds", 1)
    return bench, run / "seed1"


def with_threshold(folder, threshold: float) -> Model:
    said = read_json(folder / "thaw.json")
    write_json(folder / "thaw.json", said | {"exits": said["exits"] | {"threshold": threshold}})
    return Model(folder)


@pytest.mark.parametrize(
    ("family", "draw"),
    [
        ("bert", 5),
        *(pytest.param(name, 2, marks=pytest.mark.slow) for name in ("modernbert", "gpt2")),
        pytest.param("modernbert_decoder", 5, marks=pytest.mark.slow),  # its rotations are a tuple, a row for each text
    ],
)
def test_texts_leave_at_layers_and_run_none_above(tmp_path, monkeypatch, family, draw):
    monkeypatch.setattr("thaw.exporting.export.check", read_again)
    _, run = run_of(tmp_path, family, draw)
    last = read_json(run / "metrics.json")["chosen"]["layer"]
    report = export(run, tmp_path / "out", exits=30.0)["exits"]
    assert report["layers"] == last and report["splits"]["test"]["agreeing"] >= 0.95
    read = (tmp_path / "out/README.md").read_text()
    assert f"test: {report['splits']['test']['executed']:.2f} of {last} layers" in read.split("## Early exits")[1]
    whole = list(with_threshold(tmp_path / "out", 1.01).predict_with_probabilities(TEXTS))
    assert {one["layers"] for one in whole} == {last}
    said = read_json(tmp_path / "out/thaw.json")
    write_json(tmp_path / "out/thaw.json", {key: said[key] for key in said.keys() - {"exits"}})
    plain = Model(tmp_path / "out")
    write_json(tmp_path / "out/thaw.json", said)
    for one, other in zip(whole, plain.predict_with_probabilities(TEXTS), strict=True):
        assert one["prediction"] == other["prediction"]
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)

    model, ran = with_threshold(tmp_path / "out", 0.6), Counter()
    layers = model.model.get_submodule(read_json(tmp_path / "out/thaw.json")["exits"]["modules"])
    for number, layer in enumerate(layers):
        layer.register_forward_hook(
            lambda layer, given, output, n=number: ran.update(
                {n: len(output[0] if isinstance(output, tuple) else output)}
            )
        )
    left = [one["layers"] for one in model.predict_with_probabilities(TEXTS)]
    assert len(set(left)) > 1, "texts leave at several layers"
    assert ran == Counter({n: sum(at > n for at in left) for n in range(last)}), "no layer sees a text that has left"

    first = list(with_threshold(tmp_path / "out", 0.0).predict_with_probabilities(TEXTS))
    assert {one["layers"] for one in first} == {0}
    alone = [one for text in TEXTS[:5] for one in model.predict_with_probabilities([text])]
    assert [one["layers"] for one in alone] == left[:5], "a text leaves where it does in a batch"


def test_an_architecture_that_keeps_all_texts_is_refused(tmp_path):
    _, run = run_of(tmp_path, "openai_gpt", 5)
    with pytest.raises(
        UserError, match="--exits: openai-gpt computes all texts of a batch to the last layer; export w"
    ):
        export(run, tmp_path / "out", exits=30.0)
    assert not (tmp_path / "out").exists()


def test_what_has_no_exits_is_told(tmp_path):
    bench, run = run_of(tmp_path, "bert", 1, layer=3)
    tuned = bench.step("train", bench.spec({"train": ["head", {"top": 1}], "epochs": 1}), run.parent / "tuned")
    for which in (run, tuned):  # of which the second did not keep what it trained
        with pytest.raises(
            UserError,
            match="early exits need a head on each layer; add the strategy frozen_best_layer, export its run",
        ):
            export(which, tmp_path / "out", exits=1.0)
    with pytest.raises(UserError, match="--exits -1: expected the points that leaving early may lose, 0 or more"):
        export(run, tmp_path / "out", exits=-1.0)
    assert not (tmp_path / "out").exists()


def test_a_threshold_that_loses_too_much_leaves_every_text_to_the_last_layer():
    report = {"threshold": 1.01, "within": 1.0, "layers": 3, "splits": {}}
    said = export_summary({"refit": None, "splits": {}, "exits": report})
    assert said == "early exits: none, since every threshold loses more than 1 points on validation"
