"""Parameters of an encoder's parts: by the header of its weights file, by the model itself, and as a table."""

import csv
import io

import pandas
import pytest
from transformers import BertConfig, BertModel

import invented
from thaw.core.errors import UserError
from thaw.encoders.loading import find_pooler
from thaw.encoders.parameter_counts import parameter_counts
from thaw.encoders.transformers import Encoder
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats
from thaw.papers import parameters
from tiny import FAMILIES, tiny_encoder


def of_the_model(folder) -> tuple:
    """Return layers, and the parameters of embeddings, of all layers, and of the pooler, of a model that is loaded."""
    parts = Encoder.load(folder).components().items()
    sizes = {name: sum(parameter.numel() for _, parameter in named) for name, named in parts}
    embeddings, pooler = sizes.pop("embeddings", 0), sum(tensor.numel() for tensor in find_pooler(folder).values())
    return len(sizes), embeddings, sum(sizes.values()), pooler


def of_the_header(folder) -> tuple:
    found = parameter_counts(folder)
    return found.layers, found.embeddings, found.in_layers, found.pooler


@pytest.mark.parametrize("family", FAMILIES)
def test_the_header_says_what_the_model_has(family, tmp_path):
    folder = tiny_encoder(family, tmp_path)
    assert of_the_header(folder) == of_the_model(folder)


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "electra", "modernbert"])
def test_what_predicts_masked_tokens_is_no_part_of_the_encoder(family, tmp_path):
    from transformers import AutoModelForMaskedLM

    folder = tiny_encoder(family, tmp_path)
    AutoModelForMaskedLM.from_pretrained(folder).save_pretrained(folder)
    assert of_the_header(folder)[:3] == of_the_model(folder)[:3]


def test_a_broken_file_is_said(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"none")
    with pytest.raises(UserError, match="model.safetensors: its header cannot be read; delete the folder"):
        parameter_counts(tmp_path)


WIDTH, INNER, WORDS, PLACES, LAYERS = 8, 32, 50, 16, 3


def test_counts_are_those_of_the_formulas(tmp_path):
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        intermediate_size=INNER,
        max_position_embeddings=PLACES,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
    )
    BertModel(config).save_pretrained(tmp_path / "encoders/tiny")
    runs = pandas.DataFrame({"kind": ["baseline", "run", "run"], "encoder": ["", "tiny", "tiny"]})
    spec = invented.shown("parameters", "parameter_table")
    table = parameters.build(OutputData(tmp_path, runs), spec)
    (line,) = csv.DictReader(io.StringIO(table_formats.to_csv(table)))
    embeddings = WIDTH * (WORDS + PLACES + 2) + 2 * WIDTH
    layer = 4 * (WIDTH * WIDTH + WIDTH) + 2 * WIDTH * INNER + INNER + WIDTH + 4 * WIDTH
    pooler = WIDTH * WIDTH + WIDTH
    assert [int(line["layers"]), int(line["embeddings"]), int(line["pooler"])] == [LAYERS, embeddings, pooler]
    assert float(line["layer"]) == layer and int(line["total"]) == embeddings + LAYERS * layer + pooler
    assert [cell.text for cell in table.groups[0].rows[0].cells][-1] == f"{100 * layer / int(line['total']):.1f}"
