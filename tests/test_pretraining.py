"""Further pretraining: masks, the step and the encoder that it leaves, and the plan that shares it."""

import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

from plans import plan_with
from thaw.core.digests import canonical, file_sha256
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.encoders.loading import load_pooler
from thaw.encoders.masked_model import MaskedModel
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.outputs.frame import collection
from thaw.outputs.report import methods
from thaw.planning.cost_estimate import operations
from thaw.planning.job_request import request
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.training.masking import MaskingVocabulary, masked
from thaw.training.objectives import MaskedAndTaught, MaskedLanguageModel
from tiny import tiny_encoder
from tiny_corpus import Bench, run_in_process, small_bert

SETTINGS = {"phase": {"rate": 3e-3, "batch_size": 4, "epochs": 6}}


def pretrained(bench: Bench, out, encoder=None, settings=SETTINGS):
    """Run the step on a bench's tokens, from its encoder or another one, and return the folder it wrote."""
    encoder = encoder or bench.encoder
    spec = {"version": 1, "settings": settings, "compute": {"threads": 1}, "features": bench.upstream["features"]}
    spec["encoder"] = read_json(encoder / "card.json")["digest"]
    folders = ("--encoder", encoder, "--features", bench.features, "--out", out)
    run_in_process("pretrain", "--spec", canonical(spec), *folders)
    return out


bench = pytest.fixture(scope="module")(small_bert)


@pytest.fixture(scope="module")
def further(bench, tmp_path_factory):
    """The folder of that encoder after further pretraining."""
    return pretrained(bench, tmp_path_factory.mktemp("further") / "bert.text.mine")


def test_a_share_of_each_text_is_chosen_and_no_special_token():
    texts = torch.zeros(50, 42, dtype=torch.int8)
    texts[:, 1:41] = 1
    texts[0, 2:] = 0  # a text of one token
    ids = torch.arange(50 * 42).view(50, 42) % 900 + 50
    batch = Batch(ids, texts >= 0, None, None, torch.arange(50), texts)
    found = masked(batch, 0.25, MaskingVocabulary(mask=4, count=1000), torch.Generator().manual_seed(1))
    assert found.chosen.sum(1).tolist() == [1] + [10] * 49 and not found.chosen[texts == 0].any()
    assert torch.equal(found.input_ids[~found.chosen], ids[~found.chosen])
    assert torch.equal(found.tokens, ids[found.chosen])
    seen = found.input_ids[found.chosen]
    assert abs((seen == 4).float().mean() - 0.8) < 0.06 and abs((seen == found.tokens).float().mean() - 0.1) < 0.05
    again = masked(batch, 0.25, MaskingVocabulary(4, 1000), torch.Generator().manual_seed(1))
    assert torch.equal(again.input_ids, found.input_ids)


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra", "modernbert", "deberta_v2"])
def test_chosen_tokens_are_predicted_as_by_the_whole_model(family, tmp_path):
    model = MaskedModel(tiny_encoder(family, tmp_path / "e", layers=1), seed=1).eval()
    ids = torch.randint(5, 60, (3, 7), generator=torch.Generator().manual_seed(1))
    batch = SimpleNamespace(input_ids=ids, mask=ids > 0, type_ids=None, chosen=ids % 3 == 0)
    batch.places = batch.chosen.flatten().nonzero().squeeze(1)
    with torch.no_grad():
        whole = model.whole(**model.encoder.inputs(batch)).logits[batch.chosen]
        assert torch.allclose(model(batch), whole, atol=1e-5)
    assert not model.came and model.head.flops(batch) >= 2 * int(batch.chosen.sum()) * whole.shape[-1] * 16


def test_the_held_out_loss_falls_and_the_same_spec_gives_the_same_bytes(bench, further, tmp_path):
    said = read_json(further / "card.json")["further"]
    first, *_, last = said["held_out"]["loss"]
    assert last < first - 0.3 and len(said["held_out"]["loss"]) == 7
    assert (said["rows"], said["held_out"]["rows"], said["corpus"], said["predictor"]) == (23, 1, "mine", "new")
    again = pretrained(bench, tmp_path / further.name)
    for name in ("model.safetensors", "card.json"):
        assert (again / name).read_bytes() == (further / name).read_bytes()
    cost = read_json(further / "cost.json")
    assert cost["steps"] == 6 * 6 and cost["flops"] > 0 and cost["seconds"]["train"] > 0


def test_it_is_an_encoder_like_any_other(bench, further):
    before, card = read_json(bench.encoder / "card.json"), read_json(further / "card.json")
    for key in ("tokenizer_sha256", "layers", "width", "parameters", "architecture", "max_length", "source"):
        assert card[key] == before[key]
    assert card["digest"] != before["digest"] and card["sha256"] == file_sha256(further / "model.safetensors")
    assert card["pretraining"] == [*before["pretraining"], "training text of mine"]
    assert {path.name for path in further.iterdir()} - {"cost.json"} == {path.name for path in bench.encoder.iterdir()}
    moved = zip(Encoder.load(bench.encoder).parameters(), Encoder.load(further).parameters(), strict=True)
    assert all(not torch.equal(old, new) for old, new in moved), "the whole encoder trains"
    for name, tensor in load_pooler(bench.encoder).items():
        assert torch.equal(load_pooler(further)[name], tensor)


def test_what_predicts_tokens_goes_on_where_it_came_with_the_weights(bench, further, tmp_path):
    once = {"phase": {"rate": 1e-6, "epochs": 1}}
    said = read_json(pretrained(bench, tmp_path / "next", further, once) / "card.json")["further"]
    assert said["predictor"] == "published"
    assert said["held_out"]["loss"][0] == read_json(further / "card.json")["further"]["held_out"]["loss"][-1]


def test_what_cannot_be_masked_is_one_sentence(bench, tmp_path):
    with pytest.raises(UserError, match="gpt2 is no masked-language model"):
        MaskedModel(tiny_encoder("gpt2", tmp_path / "gpt2", layers=1), seed=1)
    other, broken = (shutil.copytree(bench.encoder, tmp_path / name) for name in ("other", "broken"))
    settings = json.loads((other / "tokenizer_config.json").read_text())
    (other / "tokenizer_config.json").write_text(json.dumps(settings | {"mask_token": None}))
    with pytest.raises(UserError, match="no mask token"):
        pretrained(bench, tmp_path / "out", other)
    assert not (tmp_path / "out").exists()
    tensors = load_file(bench.encoder / "model.safetensors")
    tensors["embeddings.LayerNorm.bias"][0] = torch.inf
    save_file(tensors, broken / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match="became NaN or infinite"):
        pretrained(bench, tmp_path / "out", broken)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def distilled(bench, tmp_path_factory):
    """The folder of that encoder after general distillation of its first and third layer."""
    settings = SETTINGS | {"student": {"layers": [1, 3], "start": [1, 2]}, "cosine": 0.5}
    return pretrained(bench, tmp_path_factory.mktemp("distilled") / "bert.small.mine", settings=settings)


def test_a_student_is_pretrained_and_the_layers_that_it_drops_stay(bench, distilled):
    """Masked tokens are predicted better by the layers that are kept; the dropped one is as it was, to the bit."""
    before, after = (dict(Encoder.load(folder).model.named_parameters()) for folder in (bench.encoder, distilled))
    moved = {name.split(".")[2] for name in before if "layer." in name and not torch.equal(before[name], after[name])}
    assert moved == {"0", "2"} and before.keys() == after.keys()
    said = read_json(distilled / "card.json")["further"]["held_out"]["loss"]
    assert said[-1] < said[0] - 0.3
    ids = torch.randint(5, 40, (2, 6), generator=torch.Generator().manual_seed(3))
    batch = Batch(ids, ids > 0, None, None, torch.arange(2))
    student, whole = Encoder.load(distilled).shorten([1, 3]), Encoder.load(bench.encoder)
    state = student.states(batch, [3])[3]
    assert not torch.allclose(state, Encoder.load(distilled).states(batch, [3])[3], atol=1e-2)
    assert state.shape == whole.states(batch, [3])[3].shape


def test_a_student_is_pulled_to_its_teacher_and_not_where_it_is_that(bench, distilled):
    model = MaskedModel(bench.encoder, seed=1).eval()
    given = masked(batch_of(bench), 0.5, MaskingVocabulary(4, 40), torch.Generator().manual_seed(1))
    alone = MaskedLanguageModel("fp32").loss(model, None, given, {}).item()
    same, other = (
        MaskedAndTaught("fp32", Encoder.load(folder), 1.0).loss(model, None, given, {}).item()
        for folder in (bench.encoder, distilled)
    )
    assert same == pytest.approx(alone, abs=1e-5) and other > alone + 1e-3


def batch_of(bench):
    """Return the first texts of a bench, with what is a special token."""
    return bench.store.batch("train", [0, 1, 2])


def test_a_strategy_keeps_what_was_pretrained(tmp_path):
    entry = "further_pretraining:\n  small: {phase: {epochs: 1}, student: {layers: [1, 3, 5]}, cosine: 0.5}\n"
    (tmp_path / "my").mkdir()
    (tmp_path / "my/encoders.yaml").write_text(entry)
    right = "  mine: {from: small, student: {layers: [1, 3, 5]}, phases: [{train: [all]}]}\n"
    plan = plan_with(tmp_path / "my", right, strategies=["mine"], seeds=[1])
    assert list(plan.jobs["pretrain"]) == ["minilm.small.acceptability"]
    for student in ("student: {layers: 3}, ", "student: {layers: [1, 3, 5], start: [1, 2, 3]}, "):
        wrong = f"  mine: {{from: small, {student}phases: [{{train: [all]}}]}}\n"
        with pytest.raises(UserError, match=r"has trained layers 1, 3 and 5 alone; say student: {layers: \[1, 3, 5\]}"):
            plan_with(tmp_path / "my", wrong, strategies=["mine"], seeds=[1])


FROZEN = "  mlm_frozen: {base: frozen, from: task_text}\n"
FULL = "  mlm_full: {base: full, from: task_text}\n"
STACKED = (
    "  mlm_stacked: {after: mlm_start, phases: [{train: [all]}]}\n  mlm_start: {base: frozen_sgd, from: task_text}\n"
)


def test_all_strategies_seeds_and_heads_share_one(tmp_path):
    names = ["full", "mlm_frozen", "mlm_full", "mlm_stacked"]
    plan = plan_with(tmp_path / "my", FROZEN + FULL + STACKED, strategies=names, seeds=[1, 2])
    key = "minilm.task_text.acceptability"
    assert list(plan.jobs["pretrain"]) == [key]
    job, stores = plan.job("pretrain", key), plan.boundaries
    assert stores == {"minilm/acceptability/joint": [], f"{key}/acceptability/joint": [6]}
    assert job.inputs["tokens"] == ["results/features/minilm/acceptability/joint/tokens.json"]
    assert plan.job("features", f"{key}/acceptability/joint").spec["encoder"] == job.digest
    for run in plan.runs:
        found, own = plan.job(run.step, run.key), run.strategy != "full"
        assert run.encoder == "minilm" and run.weights.key == (key if own else "minilm")
        assert (found.spec["encoder"] == job.digest) == own
        assert found.inputs["encoder"] == [f"results/encoders/{run.weights.key}/card.json"]
    assert operations(plan, "pretrain", key) > 0 and request(plan, "pretrain", key)["mem_mb"] > 2000


def test_rows_tell_the_weights_and_count_their_cost(tmp_path):
    plan = plan_with(tmp_path / "my", FULL + STACKED, strategies=["full", "mlm_full", "mlm_stacked"], seeds=[1])
    found = {one.row["strategy"]: one for one in collection.selected(plan.job("collect", "demo").spec)}
    key, start = "minilm.task_text.acceptability", "runs/acceptability/all/minilm/linear/mlm_start/base/seed1"
    assert {name: one.row["weights"] for name, one in found.items()} == {
        "full": "minilm",
        "mlm_full": key,
        "mlm_stacked": key,
    }
    assert [one.paid for one in found.values()] == [[], [f"encoders/{key}"], [f"encoders/{key}", start]]
    assert found["mlm_full"].stores == {"joint": f"features/{key}/acceptability/joint"}
    assert f"encoders/{key}/cost.json" in found["mlm_full"].files
    report = plan.job("report", "demo").spec
    (full,) = (one for one in methods.strategies(report) if one["id"] == "mlm_full")
    assert "from: task_text" in full["settings"]
    (further,) = methods.entries(report["further_pretraining"], FurtherPretrainingConfig)
    assert (further["id"], further["settings"]) == ("task_text", ["phase: {learning_rate: 1e-4}"])
