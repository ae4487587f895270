"""LoRA, IA3 and adapters: sizes, a start that changes nothing, the cache below them, what is kept, and the export."""

import itertools

import pytest
import torch
from safetensors.torch import load_file
from torch.utils.flop_counter import FlopCounterMode

from thaw.adaptation.peft_modules import Inserts, insert, merge, read_insert_metadata
from thaw.compute_cost.flops import Shape, training_flops
from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.encoders.transformers import Encoder
from thaw.exporting.export import export
from thaw.features.batch import Batch
from thaw.schema.phases import InsertConfig
from tiny import FAMILIES
from tiny_corpus import small_bert
from trained import check_training

WIDTH, INNER, RANK, SIZE = 32, 48, 8, 4
KINDS = {
    "lora": {"kind": "lora", "rank": RANK},
    "ia3": {"kind": "ia3"},
    "adapters": {"kind": "adapters", "size": SIZE},
}
PARAMETERS = {
    "lora": 2 * RANK * (WIDTH + WIDTH),
    "ia3": 2 * WIDTH + INNER,
    "adapters": 2 * (2 * SIZE * WIDTH + WIDTH + SIZE),  # 2md + d + m each (Houlsby et al. 2019, section 2.1)
}
LLAMA = {"lora": RANK * (2 * WIDTH + WIDTH + WIDTH // 2), "ia3": WIDTH + INNER}  # keys and values of half the width
FUSED = ("modernbert", "gpt2", "openai_gpt")
ONE_MATRIX = {"lora": RANK * (WIDTH + 3 * WIDTH)}  # of queries, keys and values


bench = pytest.fixture(scope="module")(small_bert)


def batch() -> Batch:
    ids = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 5]])
    return Batch(ids, torch.ones(2, 4, dtype=torch.bool), None, None, torch.arange(2))


def phase(kind: str, **changes) -> dict:
    return {"train": ["head"], "insert": KINDS[kind] | {"top": 2}} | changes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_insert_has_its_size_changes_nothing_and_trains_alone(folders, family, kind):
    """At the start LoRA and IA3 give the pretrained numbers to the bit; an adapter nearly does."""
    encoder, entry = Encoder.load(folders[family]), InsertConfig(**KINDS[kind])
    if family in FUSED and kind == "ia3":
        name = family.replace("_", "-")
        with pytest.raises(UserError, match=f"insert: {kind}: {name} has no separate matrices for it"):
            insert(encoder, entry, [2, 3])
        return
    states, names = encoder.boundaries(batch()), {n for named in encoder.components().values() for n, _ in named}
    Inserts(entry, (2, 3), seed=1).into(encoder)
    now = {name for named in encoder.components().values() for name, _ in named}
    assert names < now and now - names == {name for name, _ in encoder.inserted()}
    with torch.no_grad():
        apart = (encoder.resume_at(1)(batch(), states[1]) - states[-1]).abs().max().item()
    assert apart == 0 if kind != "adapters" else 0 < apart < 1e-4
    encoder.thaw([f"layer.{n}:{kind}" for n in (2, 3)])
    own = {"llama": LLAMA, **dict.fromkeys(FUSED, ONE_MATRIX)}.get(family, PARAMETERS)
    due = 2 * own.get(kind, PARAMETERS[kind])
    assert sum(p.numel() for p in encoder.parameters() if p.requires_grad) == due


def test_adapters_after_the_dropout_read_what_it_lets_through(folders):
    """In training d + up(gelu(down(d))) of what dropout lets through, d; with dropout off as on the matrix."""
    encoders = {}
    for place in ("matrix", "dropout"):
        encoders[place] = Encoder.load(folders["bert"])
        Inserts(InsertConfig(kind="adapters", size=4, std=0.5, place=place), (2, 3), seed=1).into(encoders[place])
        assert sum(p.numel() for _, p in encoders[place].inserted()) > 0
    assert torch.allclose(encoders["matrix"](batch()), encoders["dropout"](batch()), atol=1e-6)
    output = encoders["dropout"].model.get_submodule("encoder.layer.2.output").train()
    output.dropout.base_layer.p = 0.5
    states = torch.randn(2, 4, output.dense.in_features)
    torch.manual_seed(1)
    through = output.dropout.base_layer(output.dense(states))
    down, up = output.dropout.adapter["down"], output.dropout.adapter["up"]
    due = through + up(torch.nn.functional.gelu(down(through)))
    torch.manual_seed(1)
    assert (through == 0).any()
    assert torch.allclose(output.dropout(output.dense(states)), due)


def test_adapters_after_a_dropout_that_is_not_there_are_refused(folders):
    encoder = Encoder.load(folders["distilbert"])
    with pytest.raises(UserError, match="distilbert has no dropout of its own after transformer.layer.1"):
        insert(encoder, InsertConfig(kind="adapters", place="dropout"), [2])


@pytest.mark.parametrize(
    ("family", "kind"),
    [*itertools.product(("bert", "distilbert", "llama"), ("lora", "ia3")), *((f, "lora") for f in FUSED)],
)
def test_merged_into_the_weights_it_computes_the_same(folders, family, kind):
    encoder = Encoder.load(folders[family])
    names, before = list(encoder.model.state_dict()), encoder(batch())
    Inserts(InsertConfig(**KINDS[kind]), (1, 3), seed=1).into(encoder)
    with torch.no_grad():
        for _, parameter in encoder.inserted():
            parameter.add_(torch.randn_like(parameter) / 10)
        due = encoder(batch())
        merge(encoder.model)
        assert torch.allclose(encoder(batch()), due, atol=1e-5) and not torch.allclose(due, before, atol=1e-2)
    assert list(encoder.model.state_dict()) == names


VARIANTS = {"dora": 2 * WIDTH, "rslora": 0}  # parameters of a layer beside LoRA's


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_of_lora_begins_at_the_pretrained_numbers_and_merges(folders, variant):
    """Its tensors, put into a second encoder, give the same numbers as merged into the first."""
    encoders = [Encoder.load(folders["bert"]) for _ in range(2)]
    before, inserts = encoders[0](batch()), Inserts(InsertConfig(**KINDS["lora"], variant=variant), (1, 3), seed=1)
    for encoder in encoders:
        inserts.into(encoder)
    assert torch.allclose(encoders[0](batch()), before, atol=1e-5)
    own = dict(encoders[0].inserted())
    assert sum(parameter.numel() for parameter in own.values()) == 2 * (PARAMETERS["lora"] + VARIANTS[variant])
    with torch.no_grad():
        for parameter in own.values():
            parameter.add_(torch.randn_like(parameter) / 10)
        for name, parameter in encoders[1].inserted():
            parameter.copy_(own[name])
        due = encoders[1](batch())
        merge(encoders[0].model)
        assert torch.allclose(encoders[0](batch()), due, atol=1e-5) and not torch.allclose(due, before, atol=1e-2)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_of_lora_keeps_the_contract_of_every_training(bench, variant):
    entry = KINDS["lora"] | {"top": 2, "variant": variant}
    check_training(bench, bench.spec({"train": ["head"], "insert": entry, "rate": 1e-3}))


def test_lora_by_hand_is_a_published_model_with_other_matrices(folders):
    """W + alpha / r B A in the place of W (Hu et al. 2021, equation 3), in transformers' own model."""
    from transformers import AutoModel

    encoder, entry = Encoder.load(folders["bert"]), InsertConfig(kind="lora", rank=RANK, alpha=12)
    Inserts(entry, (2, 3), seed=1).into(encoder)
    with torch.no_grad():
        for _, parameter in encoder.inserted():
            parameter.normal_(std=0.3)
        added, plain = dict(encoder.inserted()), AutoModel.from_pretrained(folders["bert"]).eval()
        for layer in (1, 2):
            for role in ("query", "value"):
                place = f"encoder.layer.{layer}.attention.self.{role}"
                down, up = (next(v for n, v in added.items() if f"{place}.lora_{part}." in n) for part in "AB")
                plain.get_submodule(place).weight += 12 / RANK * (up @ down)
        given = batch()
        due = plain(input_ids=given.input_ids, attention_mask=given.mask.long()).last_hidden_state
        assert len(added) == 8 and torch.allclose(encoder(given), due, atol=1e-5)


def test_bitfit_trains_the_biases_that_torch_names_and_nothing_else(bench):
    from transformers import AutoModel

    _, trained = bench.train(bench.spec({"train": ["head", {"only": "bias"}], "rate": 5e-3}, keep=True))
    plain = AutoModel.from_pretrained(bench.encoder).state_dict()
    biases = {name for name in plain if name.endswith(".bias") and "pooler" not in name}
    assert set(trained.encoder) == biases
    assert all((value != plain[name]).any() for name, value in trained.encoder.items() if "key" not in name)


def test_lora_goes_where_its_targets_say(folders):
    """Where queries, keys and values are one matrix all of it may have one; the gated way in is twice as wide."""
    attention, inner = RANK * (4 * WIDTH + 2 * WIDTH), RANK * (WIDTH + 2 * INNER + INNER + WIDTH)
    for targets, size in (("attention", attention), ("feed_forward", inner), ("all", attention + inner)):
        encoder = Encoder.load(folders["modernbert"])
        insert(encoder, InsertConfig(kind="lora", rank=RANK, targets=targets), [3])
        assert sum(parameter.numel() for _, parameter in encoder.inserted()) == size


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_trained_and_from_where_is_the_same_with_and_without_the_store(bench, kind):
    spec = bench.spec(phase(kind, rate=1e-3))
    assert spec["phases"][0]["boundary"] == 1
    _, stored = bench.train(spec)
    _, computed = bench.train(bench.spec(phase(kind, rate=1e-3, boundary=None)))
    assert [note["loss"] for note in stored.history] == pytest.approx(
        [note["loss"] for note in computed.history], abs=1e-5
    )
    for name, value in stored.encoder.items():
        assert torch.allclose(value, computed.encoder[name], atol=1e-4), name
    norms = 2 * 4 * WIDTH if kind == "adapters" else 0
    assert stored.cost["parameters"]["trained"] == 2 * PARAMETERS[kind] + norms + 2 * WIDTH + 2
    total = read_json(bench.encoder / "card.json")["parameters"]
    assert stored.cost["parameters"]["total"] == total + 2 * PARAMETERS[kind] + 2 * WIDTH + 2
    assert stored.cost["flops"] < computed.cost["flops"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_run_goes_on_with_what_was_kept(bench, tmp_path, kind):
    """It has the inserts though its own phase names none, and gives the same scores where nothing moves any more."""
    earlier = bench.spec(phase(kind), keep=True)
    first = bench.step("train", earlier, tmp_path / "first")
    kept = first / "encoder.safetensors"
    assert read_insert_metadata(kept) == Inserts(InsertConfig(**KINDS[kind]), (2, 3), seed=1)
    assert all(kind[:4] in name or "Norm" in name for name in load_file(kept))
    still = {"train": ["all"], "rate": 1e-30, "head_rate": 1e-30, "weight_decay": 0.0, "epochs": 1}
    after = {"run": digest(earlier), "epoch": "last"}
    later = bench.step(
        "train",
        bench.spec(still, after=after, keep=True),
        tmp_path / "later",
        "--need",
        "start",
        first / "metrics.json",
    )
    assert read_json(later / "metrics.json")["scores"] == read_json(first / "metrics.json")["scores"]
    assert read_insert_metadata(later / "encoder.safetensors") == read_insert_metadata(kept)


def test_a_part_of_a_layer_keeps_the_contract_of_every_training(bench):
    for train in ({"top": 2, "only": "query_value"}, {"top": 1, "only": {"heads": [0, 3]}}, {"only": "norm"}):
        check_training(bench, bench.spec({"train": ["head", train], "rate": 5e-3}))


def test_an_export_of_adapters_is_refused(bench, tmp_path):
    results = bench.linked(tmp_path / "results")
    run = results / "runs/t/all/e/linear/adapters/base/seed1"
    bench.step("train", bench.spec(phase("adapters", rate=1e-2), keep=True), run)
    with pytest.raises(UserError, match="adapters can not be merged into the weights"):
        export(run, tmp_path / "adapters")
    assert not (tmp_path / "adapters").exists()


def counted(folder, chosen: list[str], inserts: Inserts | None = None) -> tuple[float, float]:
    """Return our count of a training step and torch's, with attention computed in the open."""
    encoder = Encoder.load(folder)
    encoder.model.set_attn_implementation("eager")
    if inserts:
        inserts.into(encoder)
    encoder.thaw(chosen)
    ids = torch.ones(8, 24, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        encoder(Batch(ids, ids.bool(), None, None, torch.arange(8))).sum().backward()
    shape = Shape.of(encoder.model.config.to_dict())
    inserted = sum(parameter.numel() for _, parameter in encoder.inserted() if parameter.ndim > 1)
    return training_flops(shape, [24] * 8, None, chosen, inserted), counter.get_total_flops()


def test_costs_of_parts_and_inserts_against_torchs_counter(folders):
    parts = ["layer.1:attention", "layer.2:bias", "layer.3:feed_forward"]
    for chosen in (parts, ["layer.1:query_value", "layer.3:norm"], ["layer.2:bias"]):
        ours, torchs = counted(folders["bert"], chosen)
        assert ours == pytest.approx(torchs, rel=0.03), chosen
    for kind in ("lora", "adapters"):
        chosen = [f"layer.{n}:{kind}" for n in (1, 2, 3)]
        ours, torchs = counted(folders["bert"], chosen, Inserts(InsertConfig(**KINDS[kind]), (1, 2, 3), seed=1))
        assert torchs <= ours < 1.15 * torchs, kind
