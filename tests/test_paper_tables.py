"""A paper's table: published numbers, reproduced numbers with 95 % CI, differences, and protocol notes."""

import csv
import io

import pandas
import pytest

import invented
import scored_runs
from test_papers import planned
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.render import table_formats
from thaw.outputs.tables import reproduction

RATES = {("frozen", "base"): 0.60, ("top_k", "k01"): 0.65, ("top_k", "k02"): 0.88, ("full", "base"): 0.90}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a results folder with six seeds of four runs on 200 rows, and their rows of runs.csv."""
    results = tmp_path_factory.mktemp("results")
    return results, scored_runs.write(results, RATES)


def at(strategy: str, variant: str = "base") -> list[str]:
    return ["odd", "tiny", "linear", strategy, variant, "accuracy", "test"]


def beside(**changes) -> dict:
    """Return what `table_comparison.comparison_for_spec` says of a small table; `changes` replace its keys."""
    gone = {"printed": 55.0, "reason": "its weights are gone"}
    rows = [
        {"label": "Frozen", "cells": [{"printed": 62.5, "at": at("frozen"), "marks": ["encoder", "split"]}]},
        {"label": "Full", "cells": [{"printed": None, "at": at("full"), "marks": []}], "note": "taken over"},
        {"label": "Gain", "cells": [{"printed": 20.0}], "minus": [1, 0]},
        {"label": "Lost", "cells": [gone]},
    ]
    found = {"source": "Table 1", "provenance": "table_image", "aggregation": "mean", "cite": "Nobody 2020", "seeds": 5}
    found |= {"arxiv": "2001.00001", "subset": "all", "not_computed": [["Table 9", "a probe"]], "rows": rows}
    found["columns"] = [{"label": "Odd", "scale": "hundred", "over": None}]
    return found | changes


def drawn(made, **changes):
    results, runs = made
    spec = invented.shown("paper", "paper_table") | {"beside": beside(**changes)}
    return reproduction.build(OutputData(results, runs), spec)


def lines_of(table) -> dict:
    """Return {(row, line): text of its only cell, with its interval}."""
    cells = {(group.name, row.name): row.cells[0] for group in table.groups for row in group.rows}
    return {key: f"{cell.text} {cell.interval}".strip() for key, cell in cells.items()}


def test_each_row_has_the_printed_number_ours_and_the_difference(made):
    _, runs = made
    table = drawn(made)
    means = 100 * runs.groupby("strategy")["value"].mean()
    lines = lines_of(table)
    assert lines["Frozen", "published"] == "62.5" and lines["Full", "published"] == "–"
    assert lines["Frozen", "reproduced"].startswith(f"{means['frozen']:.1f}ᵃᵇ [")
    assert lines["Frozen", "difference"] == f"{means['frozen'] - 62.5:.1f}".replace("-", "−")
    assert ("Full", "difference") not in lines and ("Lost", "reproduced") not in lines
    assert lines["Gain", "reproduced"].startswith(f"{means['full'] - means['frozen']:.1f} [")


def test_a_difference_by_the_papers_rule_is_over_the_seeds_that_both_have(made):
    results, runs = made
    values = runs["value"].mask((runs["strategy"] == "frozen") & (runs["seed"] == 1), 0.2)
    few = runs.assign(value=values)[~((runs["strategy"] == "full") & (runs["seed"] <= 2))]
    means = 100 * few[few["seed"] > 2].groupby("strategy")["value"].mean()
    table = drawn((results, few), aggregation="lee2019")
    (gain,) = (line for line in table.records() if line["row"] == "Gain")
    due = pytest.approx(means["full"] - means["frozen"], abs=1e-3)
    assert (float(gain["ours"]), float(gain["by_rule"]), gain["seeds"]) == (due, due, 4)


def test_a_reproduced_number_leads_to_its_runs(made):
    table = drawn(made)
    rows = {(group.name, row.name): row for group in table.groups for row in group.rows}
    frozen, full = (f"odd.run.all.tiny.linear.{strategy}.base" for strategy in ("frozen", "full"))
    assert rows["Frozen", "reproduced"].cells[0].link == frozen
    assert [anchor for _, anchor in rows["Gain", "reproduced"].cells[0].behind] == [full, frozen], "of both its sides"
    assert rows["Gain", "reproduced"].cells[0].behind[0][0] == "R&D_50%: Full"
    assert rows["Frozen", "difference"].cells[0].link == frozen
    assert not rows["Frozen", "published"].cells[0].link, "a paper's number has no runs here"


def test_differences_speak_by_the_papers_own_rule(made):
    rule = {"beyond": 1.0, "above": "tuning", "below": "features"}
    rows = beside()["rows"][:2]
    for printed, said in ((2.3, "tuning"), (-1.3, "features"), (1.0, "neither"), (-1.0, "neither"), (None, "–")):
        gain = {"label": "Gain", "cells": [{"printed": printed}], "minus": [1, 0], "favours": rule}
        table = drawn(made, rows=[*rows, gain])
        lines = lines_of(table)
        assert lines["Gain", "published favours"] == said and lines["Gain", "reproduced favours"] == "tuning"
        assert ("Full", "published favours") not in lines
        assert "The paper interprets only differences of more than 1.0 points." in table.notes


def test_the_interval_holds_the_rate_that_the_predictions_were_made_with(made):
    lines = list(csv.DictReader(io.StringIO(table_formats.to_csv(drawn(made)))))
    by_row = {line["row"]: line for line in lines}
    for row, rate in (("Frozen", 60), ("Full", 90), ("Gain", 30)):
        low, high = float(by_row[row]["low"]), float(by_row[row]["high"])
        assert low < rate < high and high - low < 12, row
    assert by_row["Lost"]["ours"] == "" and lines[-1]["reason"] == "its weights are gone"


def test_the_notes_tell_what_is_not_as_in_the_paper(made):
    notes = " ".join(drawn(made).notes)
    for said in (
        "Nobody 2020, arXiv:2001.00001, Table 1.",
        "ᵃ A different encoder than the paper's, with numbers of layers in proportion: Tiny.",
        "ᵇ A different split than the paper's: R&D_50%.",
        "Reproduced with 6 seeds; published with 5.",
        "Full: taken over.",
        "Not reproduced, its weights are gone: Lost.",
        "Not reproduced: Table 9 (a probe).",
    ):
        assert said in notes, said
    plain = [{"label": "Full", "cells": [{"printed": 90.0, "at": at("full"), "marks": []}]}]
    assert "Encoders, splits and numbers of rows are the paper's." in drawn(made, rows=plain).notes
    results, runs = made
    chosen_on_it = drawn((results, runs.assign(protocol="paper")), rows=plain).notes
    assert "Selected and reported on the same split: R&D_50%." in chosen_on_it


def test_the_least_k_and_the_papers_rule(made):
    cell = {"printed": 1, "at": at("top_k"), "sweep": {"k01": 1, "k02": 2}, "full": "full", "marks": []}
    rows = [{"label": "90 %", "least": 0.9, "cells": [cell, {"printed": 2}]}]
    columns = [{"label": "Odd", "scale": "number", "over": None}, {"label": "most", "scale": "number", "over": "most"}]
    table = drawn(made, rows=rows, columns=columns, aggregation="lee2019")
    cells = {row.name: [cell.text for cell in row.cells] for row in table.groups[0].rows}
    assert cells["published"] == ["1", "2"] and cells["reproduced"] == ["2", "2"]
    assert next(row for row in table.groups[0].rows if row.name == "reproduced").cells[0].interval == "[2, 2]"
    assert cells["reproduced, by the paper's rule"] == ["2", "2"] and cells["difference"] == ["1", "0"]
    assert any(note.startswith("The paper's rule") for note in table.notes)


def test_no_least_k_is_given_where_the_full_model_is_at_chance(made):
    results, runs = made
    cell = {"printed": 1, "at": at("top_k"), "sweep": {"k01": 1, "k02": 2}, "full": "full", "marks": []}
    rows = [{"label": "90 %", "least": 0.9, "cells": [cell]}]
    for chance, given in ((0.5, True), (0.9, False)):
        baseline = runs[:1].assign(kind="baseline", strategy="majority", value=chance)
        table = drawn((results, pandas.concat([runs, baseline], ignore_index=True)), rows=rows)
        told = any(note.startswith("No k where the full model is not clearly") for note in table.notes)
        assert (("90 %", "reproduced") in lines_of(table)) == given != told


def test_error_rates_and_fractions_are_printed_as_the_paper_does(made):
    rows = [{"label": "Full", "cells": [{"printed": 9.0, "at": at("full"), "marks": []}] * 2}]
    columns = [{"label": scale, "scale": scale, "over": None} for scale in ("error", "fraction")]
    drawn_rows = drawn(made, rows=rows, columns=columns).groups[0].rows
    (reproduced,) = (row.cells for row in drawn_rows if row.name == "reproduced")
    rate = made[1].query("strategy == 'full'")["value"].mean()
    assert reproduced[0].text == f"{100 - 100 * rate:.1f}" and reproduced[0].low < 100 - 100 * rate
    assert reproduced[1].text == f"{rate:.3f}" and reproduced[1].interval.startswith("[0.8")


def test_a_run_whose_predictions_are_gone_is_an_error(made):
    predictions = PredictionFiles(made[0])
    write_json(made[0] / "runs/bare/metrics.json", {"spec": {"task": scored_runs.TASK}})
    with pytest.raises(UserError, match="predictions.parquet is missing; delete .*metrics.json"):
        predictions.scorer("runs/bare", "accuracy", "test")


def test_the_plan_finds_our_address_of_each_number_and_what_differs(home, shared_data):
    plan = planned(home, "peters2019", shared_data)
    spec = plan.job("table", "peters2019/peters2019_table_2").spec["beside"]
    rows = {row["label"]: row for row in spec["rows"]}
    bert = rows["BERT-base, fine-tuned"]["cells"]
    assert bert[0]["at"][:5] == ["conll2003", "bert_base_cased", "peters_tuned", "peters_tuned", "base"]
    unknown = ["unknown_split"]  # GLUE's hidden test sets, or whatever else the paper scored
    carved = ["rows"]  # from train, for a validation split
    assert [cell["marks"] for cell in bert] == [[], [], ["split", *carved], [], [], [*unknown, *carved], unknown]
    missing = "its encoder needs weights that are not here"
    assert {cell["reason"] for cell in rows["ELMo, features"]["cells"]} == {missing}
    assert rows["BERT-base, difference"]["minus"] == [5, 4]
    small = {"encoders": ["minilm"], "tasks": ["sst2_paper"], "outputs": ["lee2019_sweep_bert_base"], "baselines": []}
    small |= {"strategies": ["lee_full", {"lee_top_k_dropout": [3, 6]}], "subsets": ["n500_s300"]}
    spec = planned(home, "lee2019", shared_data, **small).job("table", "lee2019/lee2019_sweep_bert_base").spec["beside"]
    half = next(row for row in spec["rows"] if row["label"] == "last 6")
    assert half["cells"][1]["at"][1] == "minilm" and half["cells"][1]["marks"] == ["encoder", "rows"]
    assert half["cells"][4]["reason"] == "its task is left out here"
    spec = planned(home, "lee2019", shared_data).job("table", "lee2019/lee2019_sweep_bert_base").spec["beside"]
    every = [cell["marks"] for row in spec["rows"] for cell in row["cells"]]
    assert len(every) == 72 and not any(every), "from the Hub: its rows, chosen and reported on its development sets"


def test_the_most_of_all_is_over_the_tasks_that_the_paper_has(made):
    cells = [{"printed": 1.0, "at": at("frozen"), "marks": []}, {"printed": None, "at": at("full"), "marks": []}]
    columns = [{"label": "A", "scale": "hundred", "over": None}, {"label": "B", "scale": "hundred", "over": None}]
    columns.append({"label": "most", "scale": "hundred", "over": "most"})
    row = {"label": "90 %", "cells": [*cells, {"printed": 1.0}]}
    every = {"label": "none is printed", "cells": [cell | {"printed": None} for cell in [*cells, {}]]}
    table = drawn(made, rows=[row, every], columns=columns)
    numbers = {(line["row"], line["column"]): line["ours"] for line in table.records()}
    assert numbers["90 %", "most"] == numbers["90 %", "A"] != numbers["90 %", "B"]
    assert numbers["none is printed", "most"] == numbers["none is printed", "B"]


@pytest.mark.parametrize(
    "mark, said",
    {"unknown_split": "ᶜ It is not known whether the split", "rows": "ᵈ Fewer rows to train on or to score"}.items(),
)
def test_rows_and_splits_are_the_papers_only_where_that_is_known(made, mark, said):
    cell = {"printed": 1.0, "at": at("frozen"), "marks": [mark]}
    table = drawn(made, rows=[{"label": "A", "cells": [cell]}])
    assert [note for note in table.notes if note.startswith(said)] and said[0] in table_formats.to_markdown(table)
    assert "numbers of rows are the paper's" not in "".join(table.notes)


def test_numbers_that_are_no_scores_are_reproduced_too(made, tmp_path):
    """Parameters against the full model, and layers and score of a merge."""
    results, runs = made
    runs = runs.assign(trained_parameters=runs["strategy"].map({"frozen": 5.0, "top_k": 20.0, "full": 200.0}))
    full = {"encoder": "tiny", "against": "full"}
    of_merge = {"encoder": "tiny", "merge": "one"}
    asked = [full | {"quantity": "trained", "strategy": "frozen"}]
    asked += [full | {"quantity": "stored", "models": 9, "strategy": name} for name in ("frozen", "full")]
    asked += [of_merge | {"quantity": name} for name in ("shared", "own", "executed", "test")]
    asked += [of_merge | {"quantity": name, "task": "even"} for name in ("shared", "own", "test")]
    cells = [{"printed": 1.0, "quantity": one, "marks": ["encoder"]} for one in asked]
    columns = [{"label": str(number), "scale": "hundred", "over": None} for number in range(len(cells))]
    tasks = {"odd": {"frozen": 4, "own": 1, "test": 80.0}, "even": {"frozen": 2, "own": 3, "test": 70.0}}
    record = tmp_path / "merges/all/tiny/one/merge.json"
    write_json(record, {"tasks": tasks, "layers": {"executed": 8, "of": 12}})
    spec = invented.shown("paper", "paper_table")
    spec |= {"beside": beside(columns=columns, rows=[{"label": "Ours", "cells": cells}])}
    table = reproduction.build(OutputData(tmp_path, runs, merges=[record]), spec)
    ours = [line["ours"] for line in table.records()]
    assert ours == pytest.approx([2.5, 1 + 9 * 0.025, 9, 4, 4, 200 / 3, 75, 2, 3, 70])
    assert all(cell.interval == "" for row in table.groups[0].rows for cell in row.cells)


def test_the_plan_finds_merges_and_strategies_behind_such_numbers(home, tmp_path):
    plan = planned(home, "wei2022_threshold", tmp_path)
    spec = plan.job("table", "wei2022_threshold/wei2022_branches").spec
    asked = [cell["quantity"] for row in spec["beside"]["rows"] for cell in row["cells"]]
    assert len(asked) == 8 and {one["merge"] for one in asked} == {"gain_1"} and asked[1]["quantity"] == "own"
    assert len(plan.status.drawn_merges("table", "wei2022_branches")) == 3
    plan = planned(home, "houlsby2019", tmp_path)
    rows = plan.job("table", "houlsby2019/houlsby2019_parameters").spec["beside"]["rows"]
    assert [cell["quantity"]["strategy"] for row in rows for cell in row["cells"]][::2] == [
        "houlsby_full",
        "houlsby_adapters",
        "houlsby_adapters_64",
    ]
    assert plan.status.drawn_merges("table", "houlsby2019_parameters") == []
