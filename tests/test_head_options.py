"""Options of heads: what is known, what is not, and what a spec holds of them."""

import pytest

from thaw.core.errors import UserError
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import spec_of
from thaw.schema.head import HeadConfig


def test_values_equal_to_the_default_leave_a_spec_as_it_was():
    bare = spec_of(HeadConfig(kind="bilstm"))
    assert bare == {"kind": "bilstm"}
    assert spec_of(HeadConfig(kind="bilstm", options={"size": 200, "layers": 2}, initialisation="bert")) == bare
    assert spec_of(HeadConfig(kind="bilstm", options={"size": 200, "layers": 1})) == bare | {"options": {"layers": 1}}
    assert HeadConfig.model_validate(bare).kind_options.size == 200


def test_options_of_a_head_of_ones_own_stay_as_they_are():
    assert HeadConfig(kind="my_heads:Gated", options={"hidden": 300}).options == {"hidden": 300}


@pytest.mark.parametrize(
    "entry, message",
    [
        ("{kind: bilstm, options: {sise: 3}}", r"heads.yaml:2: .*bilstm has no option 'sise'; did you mean 'size'\?"),
        ("{kind: crf, options: {size: 3}}", "crf has no option 'size'; it has none"),
        ("{kind: esim, options: {size: 0}}", "size: input should be greater than or equal to 1"),
        ("{kind: esim, options: {size: wide}}", "size: input should be a valid integer"),
        ("{kind: sim_transformer, options: {size: 50}}", "size 50 is not even and divisible by 4 heads"),
        ("{kind: esim, separate_pooling: max}", "separate_pooling has no meaning for kind esim; leave it out"),
        ("{kind: mlp, initialisation: xavier}", "input should be 'bert' or 'kaiming'"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(tmp_path, entry, message):
    with pytest.raises(UserError, match=message):
        (tmp_path / "heads.yaml").write_text(f"heads:\n  mine: {entry}\n")
        Catalogue([tmp_path])
