"""Subsets with splits of their own in plans and outputs: what is refused, how tables and the report show them."""

import numpy as np
import pandas
import pytest

from output_records import OutputRecords
from plans import plan_with
from thaw.core.errors import UserError
from thaw.declarations.outputs import OUTPUTS
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.render import table_formats
from thaw.outputs.report import methods
from thaw.schema.corpora import SubsetConfig


def planned(folder, strategies: str, chosen: str, **changes):
    """Plan the demo's first task with strategies of one's own."""
    folder.mkdir()
    (folder / "tasks.yaml").write_text("tasks:\n  again: {base: acceptability}\n")
    return plan_with(folder, strategies, **{"strategies": [chosen]} | changes)


def test_outputs_are_drawn_of_draws_that_hold_out_rows_of_their_own(tmp_path):
    kinds = ("strategy_table", "advice_table", "finding_table")
    records = OutputRecords(tmp_path, kinds, "together", subsets=["divided_1", "divided_2"], probes=[], adapted=[])
    path = records.results / "outputs/all_kinds/runs.csv"
    own = pandas.read_csv(path).query("kind == 'run'")
    assert dict(own.groupby("split")["role"].first()) == {
        "colour_others/test": "transfer",
        "held_out": "validation",
        "reserved": "reserved",
        "test": "test",
        "train": "train",
    }
    assert set(own["n"][own["split"] == "reserved"]) == {16} and own["carved"].all() and set(own["train_rows"]) == {24}
    made, shown = {}, [(kind, records.spec(kind)) for kind in kinds]
    for kind, spec in [*shown, ("reserved", records.spec("strategy_table") | {"split": "reserved"})]:
        data = OutputData(records.results, path, [], spec.get("first_draws"))
        table = OUTPUTS[spec["kind"]].load()(data, spec)
        made[kind] = table_formats.FORMATS["md"](table)
    for kind, split in (("strategy_table", "test"), ("reserved", "reserved")):
        columns = made[kind].partition("\n| |")[2].partition("\n")[0].split(" | ")
        assert [name.strip().partition("<br>")[0] for name in columns] == ["colour", "weight"]
        assert "over 4 runs" in made[kind] and f", on {split}." in made[kind]
    assert "Reserved: rows of train" in made["reserved"] and "Reserved" not in made["strategy_table"]
    assert "divided" not in made["advice_table"]
    files, terms = PredictionFiles(records.results), {}
    for split in ("held_out", "reserved", "test"):
        rows = own[(own["split"] == split) & (own["strategy"] == "short_full") & (own["metric"] == "accuracy")]
        terms[split] = files.by_row(rows[rows["seed"] == 2], "accuracy", split)
    alike = {split: np.array_equal(*found) for split, found in terms.items()}
    assert alike["test"], "equal predictions, equal draws"
    assert not alike["held_out"], "each draw holds out other rows"


def test_the_plan_of_a_search_names_the_subset_that_it_chooses_on(tmp_path):
    one = "  one: {phases: [{train: [head, {top: 1}]}], search: {grid: {rate: [1e-5, 2e-4]}}}\n"
    for subset, due in (
        ("n100_d1", None),
        ("n1000_r2", {"rows": 1000, "draw": 2, "validation": 0.2, "reserved": 1000}),
    ):
        plan = planned(tmp_path / subset, one, "one", subsets=[subset])
        (choice,) = plan.jobs["select"].values()
        assert choice.spec.get("subset") == due
        trial = next(job for job in plan.jobs["train"].values() if job.spec.get("trial"))
        assert trial.spec["subset"] == (due or {"rows": 100})


def test_a_start_that_trains_on_reserved_rows_is_refused(tmp_path):
    kept = "  kept: {phases: [{train: [head, {top: 2}]}], keep: true}\n"
    after = "  next: {{phases: [{{train: [head]}}], after: {{strategy: kept, task: again{}}}}}\n"
    chosen = {"subsets": ["n1000_r1"]}
    message = "again on the subset all trains on rows of acceptability that n1000_r1 reserves for testing"
    with pytest.raises(UserError, match=message):
        planned(tmp_path / "all", kept + after.format(""), "next", **chosen)
    planned(tmp_path / "same", kept + after.format(", subset: n1000_r2"), "next", **chosen)


def test_the_report_says_what_is_set_aside_once_for_all_draws():
    entry = SubsetConfig(rows=1000, validation=0.2, reserved=2000).model_dump()
    spec = {"subsets": {"a": entry, "b": entry | {"draw": 2}}, "labels": {"subsets": {}}}
    assert [line.replace("\u202f", ",") for line in methods.subsets(spec)] == [
        "Subset a: 1,000 examples of train (draw 1).",
        "Subset b: 1,000 examples of train (draw 2).",
        "a and b: 20 % of the examples are set aside (held_out): by them epochs and settings are chosen, and the "
        "dataset's validation split is not read. Up to 2,000 examples of train, which no draw takes, are one more "
        "test split (reserved).",
    ]


def test_an_output_on_reserved_rows_is_refused_where_a_subset_has_none(tmp_path):
    one = "  one: {phases: [{train: [head, {top: 1}]}]}\n"
    (tmp_path / "own").mkdir()
    (tmp_path / "own/outputs.yaml").write_text(
        "outputs:\n  mine: {kind: strategy_table, split: reserved, caption: A.}\n"
    )
    chosen = {"outputs": ["mine"], "subsets": ["n1000_r1", "n100_d1"]}
    chosen["catalogues"] = [str(tmp_path / "own"), str(tmp_path / "one")]
    with pytest.raises(UserError, match="it needs subsets with reserved rows, as n1000_r1, and n100_d1 has none"):
        planned(tmp_path / "one", one, "one", **chosen)
    planned(
        tmp_path / "two",
        one,
        "one",
        **chosen | {"subsets": ["n1000_r1"]} | {"catalogues": [str(tmp_path / "own"), str(tmp_path / "two")]},
    )
