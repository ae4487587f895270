"""Reference numbers: every address stands in the catalogues, nothing is without a reason, wrong ones are told."""

import pytest
import yaml

import paper_plans
from conftest import MESSAGES
from thaw.core.errors import UserError
from thaw.planning.papers import printed_tables
from thaw.schema.catalogue import shipped

ENSEMBLES = {"wang2019": ["wang_ensemble", "wang_three_tuned"]}
SMALL = {
    "cite": "Nobody 2020",
    "title": "On nothing",
    "arxiv": "2001.00001",
    "tables": {
        "one": {
            "source": "Table 1",
            "provenance": "text",
            "encoder": "bert_base_uncased",
            "strategy": "full",
            "columns": {"mrpc": {"task": "mrpc", "metric": "accuracy"}, "rte": {"task": "rte", "metric": "accuracy"}},
            "rows": {
                "tuned": {"values": [80.0, None]},
                "top": {"strategy": "top_k", "variant": "k03", "values": [79.0, 60.0]},
                "gain": {"minus": ["tuned", "top"], "values": [1.0, None]},
                "lost": {"not_computed": "its weights are gone", "values": [70.0, 50.0]},
            },
        }
    },
}


@pytest.fixture
def small(tmp_path, catalogue):
    """Return a function that checks the small paper with some keys of a row replaced."""

    def checked(row: str = "tuned", **changes):
        table = SMALL["tables"]["one"]
        rows = table["rows"] | {row: table["rows"][row] | changes}
        (tmp_path / "reference").mkdir(exist_ok=True)
        text = yaml.safe_dump(SMALL | {"tables": {"one": table | {"rows": rows}}})
        (tmp_path / "reference/small.yaml").write_text(text)
        found, document = printed_tables.read([tmp_path], "small")
        printed_tables.check("small", found, document, catalogue, [])
        return list(printed_tables.printed(found.tables["one"]))

    return checked


@pytest.mark.parametrize("name", paper_plans.PAPERS)
def test_every_address_of_a_paper_stands_in_the_catalogues(name, home, catalogue):
    found, document = printed_tables.read(shipped(home), name)
    printed_tables.check(name, found, document, catalogue, ENSEMBLES.get(name, []))
    numbers = [number for table in found.tables.values() for number in printed_tables.printed(table)]
    assert any(number.value is not None for number in numbers)
    derived = {name for table in found.tables.values() for name, row in table.rows.items() if row.minus}
    over = {name for table in found.tables.values() for name, column in table.columns.items() if column.over}
    assert all(n.at or n.reason or n.row in derived or n.column in over for n in numbers)


def test_an_address_is_put_together_from_table_column_and_row(small):
    numbers = {(number.row, number.column): number for number in small()}
    assert numbers["top", "rte"].at == {
        "task": "rte",
        "metric": "accuracy",
        "encoder": "bert_base_uncased",
        "strategy": "top_k",
        "variant": "k03",
    }
    assert numbers["tuned", "rte"].value is None and numbers["tuned", "mrpc"].value == 80.0
    assert numbers["gain", "mrpc"].at == {} and numbers["gain", "mrpc"].reason == ""
    assert numbers["lost", "mrpc"].at == {} and numbers["lost", "mrpc"].reason == "its weights are gone"


@pytest.mark.parametrize("case", MESSAGES["a printed table"])
def test_a_wrong_address_is_told_with_its_place(small, recorded, tmp_path, case):
    ((row, changes),) = yaml.safe_load(case).items()
    with pytest.raises(UserError) as caught:
        small(row, **changes)
    recorded("a printed table", case, str(caught.value).replace(f"{tmp_path}/", ""))


def test_an_unknown_paper_is_told(home):
    with pytest.raises(UserError, match="did you mean 'lee2019'"):
        printed_tables.read(shipped(home), "lee2018")
