"""Early exit: what thresholds give, executed layers counted by hooks on the encoder, the choice, and the table."""

import random

import numpy as np
import pytest
import torch

import invented
from corpora import prepared
from test_probes import reading_of, spec_of
from thaw.encoders.transformers import Encoder, StopForward
from thaw.evaluation.exits import NEVER, THRESHOLDS, lowest
from thaw.outputs.frame.output_data import OutputData
from thaw.papers.early_exit import early_exit, exits_of, fitted_probes
from thaw.papers.exit_table import build
from thaw.training.task_model import BatchLoader
from tiny_corpus import ENTRIES, Bench, rows


def noisy(count: int, seed: int) -> list[dict]:
    """Return texts of which a third has the wrong label, so that no layer is sure of all."""
    draw, found = random.Random(seed), rows("classification", count, seed)
    wrong = {"yes": "no", "no": "yes"}
    return [row | {"label": wrong[row["label"]]} if draw.random() < 0.35 else row for row in found]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exits")
    (folder / "data").mkdir()
    splits = {"train": noisy(90, 1), "validation": noisy(40, 2), "test": noisy(30, 3)}
    return Bench(folder, "bert", prepared(folder / "data", ENTRIES["classification"], **splits), "classification")


@torch.no_grad()
def executed(encoder: Encoder, reading, row: int, probes, threshold: float) -> tuple[int, int]:
    """Return how many layers the encoder runs for one text of test, stopped by hooks, and the answer."""
    layers, ran, answer = encoder.model.get_submodule(encoder.anatomy.layers), [], []

    def leave(state: torch.Tensor) -> None:
        shares = probes[len(ran)].logits(state.mean(1)).softmax(1)
        answer[:] = [int(shares.argmax())]
        if shares.max() >= threshold or len(ran) == len(probes) - 1:
            raise StopForward

    def above(module, inputs, output) -> None:
        ran.append(module)
        leave(output[0] if isinstance(output, tuple) else output)

    hooks = [layers[0].register_forward_pre_hook(lambda module, inputs: leave(inputs[0]))]
    hooks += [layer.register_forward_hook(above) for layer in layers]
    batch, _ = BatchLoader(reading.store, [], reading.device)("test", np.array([row]))
    with pytest.raises(StopForward):
        encoder(batch)
    for hook in hooks:
        hook.remove()
    return len(ran), answer[0]


@pytest.mark.parametrize("threshold", [0.0, 0.6, 0.7, 0.8, NEVER])
def test_texts_run_as_many_layers_as_hooks_count(bench, threshold):
    reading = reading_of(bench, kind="early_exit", pooling="mean")
    probes, encoder = fitted_probes(reading, 1), Encoder.load(bench.encoder)
    exits = exits_of(reading, "test", probes)
    assert abs(exits.sure - threshold).min() > 1e-4 or threshold == 0, "rounding decides no exit"
    counted = [executed(encoder, reading, row, probes, threshold) for row in reading.splits["test"].rows]
    ran, answers = exits.leave(threshold)
    assert list(zip(ran.tolist(), answers.tolist(), strict=True)) == counted
    assert len(set(ran.tolist())) > 1 or threshold in (0.0, NEVER), "texts leave at several layers"


def test_the_record_and_its_table(bench, tmp_path):
    reading = reading_of(bench, kind="early_exit", pooling="mean")
    curve, ends = early_exit(reading, 1)
    assert len(curve) == len(THRESHOLDS) * 2, "validation and test"
    held = [end["scores"]["validation"]["accuracy"] for end in ends]
    (last,) = [n for n, end in enumerate(ends) if "exits" in end]
    assert held.index(max(held)) == last > 0, "the last exit scores highest on validation"
    shown = {row["rule"]: row for row in ends[last]["exits"] if row["split"] == "test"}
    for rule, layer in (("0", 0), ("never", last)):
        assert shown[rule]["score"] == pytest.approx(100 * ends[layer]["scores"]["test"]["accuracy"])
        assert shown[rule]["executed"] == layer
    chosen, layer = shown["chosen"], int(shown["one layer"]["executed"])
    assert layer == next(n for n, value in enumerate(held) if value >= max(held) - 0.01)
    assert chosen["low"] <= chosen["score"] <= chosen["high"] and chosen["executed"] <= last
    assert chosen["lost"] == pytest.approx(shown["never"]["score"] - chosen["score"])
    out = bench.step("probe", spec_of(bench, "early_exit") | {"seeds": [1]}, tmp_path / "out")
    (group,) = build(OutputData(tmp_path, probes=[out / "metrics.json"]), invented.shown("f", "exit_table")).groups
    assert [row.name.partition(":")[0] for row in group.rows] == list(shown)
    assert group.rows[0].cells[1].value == pytest.approx(shown["0"]["score"]) and group.rows[-3].cells[2] is None


def test_the_lowest_threshold_from_which_on_little_is_lost():
    curve = {0.0: 0.5, 0.1: 0.9, 0.2: 0.85, 0.3: 0.895, NEVER: 0.9}
    assert [lowest(curve, 0.9, within) for within in (0, 1, 5, 40)] == [NEVER, 0.3, 0.1, 0.0]
    assert lowest(curve | {0.3: None}, 0.9, 5) == NEVER and lowest(curve, None, 40) == NEVER
