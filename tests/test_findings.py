"""Findings: claims are of things that exist, and what runs say of them is holds, fails, undecided or not testable."""

import csv
import io

import numpy as np
import pandas
import pytest

import invented
import scored_runs
from test_papers import planned
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import claims, writers
from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan
from thaw.schema.yaml_files import read_yaml
from thaw.statistics import verdicts
from thaw.statistics.bootstrap import resampled

HIGHER = {"above": 0.0}
SCORES = {"first": [80.0, 81, 80, 82, 81, 80, 81, 80], "second": [78.0, 78, 77, 79, 78, 78, 77, 78]}


def test_every_claim_is_about_what_the_catalogues_have(home, catalogue):
    chosen = [read_yaml(path).content for path in (home / "config/experiments").glob("*.yaml")]
    wanted = {item if isinstance(item, str) else next(iter(item)) for c in chosen for item in c.get("strategies", [])}
    claims = catalogue.ids("findings")
    assert len(claims) >= 15
    for name in claims:
        finding = catalogue.get("findings", name, "findings")
        for task in finding.tasks:
            entry = catalogue.get("tasks", task, name)
            assert finding.metrics.get(task, entry.metrics[0]) in entry.metrics
            for term in finding.contrast:
                catalogue.get("strategies", term.strategy, name)
                assert term.strategy in wanted, name
                assert term.head is None or catalogue.head(term.head, entry.type), (name, task)


def decided(contrasts: list[list[float]], margins: list[dict], by_rows: float = 0.0) -> list:
    """Return the verdicts on contrasts by seed; by_rows, the deviation of their means by the test rows."""
    drawn = by_rows * np.random.default_rng(0).standard_normal(1000)
    means = [resampled(np.array(values), np.add.outer(values, drawn), 500, paired=True) for values in contrasts]
    return verdicts.verdicts([dict(enumerate(values)) for values in contrasts], means, margins)


@pytest.mark.parametrize(
    "contrast, margin, answer",
    [
        ([2.0, 2.5, 1.5, 2, 2, 2.2, 1.8], HIGHER, "holds"),
        ([-2.0, -2.5, -1.5, -2, -2, -2.2, -1.8], HIGHER, "fails"),
        ([2.0, 2.5, 1.5, 2, 2, 2.2, 1.8], {"above": 3.0}, "fails"),
        ([2.0, -2.5, 1.5, -2, 2, -2.2, 1.8], HIGHER, "undecided"),
        ([2.0, 2.5, 1.5, 2, 2], HIGHER, "undecided"),
        ([0.2, -0.3, 0.1, 0.4, -0.2, 0.1, 0.0], {"within": 1.0}, "holds"),
        ([2.0, 2.5, 1.5, 2, 2, 2.2, 1.8], {"within": 1.0}, "fails"),
        ([0.8, 1.4, 0.6, 1.3, 0.9, 1.2, 0.7], {"within": 1.0}, "undecided"),
    ],
)
def test_the_answer_to_one_claim(contrast, margin, answer):
    (found,) = decided([contrast], [margin])
    assert found.answer == answer and found.seeds == len(contrast)
    assert found.needed is None or (answer == "undecided" and found.needed.seeds > 0)


def test_six_seeds_decide_however_many_claims_there_are():
    """With Holm, eight claims needed nine seeds: 2 / 2^6 x 8 is above 0.05, whatever the scores."""
    many = decided([[2.0, 2.5, 1.5, 2, 2, 2.2]] * 8, [HIGHER] * 8)
    assert {(v.answer, v.p) for v in many} == {("holds", 2 / 64)}


def test_many_seeds_decide_nothing_that_the_test_rows_leave_open():
    """500 seeds on one draw and one test set: 0.1 points are significant over seeds, and nothing over rows."""
    rng = np.random.default_rng(1)
    contrast = list(0.1 + 0.2 * rng.standard_normal(500))
    (alone,), (crossed,) = decided([contrast], [HIGHER]), decided([contrast], [HIGHER], by_rows=1.0)
    assert alone.answer == "holds" and alone.p <= 0.001
    assert crossed.p == alone.p and crossed.answer == "undecided" and crossed.needed.rows > 10_000


def test_seeds_that_are_lacking_are_counted_for_all_tests_of_the_table():
    """What is said to be lacking decides, if mean and deviation stay: with one seed more forty tests stay undecided."""
    rng = np.random.default_rng(3)

    def of_deviations(seeds: int) -> list:
        deviations = rng.standard_normal((40, seeds))
        deviations -= deviations.mean(1, keepdims=True)
        return decided(list(1.5 + 1.5 * deviations / deviations.std(1, ddof=1, keepdims=True)), [HIGHER] * 40)

    few = of_deviations(7)[0]
    assert few.answer == "undecided" and few.needed.rows is None
    assert of_deviations(8)[0].answer == "undecided", "for one test alone a seed more would do"
    assert {one.answer for one in of_deviations(7 + few.needed.seeds)} == {"holds"}


def test_draws_of_the_training_rows_are_seeds_only_where_that_is_asked_for(tmp_path):
    """Eight draws with a seed each: apart they decide nothing, together they are eight seeds."""
    names = [f"n100_d{draw}" for draw in range(1, 9)]
    parts = [
        scored_runs.write_scores(tmp_path, {"first": [first], "second": [second]}, name)
        for name, first, second in zip(names, SCORES["first"], SCORES["second"], strict=True)
    ]
    runs, found = pandas.concat(parts, ignore_index=True), {}
    spec = invented.shown("f", "finding_table") | {"findings": [entry()]}
    for how, first in (("apart", {}), ("together", dict.fromkeys(names, names[0]))):
        table = claims.build(OutputData(tmp_path, runs, first=first), spec)
        lines = [dict(zip(table.header, line, strict=True)) for line in table.lines]
        found[how] = [(line["subset"], line["seeds"], line["answer"]) for line in lines]
    assert found["apart"] == [(name, 1, "undecided") for name in names]
    assert found["together"] == [(names[0], 8, "holds")]
    both = [f"odd.run.{names[0]}.tiny.linear.{strategy}.base" for strategy in ("first", "second")]
    assert [anchor for _, anchor in table.groups[0].rows[0].cells[-1].runs] == both
    assert f'<a href="../examples.html#{both[0]}">' in writers.to_html(table)


def test_the_answer_over_tasks():
    assert verdicts.overall(["holds", "holds"]) == "holds" and verdicts.overall(["holds", "fails"]) == "fails"
    assert verdicts.overall(["holds", "undecided"]) == "undecided"


def entry(times: float = -1.0, **changes) -> dict:
    terms = [[1.0, "linear", "first", "base"], [times, "linear", "second", "base"]]
    tests = [{"task": "odd", "metric": "accuracy", "split": "test", "terms": terms}]
    return {
        "id": "one",
        "encoder": "tiny",
        "claim": "First wins.",
        "paper": "Nobody 2020",
        "above": 0,
        "tests": tests,
    } | changes


def test_a_table_of_findings_says_what_holds_and_by_how_much(tmp_path):
    bare = {key: value for key, value in entry(id="two", claim="Deep wins.", reason="it needs 12 layers").items()}
    bare.pop("tests")
    share = entry(times=-0.99, id="three", claim="A share.")
    spec = invented.shown("findings", "finding_table") | {"findings": [entry(), bare, share]}
    table = claims.build(OutputData(tmp_path, scored_runs.write_scores(tmp_path, SCORES)), spec)
    cells = {row.name: [cell.text for cell in row.cells] for row in table.groups[0].rows}
    assert cells["First wins."][:2] == ["Nobody 2020", "holds"]
    assert cells["First wins."][2].startswith("R&D_50%: holds (2.8 [")
    assert cells["Deep wins."] == ["Nobody 2020", "not testable", "it needs 12 layers"]
    header, *lines = csv.reader(io.StringIO(writers.to_csv(table)))
    assert [line[header.index("answer")] for line in lines] == ["holds", "not testable", "holds"]
    mean = sum(a - 0.99 * b for a, b in zip(*SCORES.values(), strict=True)) / 8
    assert float(lines[2][header.index("contrast")]) == pytest.approx(mean, abs=1e-3)
    page = writers.to_html(table)
    assert r"R\&D" in writers.to_tex(table) and "not testable" in page
    assert page.count("<div>R&amp;D_50%: holds (") == 2, "each task has a line of its own"


@pytest.mark.parametrize(("by_task", "columns"), [("test", ["R&D_50%"]), ("reserved", [])])
def test_claims_by_tasks_have_a_column_for_each_task_on_the_splits_that_are_asked_for(by_task, columns, tmp_path):
    bare = {key: value for key, value in entry(id="two", claim="Deep wins.").items() if key != "tests"}
    spec = invented.shown("findings", "finding_table") | {"findings": [entry(), bare], "by_task": by_task}
    table = claims.build(OutputData(tmp_path, scored_runs.write_scores(tmp_path, SCORES)), spec)
    assert [column.label for column in table.columns] == ["Paper", "Answer", *columns]
    first, second = ([cell.text for cell in row.cells] for row in table.groups[0].rows)
    assert first[:2] == ["Nobody 2020", "holds"] and second[:2] == ["Nobody 2020", "not testable"]
    if columns:
        mean = sum(a - b for a, b in zip(*SCORES.values(), strict=True)) / 8
        assert first[2].startswith(f"holds {mean:.1f} [") and second[2] == ""
    (line, _) = (dict(zip(table.header, line, strict=True)) for line in table.lines)
    assert (line["split"] == "test") == bool(columns), "the CSV has the splits that the table shows"


def test_claims_by_tasks_have_the_tasks_in_the_order_of_the_experiment(tmp_path):
    runs = scored_runs.write_scores(tmp_path, SCORES)
    spec = invented.shown("f", "finding_table") | {"by_task": "test"}
    spec["findings"] = [entry() | {"tests": [test | {"task": t} for test in entry()["tests"] for t in ("odd", "late")]}]
    spec["order"] = spec["order"] | {"tasks": ["late", "odd"]}
    table = claims.build(OutputData(tmp_path, pandas.concat([runs, runs.assign(task="late")])), spec)
    assert [column.label for column in table.columns][2:] == ["late", "R&D_50%"]


def test_seeds_that_lack_a_score_are_left_out(tmp_path):
    runs = scored_runs.write_scores(tmp_path, SCORES | {"second": SCORES["second"][:3]})
    table = claims.build(OutputData(tmp_path, runs), invented.shown("f", "finding_table") | {"findings": [entry()]})
    (line,) = (dict(zip(table.header, line, strict=True)) for line in table.lines)
    assert "undecided" in table.groups[0].rows[0].cells[1].text and line["seeds"] == 3


def test_a_claim_that_cannot_be_tested_everywhere_says_on_how_many(tmp_path):
    """`late` lacks the second strategy, and no subset has `reserved` rows: of that split nothing is said."""
    runs = scored_runs.write_scores(tmp_path, SCORES)
    late = runs[runs["strategy"] == "first"].assign(task="late")
    places = [("odd", "test"), ("late", "test"), ("odd", "reserved")]
    tests = [test | {"task": task, "split": split} for test in entry()["tests"] for task, split in places]
    spec = invented.shown("f", "finding_table") | {"findings": [entry() | {"tests": tests}]}
    table = claims.build(OutputData(tmp_path, pandas.concat([runs, late], ignore_index=True)), spec)
    _, answer, detail = (cell.text for cell in table.groups[0].rows[0].cells)
    assert answer == "holds, tested on 1 of 2" and "late: not testable, no seed has all scores;" in detail
    assert any("on which it can be tested" in note for note in table.notes)


def test_a_subset_is_no_seed_and_a_missing_run_pairs_no_two_sizes(tmp_path):
    """Two sizes differ by 10 points and no strategy from the other: every contrast is 0, and none has six seeds."""
    small, large = {"first": [70.0] * 3, "second": [70.0] * 3}, {"first": [80.0] * 3, "second": [80.0] * 2}
    parts = [scored_runs.write_scores(tmp_path, scores, name) for name, scores in (("n100", small), ("n1000", large))]
    runs = pandas.concat(parts, ignore_index=True)
    table = claims.build(OutputData(tmp_path, runs), invented.shown("f", "finding_table") | {"findings": [entry()]})
    lines = [dict(zip(table.header, line, strict=True)) for line in table.lines]
    assert [(line["subset"], line["seeds"], line["contrast"]) for line in lines] == [
        ("n100", 3, "0.0000"),
        ("n1000", 2, "0.0000"),
    ]
    assert table.groups[0].rows[0].cells[2].text.count("undecided") == 2


def test_the_plan_says_how_many_seeds_a_table_of_findings_needs(home, shared_data):
    """Six, however many claims there are: with Holm, 24 of them needed ten."""
    comparisons, few = (one for one in planned(home, "wei2022", shared_data).seeds_of_tables() if not one.marks)
    assert (few.output, few.needed, few.planned, few.enough) == ("findings", 6, 3, False) and not comparisons.enough
    assert few.sentence.startswith("Warning: Table findings, ") and "nothing in it will be decided" in few.sentence
    whole = planned(home, "lee2019", shared_data).seeds_of_tables()
    assert [(one.needed, one.planned, one.enough) for one in whole if one.output == "findings"] == [(6, 10, True)]
    demo = load_plan(read_config([str(home / "tests/base.yaml")], {}), home).seeds_of_tables()
    assert [(one.output, one.needed, one.planned) for one in demo if not one.marks] == [("advice", 3, 2)]


def test_the_plan_says_which_number_of_seeds_is_for_what(home):
    """Three seeds are enough for a recommendation, which reads intervals, and not for the marks of tables of scores."""

    def said(seeds) -> list[tuple[str, bool]]:
        more = {"seeds": seeds, "outputs": ["main_table", "advice"]}
        tables = load_plan(read_config([str(home / "tests/base.yaml")], more), home).seeds_of_tables()
        return [(table.sentence, table.warns) for table in tables]

    marks = (
        "Table main_table shows scores with any number of seeds; which strategies are below the highest it says by a"
    )
    advice = "Table advice can decide with 3 seeds or more, by intervals; {} planned."
    assert said([1, 2, 3]) == [
        (f"{marks} test over seeds, with 6 or more; 3 planned.", False),
        (advice.format(3), False),
    ]
    assert said([1, 2, 3, 4, 5, 6]) == [(advice.format(6), False)]


def test_the_plan_finds_runs_for_claims_and_says_which_encoder_cannot_answer(home, shared_data):
    whole = planned(home, "ulmfit", shared_data).job("table", "ulmfit/findings").spec["findings"]
    assert [e["id"] for e in whole] == ["all_three_schedules_help", "rates_by_layer_help", "last_layer_alone_is_worst"]
    assert [test["task"] for test in whole[0]["tests"]] == ["imdb", "trec6", "ag_news"]
    assert whole[0]["tests"][0]["terms"][1] == [-1.0, "ulmfit", "ulmfit_full", "base"]
    scaled = planned(home, "wei2022", shared_data, overlay=True).job("table", "wei2022_scaled/findings").spec
    assert {e["reason"] for e in scaled["findings"]} == {"it needs 12 layers or more"}
    half = planned(home, "lee2019_roberta", shared_data).job("table", "lee2019_roberta/findings").spec["findings"]
    assert [(e["encoder"], e.get("reason")) for e in half] == [
        ("roberta_base", "it needs 24 layers or more"),
        ("roberta_large", None),
    ]
    assert half[1]["tests"][0]["terms"][0] == [1.0, "roberta", "lee_top_k_dropout_10", "k12"]
    large = planned(home, "wei2022", shared_data).job("table", "wei2022/findings").spec["findings"]
    assert large[0]["tests"][0]["terms"][0] == [1.0, "linear_pooler", "wei_top_k_dropout", "k05"]


@pytest.mark.parametrize(("sizes", "needed"), [((100, 300, 1000, 3500), 8), ((100,), 6)])
def test_sizes_whose_draws_are_seeds_share_the_error_so_that_each_needs_more_of_them(home, sizes, needed):
    wanted = {"subsets": [f"n{rows}_r{draw}" for rows in sizes for draw in range(1, 7)]}
    wanted |= {"outputs": ["draws_full"], "tasks": ["trec6"], "sources": ["hub"]}
    config = read_config([str(home / "config/experiments/grid_sizes.yaml")], wanted)
    (table,) = load_plan(config, home).seeds_of_tables()
    assert (table.output, table.needed, table.planned, table.enough) == ("draws_full", needed, 6, needed == 6)
    more = load_plan(config | {"seeds": [1, 2]}, home).seeds_of_tables()[0]
    assert more.planned == 12 and "12 planned. The 2 seeds of each draw share its training rows" in more.sentence
