"""The table of parameters: what lies in the embeddings, the layers and the pooler of an encoder."""

import csv
import io

import pandas
from transformers import BertConfig, BertModel

import invented
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats
from thaw.papers import parameters

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
