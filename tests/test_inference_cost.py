"""What one prediction costs: against torch's counter on a cut encoder, by hand, and in cost.json of both steps."""

import json

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from thaw.encoders.transformers import Encoder
from thaw.exporting.formats import cut
from thaw.schema.head import HeadConfig
from thaw.training.context import TaskContext, inference_cost
from tiny_corpus import Bench, tiny_corpus

LADDER = {"combine": "ladder", "width": 16, "heads": 2, "norm": True}
LAYERS, WIDTH = 3, 32
READS = {
    "last layer": ({"layer": None}, LAYERS),
    "layer 1": ({"layer": 1}, 1),
    "all layers": ({"combine": "concat"}, LAYERS),
    "attention over layers": ({"combine": "attention"}, LAYERS),
    "ladder": (LADDER, LAYERS),
}


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    """A bench for each type of task; of pairs with each text encoded by itself."""
    folder, made = tmp_path_factory.mktemp("inference"), {}
    for kind in ("classification", "pair_classification", "spans"):
        view = {"pairs": "separate"} if kind.startswith("pair") else {}
        made[kind] = Bench(folder / kind, "bert", tiny_corpus(folder / kind / "data", kind), kind, **view)
    return made


def head_of(context: TaskContext, layers: dict):
    entry = {"kind": "linear", "layers": layers, "pooling": "mean", "separate_pooling": "mean"}
    return context.build_head(HeadConfig.model_validate(entry)).eval()


def counted(bench: Bench, head, rows) -> float:
    """Return torch's mean count of operations over test examples, a sequence at a time, the encoder cut as exported."""
    encoder, total = Encoder.load(bench.encoder), 0
    cut(encoder, head.combination.read)
    for row in rows:
        batch, states = bench.store.batch("test", [row]), []
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
            for ids, mask in zip(batch.input_ids, batch.mask, strict=True):
                inputs = {"input_ids": ids[mask][None], "attention_mask": mask[mask][None].long()}
                outputs = encoder.model(**inputs, output_hidden_states=True)
                states.append(head.combination(dict(enumerate(outputs.hidden_states)), mask[mask][None])[0])
            head(torch.nn.utils.rnn.pad_sequence(states, batch_first=True), batch)
        total += counter.get_total_flops()
    return total / len(rows)


@pytest.mark.parametrize("reads", READS)
@pytest.mark.parametrize("kind", ["classification", "pair_classification", "spans"])
def test_a_prediction_costs_what_torch_counts_with_the_encoder_cut(benches, kind, reads):
    bench, (layers, highest) = benches[kind], READS[reads]
    context = TaskContext(bench.spec({"optimizer": "lbfgs"}), bench.inputs())
    head = head_of(context, layers)
    said = inference_cost(context, head)
    assert said["layers"] == highest
    assert said["flops"] == pytest.approx(counted(bench, head, context.rows["test"]), rel=0.05)


def test_the_mean_over_test_examples_by_hand(benches):
    """A layer of width d over T tokens has 8Td² + 4T²d + 4Tdf operations, a linear head of two classes 4d."""
    bench = benches["classification"]
    context = TaskContext(bench.spec({"optimizer": "lbfgs"}), bench.inputs())
    lengths, inner = bench.store.lengths("test").astype(float), context.shape.intermediate
    assert len(set(lengths)) > 2, "one length alone would not show a mean"
    layer = 8 * lengths * WIDTH**2 + 4 * lengths**2 * WIDTH + 4 * lengths * WIDTH * inner
    said = inference_cost(context, head_of(context, {"layer": 2}))
    assert said == {"layers": 2, "flops": pytest.approx(float(np.mean(2 * layer + 4 * WIDTH)), rel=1e-12)}
    inserted = inference_cost(context, head_of(context, {"layer": 2}), inserted=100)
    assert inserted["flops"] - said["flops"] == pytest.approx(200 * lengths.mean())


@pytest.mark.parametrize("layer", ["best", "lowest"])
def test_of_layers_that_validation_chooses_from_the_chosen_one_counts(benches, tmp_path, layer):
    bench = benches["classification"]
    phase = {"optimizer": "lbfgs", "l2": [1.0], "boundary": LAYERS, "reads": [0, 1, 2]}
    spec = bench.spec(phase, head={"layers": {"layer": layer}, "pooling": "mean"})
    spec.pop("seed")
    out = bench.step("fit_heads", spec, tmp_path / "out", "--seeds", 1)
    cost, metrics = (json.loads(next(out.rglob(f"{name}.json")).read_text()) for name in ("cost", "metrics"))
    chosen, context = metrics["chosen"]["layer"], TaskContext(spec, bench.inputs())
    assert chosen < LAYERS, "the texts are easy: with this layer an export ends below the top"
    assert cost["inference"] == inference_cost(context, head_of(context, {"layer": chosen}))
