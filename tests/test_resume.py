"""Resume: every family starts at every boundary and ends bit for bit where its full pass ends."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from thaw.core.errors import UserError
from thaw.encoders.parity import check_resume, compare
from thaw.encoders.resume import IdentityLayer
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from tiny import FAMILIES

LAYERS = 3


def padded_batch(encoder: Encoder) -> Batch:
    """Five examples of different lengths with type ids where the model has any."""
    config = encoder.model.config
    lengths = torch.tensor([11, 7, 11, 3, 1])
    ids = torch.randint(5, config.vocab_size, (5, 11), generator=torch.Generator().manual_seed(3))
    mask = torch.arange(11) < lengths[:, None]
    types = (torch.arange(11) > 4).long().expand(5, 11) if config.model_type in ("bert", "electra") else None
    return Batch(ids.where(mask, config.pad_token_id or 0), mask, types, None, torch.arange(5))


@pytest.mark.parametrize("family", FAMILIES)
def test_resumed_is_full_at_every_boundary(folders, family):
    """Difference 0 in fp32 on a padded batch, and nothing of what lies below is kept in memory."""
    encoder = Encoder.load(folders[family])
    batch = padded_batch(encoder)
    states = encoder.boundaries(batch)
    assert len(states) == LAYERS + 1
    table = encoder.model.get_input_embeddings().weight.shape
    size = sum(parameter.numel() for parameter in encoder.parameters())
    for boundary in range(LAYERS):
        resumed = Encoder.load(folders[family]).resume_at(boundary)
        assert torch.equal(resumed(batch, states[boundary]), states[-1]), f"boundary {boundary}"
        left = sum(parameter.numel() for parameter in resumed.parameters())
        assert left < size and table not in [parameter.shape for parameter in resumed.parameters()]
        size = left
        assert [name for name in resumed.components() if name != "embeddings"] == [
            f"layer.{n}" for n in range(boundary + 1, LAYERS + 1)
        ]


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize(
    "family", sorted(set(FAMILIES) - {"mpnet"})
)  # its eager attention asks for its masks by itself
def test_a_pass_does_not_wait_for_a_device(folders, family, padded):
    """A batch on the device meta has no values that a pass could ask for, from text or resumed."""
    encoder = Encoder.load(folders[family]).to("meta")
    batch = padded_batch(encoder)
    if not padded:
        batch = replace(batch, mask=torch.ones_like(batch.mask))
    batch = batch.to("meta")
    states = encoder.boundaries(batch)
    encoder.resume_at(1).thaw({"layer.3"})
    final = encoder.train()(batch, states[1])
    assert final.device.type == "meta" and final.shape == (5, 11, 32)
    final.sum().backward()


@pytest.mark.parametrize("family", FAMILIES)
def test_masks_are_those_of_transformers(folders, family):
    """A batch that knows its padding and one that does not give the same bits, padded and not."""
    encoder = Encoder.load(folders[family])
    batch = padded_batch(encoder)
    for mask in (batch.mask, torch.ones_like(batch.mask)):
        known, unknown = (make(**vars(batch) | {"mask": mask}) for make in (Batch, SimpleNamespace))
        for one, other in zip(encoder.boundaries(known), encoder.boundaries(unknown), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("family", FAMILIES)
def test_components_hold_every_parameter_once(folders, family):
    """Embeddings and layers together are the model."""
    encoder = Encoder.load(folders[family])
    names = [name for parameters in encoder.components().values() for name, _ in parameters]
    assert sorted(names) == sorted(name for name, _ in encoder.model.named_parameters())
    assert list(encoder.components()) == ["embeddings", "layer.1", "layer.2", "layer.3"]


def test_shared_parts_belong_where_they_act(folders):
    """A final norm trains with the last layer, relative positions with the embeddings, DeBERTa's conv with layer 1."""

    def names(family, component):
        return [name for name, _ in Encoder.load(folders[family]).components()[component]]

    assert "final_norm.weight" in names("modernbert", "layer.3")
    assert "encoder.relative_attention_bias.weight" in names("mpnet", "embeddings")
    assert "encoder.rel_embeddings.weight" in names("deberta_v2", "embeddings")
    assert "encoder.conv.conv.weight" in names("deberta_v2_conv", "layer.1")
    assert "embeddings_project.weight" in names("electra", "embeddings")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("boundary", [None, 1])
def test_only_the_thawed_part_moves(folders, family, boundary):
    """After some steps frozen tensors are bit-equal, thawed ones have moved, from text and resumed alike."""
    encoder = Encoder.load(folders[family])
    batch = padded_batch(encoder)
    state = None if boundary is None else encoder.boundaries(batch)[boundary]
    encoder.resume_at(boundary)
    encoder.thaw({"layer.3"})
    before = copy.deepcopy(dict(encoder.model.named_parameters()))
    trained = [parameter for parameter in encoder.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.01, weight_decay=0.1)
    encoder.train()
    for _ in range(3):
        encoder(batch, state)[batch.mask].square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    thawed = {name for name, _ in encoder.components()["layer.3"]}
    for name, parameter in encoder.model.named_parameters():
        # a key's bias moves every score of a query alike, which softmax does not see
        if name in thawed and not name.endswith(("key.bias", "key_proj.bias", "k_lin.bias", "attn.k.bias")):
            assert not torch.equal(parameter, before[name]), name
        elif name not in thawed:
            assert torch.equal(parameter, before[name]), name


def test_frozen_layers_have_no_dropout(folders):
    """In training mode the frozen part gives the same states each time; frozen_dropout: true turns dropout on."""
    encoder = Encoder.load(folders["bert"])
    batch = padded_batch(encoder)
    for components, frozen_dropout, same in (
        (set(), False, True),
        (set(), True, False),
        ({"layer.3"}, False, False),
        ({"embeddings"}, False, False),
    ):
        encoder.thaw(components, frozen_dropout)
        encoder.train()
        assert torch.equal(encoder(batch), encoder(batch)) is same, (components, frozen_dropout)
    encoder.thaw({"layer.3"})
    encoder.train()
    layers = encoder.model.encoder.layer
    assert [layer.training for layer in layers] == [False, False, True] and not encoder.model.embeddings.training
    assert torch.equal(encoder.eval()(batch), encoder(batch))
    with pytest.raises(UserError, match=r"no layer\.9 to thaw; it has embeddings, layer\.1"):
        encoder.thaw({"layer.9"})


def test_states_stop_at_the_highest_boundary(folders):
    """Layers above the highest boundary asked for are not run, and the numbers do not depend on what was asked."""
    encoder = Encoder.load(folders["modernbert"])
    batch = padded_batch(encoder)
    calls = []
    hook = encoder.model.layers[1].register_forward_hook(lambda *_: calls.append(1))
    alone = encoder.states(batch, [0, 1])
    assert not calls
    hook.remove()
    everything = encoder.boundaries(batch)
    assert torch.equal(alone[0], everything[0]) and torch.equal(alone[1], everything[1])


def test_a_copy_resumes_by_itself(folders):
    """A deep copy has its own entry for the state, so that two models can run side by side."""
    encoder = Encoder.load(folders["bert"])
    batch = padded_batch(encoder)
    states = encoder.boundaries(batch)
    encoder.resume_at(1)
    twin = copy.deepcopy(encoder)
    assert torch.equal(twin(batch, states[1]), states[-1])
    assert torch.equal(encoder(batch, states[1]), states[-1])
    with pytest.raises(UserError, match="starts at boundary 1 can not start at 0"):
        encoder.resume_at(0)
    with pytest.raises(ValueError, match="state"):
        encoder(batch)


def test_parity_check_is_loud(folders):
    """The check passes for all families; a model that adds its embeddings to its end is found and named."""
    for folder in folders.values():
        check_resume(folder)
    encoder = Encoder.load(folders["bert"])

    def add_embeddings(module, inputs, output):
        output.last_hidden_state = output.last_hidden_state + inputs[0]

    encoder.model.encoder.register_forward_hook(add_embeddings)
    with pytest.raises(UserError, match=r"ours: bert resumed at boundary 1 differs from its full pass by \d"):
        compare(encoder, "ours")


@pytest.mark.parametrize(
    ("kind", "keys", "message"),
    [
        ("albert", {"embedding_size": 16}, "albert shares the weights of one layer among all 3"),
        ("t5", {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 3}, "t5 is an encoder-decoder"),
        ("vit", {}, "vit is no text encoder"),
        ("fnet", {}, None),
    ],
)
def test_what_is_no_encoder_with_layers_is_refused(kind, keys, message):
    """Shared layers, encoder-decoders and other kinds are refused with the reason; anything with a stack is taken."""
    from transformers import AutoConfig, AutoModel

    sizes = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "num_hidden_layers": 3}
    keys = (sizes if kind != "t5" else {}) | keys
    config = AutoConfig.for_model(kind, **({} if kind == "vit" else {"vocab_size": 100}), **keys)
    model = AutoModel.from_config(config).eval()
    if message is None:
        assert Encoder(model).layers == 3
    else:
        with pytest.raises(UserError, match=message):
            Encoder(model)


def test_a_stub_hands_on_the_state_however_it_is_given_and_in_the_form_of_the_layers():
    """Some models call their layers with named arguments, and some layers return tuples."""
    state, layer = torch.ones(1, 2, 3), torch.nn.Linear(1, 1)
    for form, given in ((0, state), (1, (state,)), (3, (state, None, None))):
        stub = IdentityLayer(layer, form)
        for found in (stub(state), stub(hidden_states=state), stub(state, "mask", cache=None)):
            assert found is state if form == 0 else found == given
    assert stub.in_features == 1 and "weight" not in dict(stub.named_parameters())
