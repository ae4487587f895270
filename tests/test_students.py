"""Students: an encoder that keeps some of its layers trains, is resumed, counted and exported like any other."""

import re

import pandas
import pytest
import torch
import yaml

from thaw.core.errors import UserError
from thaw.encoders.shortening import compact, starting_tensors
from thaw.encoders.transformers import Encoder
from thaw.exporting.formats import cut
from thaw.features.batch import Batch
from thaw.outputs.frame.aggregate import Column
from thaw.papers import students
from thaw.schema.student import StudentConfig
from tiny import tiny_encoder

COSTS = ("task", "split", "price", "inference")


def batch(encoder: Encoder) -> Batch:
    """Return two texts of five and three tokens."""
    ids = torch.randint(5, 40, (2, 5), generator=torch.Generator().manual_seed(3))
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    return Batch(ids, mask, None, None, torch.arange(2))


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet", "modernbert", "gpt2", "deberta_v2"])
def test_a_dropped_layer_is_as_if_it_was_not_there(family, tmp_path):
    """Layers that pass their input on compute what a model without them does, to the bit."""
    folder = tiny_encoder(family, tmp_path / family, layers=4)
    kept = [1, 2, 3] if family == "modernbert" else [1, 3]
    student, deleted = Encoder.load(folder).shorten(kept), Encoder.load(folder)
    compact(deleted, kept)
    given = batch(student)
    states, expected = student.boundaries(given), deleted.boundaries(given)
    assert torch.equal(states[4], expected[len(kept)])
    assert torch.equal(states[3], student.states(given, [3])[3])
    assert not torch.equal(states[4], Encoder.load(folder).boundaries(given)[4])


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_student_is_resumed_at_any_boundary(start, tmp_path):
    folder = tiny_encoder("bert", tmp_path / "bert", layers=4)
    whole = Encoder.load(folder).shorten([1, 2, 4])
    given = batch(whole)
    states = whole.boundaries(given)
    resumed = Encoder.load(folder).shorten([1, 2, 4]).resume_at(start)
    with torch.no_grad():
        assert torch.allclose(resumed(given, states[start]), states[4], atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert", "gpt2"])
def test_a_student_is_loaded_by_transformers_with_as_many_layers_as_it_keeps(family, tmp_path):
    from transformers import AutoModel

    folder = tiny_encoder(family, tmp_path / family, layers=4)
    kept = [1, 2, 3] if family == "modernbert" else [2, 4]
    student, exported = Encoder.load(folder).shorten(kept), Encoder.load(folder).shorten(kept)
    compact(exported, kept)
    cut(exported, [len(kept)])
    exported.model.save_pretrained(tmp_path / "exported")
    loaded = AutoModel.from_pretrained(tmp_path / "exported").eval()
    given = batch(student)
    assert loaded.config.num_hidden_layers == len(kept)
    with torch.no_grad():
        state = loaded(input_ids=given.input_ids, attention_mask=given.mask.long())[0]
    assert torch.allclose(state[given.mask], student.states(given, [4])[4][given.mask], atol=1e-5)


def test_layers_start_from_those_that_are_named(tmp_path):
    folder = tiny_encoder("bert", tmp_path / "bert", layers=4)
    named = dict(Encoder.load(folder).model.named_parameters())
    student = {"layers": [2, 4], "start": {"2": 1, "4": "random"}}
    tensors = starting_tensors(folder, student, {"encoder.layer.0.output.dense.bias": torch.ones(32)}, 1)
    assert {name.split(".")[2] for name in tensors} == {"1", "3"}
    assert torch.equal(tensors["encoder.layer.1.output.dense.bias"], torch.ones(32)), "as the earlier run left it"
    weight = "output.dense.weight"
    assert torch.equal(tensors[f"encoder.layer.1.{weight}"], named[f"encoder.layer.0.{weight}"])
    again = starting_tensors(folder, student, {}, 1)[f"encoder.layer.3.{weight}"]
    assert torch.equal(tensors[f"encoder.layer.3.{weight}"], again)
    assert not torch.equal(again, named[f"encoder.layer.3.{weight}"])


def test_the_strategies_of_the_guide_keep_what_it_says(home, tmp_path):
    """Every other layer is another model than the lowest ones; started from the bottom, it would be the same."""
    page = (home / "docs/howto/students.md").read_text(encoding="utf-8")
    entries = yaml.safe_load(re.search(r"```yaml\n(.+?)```", page, re.DOTALL)[1])["strategies"]
    named = {name: StudentConfig.model_validate(entry["student"]) for name, entry in entries.items()}
    named["spread_from_bottom"] = StudentConfig(layers=3, keep="spread", start="bottom")
    shapes = {name: student.shape(6, {}) for name, student in named.items()}
    assert shapes["lowest_three"] == ([1, 2, 3], {}) and shapes["every_other"] == ([2, 4, 6], {})
    folder, states = tiny_encoder("bert", tmp_path / "bert", layers=6), {}
    for name, (kept, start) in shapes.items():
        encoder = Encoder.load(folder).shorten(kept)
        encoder.put(starting_tensors(folder, {"layers": kept, "start": start}, {}, 1))
        states[name] = encoder.states(batch(encoder), [6])[6]
    assert torch.equal(states["lowest_three"], states["spread_from_bottom"])
    assert not torch.allclose(states["lowest_three"], states["every_other"], atol=1e-3)


def test_the_costs_of_a_student_are_means_over_tasks_and_not_over_test_splits():
    common = {"subset": "all", "encoder": "tiny", "head": "linear", "kind": "run", "strategy": "s", "variant": "base"}
    splits = [("two", "dev", 10.0, 1e6), ("two", "test", 10.0, 1e6), ("one", "test", 40.0, 3e6)]
    rows = pandas.DataFrame(
        [common | dict(zip(COSTS, split, strict=True)) | {"mean": 50.0, "seeds": 1} for split in splits]
    )
    columns = [Column(task, split, task, "accuracy", False) for task, split, *_ in splits]
    cells = students._cells(rows, columns, {}, 4e6, {"taught_by": "", "layers": 2})
    assert [cell.text for cell in cells[3:]] == ["–", "2", "25\u202fs", "4.0", "2"]


def test_a_layer_that_works_otherwise_gives_no_weights(tmp_path):
    folder = tiny_encoder("modernbert", tmp_path / "modernbert", layers=4)
    with pytest.raises(UserError, match="works otherwise than layer 1"):
        starting_tensors(folder, {"layers": [2], "start": {"2": 1}}, {}, 1)
