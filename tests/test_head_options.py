"""Options of heads: what is known, what is not, and what a spec holds of them."""

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
