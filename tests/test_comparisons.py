"""Strategies against one, and frozen against fine-tuned: differences, effect sizes, tests and the rule, by hand."""

import csv
import io

import pandas
import pytest

import invented
import scored_runs
from thaw.core.errors import UserError
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import guidelines, pairwise_tests, scores, writers
from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan
from thaw.statistics.bootstrap import Interval

RATES = {("frozen", "base"): 0.60, ("top_k", "k01"): 0.90, ("full", "base"): 0.90}


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Return a results folder of three strategies with two heads on 200 rows, and its rows, on test and validation."""
    results, parts = tmp_path_factory.mktemp("results"), []
    for head, size, rates in (("linear", 10.0, RATES), ("wide", 99.0, {("frozen", "base"): 0.75})):
        parts.append(scored_runs.write(results, rates, head=head).assign(trained_parameters=size))
    tested = pandas.concat(parts, ignore_index=True).assign(main=True, role="test", optimizer="adamw", synthetic=False)
    for name in ("extraction_seconds", "extraction_whole_seconds", "train_seconds", "after_seconds", "flops"):
        tested[name] = 0.0
    tested = tested.assign(after_flops=0.0, peak_memory_mb=0.0, embeddings=tested["strategy"] == "full")
    tested["thawed"] = (tested["strategy"] == "top_k").astype(int)
    return results, pandas.concat([tested, tested.assign(role="validation", split="validation")], ignore_index=True)


def lines_of(table) -> list[dict]:
    return list(csv.DictReader(io.StringIO(writers.to_csv(table))))


def test_every_strategy_against_the_full_model(scored):
    results, frame = scored
    spec = invented.shown("c", "comparison_table", reference="full")
    table = pairwise_tests.build(OutputData(results, frame[frame["head"] == "linear"]), spec)
    found = {(line["strategy"], line["variant"]): line for line in lines_of(table)}
    assert set(found) == {("frozen", "base"), ("top_k", "k01")}
    scores = frame[(frame["role"] == "test") & (frame["head"] == "linear")].pivot(
        index="seed", columns="strategy", values="value"
    )
    apart = 100 * (scores["frozen"] - scores["full"])
    line = found["frozen", "base"]
    assert float(line["difference"]) == pytest.approx(apart.mean(), abs=1e-3)
    corrected = (1 - 3 / (4 * 5 - 1)) * apart.mean() / apart.std(ddof=1)
    assert float(line["effect"]) == pytest.approx(corrected, abs=1e-3)
    assert float(line["p"]) == pytest.approx(2 / 64, abs=1e-4), "all six seeds have one sign"
    assert float(line["p_adjusted"]) == pytest.approx(2 / 64, abs=1e-4) and line["answer"] == "lower"
    assert float(line["low"]) < apart.mean() < float(line["high"]) < 0
    assert "p 0.031" in table.groups[0].rows[0].cells[0].text and table.groups[0].rows[0].cells[0].best


def test_with_five_seeds_nothing_is_lower_and_with_two_the_interval_is_of_the_rows(scored):
    results, frame = scored
    spec, pair = invented.shown("c", "comparison_table", reference="full"), frame[frame["strategy"] != "top_k"]
    pair = pair[pair["head"] == "linear"]
    table = pairwise_tests.build(OutputData(results, pair), spec)
    assert lines_of(table)[0]["answer"] == "lower" and table.groups[0].rows[0].cells[0].best
    few = pairwise_tests.build(OutputData(results, pair[pair["seed"] < 6]), spec)
    assert lines_of(few)[0]["answer"] == "too few seeds" and ", p " not in few.groups[0].rows[0].cells[0].text
    assert "With fewer than 6 seeds" in few.notes[-1]
    two = pairwise_tests.build(OutputData(results, pair[pair["seed"] < 3]), spec)
    assert "of the test rows alone" in two.notes[-1]
    with pytest.raises(UserError, match="needs runs of full and of another strategy"):
        pairwise_tests.build(OutputData(results, frame[frame["strategy"] == "full"]), spec)


@pytest.mark.parametrize("weak, marked", [("frozen", {"frozen"}), ("full", {"frozen", "top_k"})])
@pytest.mark.parametrize("runs", [2, 3])
def test_a_comparison_is_not_testable_where_half_of_the_runs_are_underfit(scored, weak, marked, runs):
    results, frame = scored
    spec, own = invented.shown("c", "comparison_table", reference="full"), frame[frame["head"] == "linear"].copy()
    own.loc[(own["strategy"] == weak) & (own["seed"] <= runs), "flags"] = "one_class;underfit"
    table = pairwise_tests.build(OutputData(results, own), spec)
    due = marked if runs == 3 else set()
    assert {line["strategy"] for line in lines_of(table) if line["answer"] == "not testable"} == due
    cells = dict(zip(("frozen", "top_k"), (row.cells[0] for row in table.groups[0].rows), strict=True))
    assert {name for name, cell in cells.items() if cell.text.endswith("†")} == due
    assert cells["frozen"].best == ("frozen" not in due)
    assert [note.startswith("† Not testable") for note in table.notes].count(True) == bool(due)


def test_sets_of_other_seeds_are_said_to_share_the_error(scored):
    results, frame = scored
    spec, own = invented.shown("c", "comparison_table", reference="full"), frame[frame["head"] == "linear"]
    few = own[(own["strategy"] != "top_k") | (own["seed"] < 6)]
    said = ["Holm" in " ".join(pairwise_tests.build(OutputData(results, one), spec).notes) for one in (own, few)]
    assert said == [False, True]


@pytest.mark.parametrize(
    "low, high, due",
    [
        (-0.5, 0.5, "either"),
        (0.2, 0.9, "either"),
        (0.2, 3.0, "fine-tuned"),
        (-3.0, -0.2, "frozen"),
        (-3.0, 0.5, "undecided"),
    ],
)
def test_the_rule_of_guidelines(low, high, due):
    ci = Interval((low + high) / 2, low, high)
    assert guidelines.answer(ci, 6, 1.0, guidelines.SIDES["adaptation"]) == due


def test_two_seeds_name_no_side():
    ci = Interval(2.5, 2.0, 3.0)
    sides = guidelines.SIDES["adaptation"]
    assert [guidelines.answer(ci, seeds, 1.0, sides) for seeds in (2, 3)] == ["undecided", "fine-tuned"]


def test_the_word_of_a_guideline_is_of_the_interval_that_is_printed(tmp_path, scored):
    """Runs that are equal row by row: on 200 rows, rows that were not seen leave a difference of 1.8 points open."""
    frame = scored_runs.write_scores(tmp_path, {"frozen": [80.0] * 3, "full": [80.0] * 3})
    frame = frame.assign(main=True, role="test", optimizer="adamw", synthetic=False, trained_parameters=1.0)
    for name in ("extraction_seconds", "extraction_whole_seconds", "train_seconds", "after_seconds", "flops"):
        frame[name] = 0.0
    frame = frame.assign(after_flops=0.0, peak_memory_mb=0.0, thawed=0, embeddings=frame["strategy"] == "full")
    frame = pandas.concat([frame, frame.assign(role="validation", split="validation")], ignore_index=True)
    entries = [{"question": "adaptation", "types": [], "papers": {}}]
    spec = invented.shown("g", "guideline_table", types={"odd": "classification"}, guidelines=entries)
    for margin, due in ((1.0, "undecided"), (2.0, "either")):
        table = guidelines.build(OutputData(tmp_path, frame), spec | {"margin": margin})
        cells = [cell.text for cell in table.groups[0].rows[0].cells]
        assert cells[0] == due and cells[1] == "0.0 [−1.8, 1.8]" and f"{due} (0.0 [−1.8, 1.8])" in cells[2]
        assert {(line["low"], line["high"], line["answer"]) for line in lines_of(table)} == {("-1.8275", "1.8275", due)}


def test_guidelines_take_the_best_of_each_side(scored):
    results, frame = scored
    entries = [
        {"question": q, "types": t, "papers": {}} for q, t in (("adaptation", ["classification"]), ("features", []))
    ]
    entries[0]["papers"] = {"tiny": [{"paper": "One 2020", "answer": "either"}]}
    entries.append({"question": "tuning", "types": [], "papers": {}})
    spec = invented.shown("g", "guideline_table", margin=1.0, types={"odd": "classification"}, guidelines=entries)
    table = guidelines.build(OutputData(results, frame), spec)
    rows = {row.name: [cell.text for cell in row.cells] for row in table.groups[0].rows}
    adaptation, features = rows["Classification: frozen or fine-tuned"], rows["All tasks: head on the frozen encoder"]
    assert len(rows) == 2, "under fine-tuning there is one head alone"
    assert adaptation[0] == "fine-tuned" and adaptation[3] == "One 2020: either (differs)"
    assert features[0] == "large head" and features[3] == "–"
    behind = {row.name: [anchor for _, anchor in row.cells[2].runs] for row in table.groups[0].rows}
    assert len(behind["All tasks: head on the frozen encoder"]) == 2 and all(
        anchor.startswith("odd.run.") for anchors in behind.values() for anchor in anchors
    )
    line = lines_of(table)[0]
    assert line["second"] == "wide/frozen/base", "the frozen side stands with the head that validation prefers"


def test_the_plan_finds_who_is_about_which_encoder(home, tmp_path):
    more = {"data_dir": str(tmp_path), "tasks": ["mrpc", "sst2"]}
    plan = load_plan(read_config([str(home / "config/experiments/peters2019.yaml")], more), home)
    spec = plan.job("table", "peters2019/peters2019_table_1").spec
    asked = {(entry["question"], tuple(entry["types"])): entry["papers"] for entry in spec["guidelines"]}
    about = asked["adaptation", ("pair_classification", "pair_regression")]
    assert about == {"bert_base_uncased": [{"paper": "Peters et al. 2019", "answer": "fine-tuned"}]}
    assert spec["types"] == {"mrpc": "pair_classification", "sst2": "classification"} and len(asked) == 4


def test_two_strategies_with_the_same_runs_are_both_marked_as_below(scored):
    """As convex fits with other seeds are: their differences are equal, arrays and all."""
    results, frame = scored
    frame = frame[(frame["head"] == "linear") & (frame["strategy"] != "full")].assign(truncated=0, flags="")
    copy = frame[frame["strategy"] == "frozen"].assign(strategy="copy")
    table = scores.build(OutputData(results, pandas.concat([frame, copy])), invented.shown("m", "strategy_table"))
    marks = {row.key["strategy"]: (row.cells[0].best, row.cells[0].mark) for row in table.groups[0].rows}
    assert marks == {"top_k": (True, ""), "frozen": (False, ""), "copy": (False, "")}
