"""Papers' protocols: every setting exists, every difference has a reason, and what is counted as computed is."""

import pytest
import yaml

import paper_plans
from thaw.core.errors import UserError
from thaw.outputs.tables import protocol_notes
from thaw.planning.configuration import load_plan, read_config
from thaw.planning.papers import printed_tables
from thaw.schema.catalogue import shipped
from thaw.schema.reference import Reference

PAPERS = ["peters2019", "lee2019", "wang2019", "wei2022", "houlsby2019", "ulmfit", "kovaleva2019"]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_setting_of_a_protocol_is_in_the_catalogues(paper, catalogue):
    lines = printed_tables.protocol_for_spec(paper, catalogue)
    assert len(lines) > 5 and all(len(line) == 5 and line[1] and line[2] for line in lines)
    assert any(line[2] == "the same" for line in lines) and (any(line[3] for line in lines) or paper == "kovaleva2019")


@pytest.fixture
def checked(tmp_path, catalogue, home, monkeypatch):
    """Return a function that reads a protocol of one item."""

    def read(**item):
        table = {"source": "T", "provenance": "text", "not_computed": "no", "columns": {"a": {}}, "rows": {"b": {}}}
        paper = {"cite": "N", "title": "T", "arxiv": "1", "tables": {"t": table}, "protocol": [{"what": "w", **item}]}
        (tmp_path / "reference").mkdir(exist_ok=True)
        (tmp_path / "reference/nobody.yaml").write_text(yaml.safe_dump(paper))
        monkeypatch.setattr(catalogue, "folders", [*shipped(home), tmp_path])
        return printed_tables.protocol_for_spec("nobody", catalogue)

    return read


def test_a_difference_needs_a_reason_and_a_setting_must_exist(checked):
    batch = "strategies.lee_full.phases.1.batch_size"
    assert checked(paper=16, setting=batch) == [["w", "16", "the same", "", True]]
    assert checked(paper=32, setting=batch, why="memory") == [["w", "32", "16", "memory", True]]
    assert checked(paper=32, here="16") == [["w", "32", "16", "", False]]
    with pytest.raises(UserError, match="the paper has 32, .* is 16; say why:"):
        checked(paper=32, setting=batch)
    with pytest.raises(UserError, match="there is no batch"):
        checked(paper=32, setting="strategies.lee_full.phases.1.batch")
    with pytest.raises(UserError, match="say either setting: or here:"):
        checked(paper=32)


@pytest.fixture
def invented_lines():
    lines = [["batch", "32", "16", "memory", True], ["split", "half", "a tenth", "", False]]
    labels = {"encoders": {"minilm": "MiniLM-L6"}, "subsets": {}}
    return {"id": "x", "caption": "", "protocol": lines, "labels": labels}


def test_only_what_is_read_from_a_setting_is_said_to_be(invented_lines):
    made = protocol_notes.build(None, invented_lines)
    assert [row.cells[1].text for row in made.groups[0].rows] == ["16" + protocol_notes.MARK, "a tenth"]
    assert made.notes == protocol_notes.NOTES and [line["here_from"] for line in made.records()] == [
        "catalogues",
        "words",
    ]


def test_a_protocol_says_the_precision_of_the_experiment(home):
    config = read_config([str(home / "config/experiments/lee2019.yaml")], {"compute": {"precision": "bf16"}})
    plan = load_plan(config | {"tasks": ["sst2"], "outputs": ["lee2019_protocol"], "baselines": []}, home)
    *_, line = plan.job("table", "lee2019/lee2019_protocol").spec["protocol"]
    assert line[:3] == ["precision of what trains", "not stated", "bf16"]


def test_numbers_of_other_numbers_are_counted_by_their_parts(home):
    reference, _ = printed_tables.read(shipped(home), "peters2019")
    table = reference.tables["table_2"]
    numbers = {(number.row, number.column): number for number in printed_tables.printed(table)}
    parts = paper_plans._parts(numbers["bert_delta", "conll2003"], table, numbers)
    assert [part.at["encoder"] for part in parts] == ["bert_base_cased"] * 2
    assert parts[1].at["strategy"] == "peters_features_tagger"
    assert paper_plans._parts(numbers["skip_thoughts", "mrpc"], table, numbers) == []
    assert isinstance(reference, Reference)
