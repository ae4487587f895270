"""Findings: claims are of things that exist, and what runs say of them is higher, lower, within or open."""

import csv
import io

import pandas
import pytest

import invented
import scored_runs
from test_papers import planned
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats
from thaw.outputs.tables import claims
from thaw.schema.yaml_files import read_yaml

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


def answers_of(folder, contrast: list[float], margin: dict) -> tuple[str, str]:
    """Return the answer to a claim of two strategies that differ by so much with each seed, and its count."""
    runs = scored_runs.write_scores(
        folder, {"first": [80.0 + value for value in contrast], "second": [80.0] * len(contrast)}
    )
    claim = {key: value for key, value in entry().items() if key != "above"} | margin
    table = claims.build(OutputData(folder, runs), invented.shown("f", "finding_table") | {"findings": [claim]})
    (line,) = table.records()
    return line["answer"], table.groups[0].rows[0].cells[1].text


@pytest.mark.parametrize(
    "contrast, margin, answer",
    [
        ([7.0, 8, 7, 8, 7, 8], {"above": 0.0}, "higher"),
        ([7.0, 8, 7, 8, 7, 8], {"above": 15.0}, "lower"),
        ([7.0, 8, 7, 8, 7, 8], {"above": 6.0}, "open"),
        ([0.0] * 6, {"within": 2.0}, "within"),
        ([-7.0, -8, -7, -8, -7, -8], {"within": 1.0}, "lower"),
    ],
)
def test_the_answer_to_one_claim(tmp_path, contrast, margin, answer):
    assert answers_of(tmp_path, contrast, margin) == (answer, f"1 {answer}")


def test_answers_are_counted():
    assert claims.count(["open", "higher", "higher", "", "lower"]) == "2 higher, 1 lower, 1 open"
    assert claims.count(["within", "open"]) == "1 within, 1 open" and claims.count([""]) == ""


def test_draws_of_the_training_rows_are_seeds_only_where_that_is_asked_for(tmp_path):
    """Eight draws with a seed each: apart each has an interval of rows alone, together they are eight seeds."""
    names = [f"n100_d{draw}" for draw in range(1, 9)]
    parts = [
        scored_runs.write_scores(tmp_path, {"first": [first], "second": [second]}, name)
        for name, first, second in zip(names, SCORES["first"], SCORES["second"], strict=True)
    ]
    runs, found = pandas.concat(parts, ignore_index=True), {}
    spec = invented.shown("f", "finding_table") | {"findings": [entry()]}
    for how, first in (("apart", {}), ("together", dict.fromkeys(names, names[0]))):
        table = claims.build(OutputData(tmp_path, runs, first=first), spec)
        lines = table.records()
        found[how] = [(line["subset"], line["seeds"], line["answer"]) for line in lines]
    assert [line[:2] for line in found["apart"]] == [(name, 1) for name in names]
    assert found["together"] == [(names[0], 8, "higher")]
    both = [f"odd.run.{names[0]}.tiny.linear.{strategy}.base" for strategy in ("first", "second")]
    assert [anchor for _, anchor in table.groups[0].rows[0].cells[-1].behind] == both
    assert f'<a href="../runs.html#{both[0]}">' in table_formats.to_html(table)


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


def test_a_table_of_findings_says_what_came_out_and_by_how_much(tmp_path):
    bare = entry(id="two", claim="Deep wins.", reason="it needs 12 layers")
    bare.pop("tests")
    share = entry(times=-0.99, id="three", claim="A share.")
    spec = invented.shown("findings", "finding_table") | {"findings": [entry(), bare, share]}
    table = claims.build(OutputData(tmp_path, scored_runs.write_scores(tmp_path, SCORES)), spec)
    cells = {row.name: [cell.text for cell in row.cells] for row in table.groups[0].rows}
    assert cells["First wins."][:2] == ["Nobody 2020", "1 higher"]
    assert cells["First wins."][2].startswith("R&D_50%: higher 2.8 [")
    assert cells["Deep wins."] == ["Nobody 2020", "–", "it needs 12 layers"]
    first, second, third = csv.DictReader(io.StringIO(table_formats.to_csv(table)))
    assert [line["answer"] for line in (first, second, third)] == ["higher", "", "higher"]
    mean = sum(a - 0.99 * b for a, b in zip(*SCORES.values(), strict=True)) / 8
    assert float(third["value"]) == pytest.approx(mean, abs=1e-3) and 0 < float(third["low"]) < mean
    assert (first["seeds"], first["margin"], second["reason"]) == ("8", "above 0", "it needs 12 layers")
    page = table_formats.to_html(table)
    assert r"R\&D" in table_formats.to_tex(table)
    assert page.count("<div>R&amp;D_50%: higher ") == 2, "each task has a line of its own"


@pytest.mark.parametrize(("by_task", "columns"), [("test", ["R&D_50%"]), ("reserved", [])])
def test_claims_by_tasks_have_a_column_for_each_task_on_the_splits_that_are_asked_for(by_task, columns, tmp_path):
    bare = {key: value for key, value in entry(id="two", claim="Deep wins.").items() if key != "tests"}
    spec = invented.shown("findings", "finding_table") | {"findings": [entry(), bare], "by_task": by_task}
    table = claims.build(OutputData(tmp_path, scored_runs.write_scores(tmp_path, SCORES)), spec)
    assert [column.label for column in table.columns] == ["Paper", "Answer", *columns]
    first, second = ([cell.text for cell in row.cells] for row in table.groups[0].rows)
    assert first[:2] == ["Nobody 2020", "1 higher"] and second[:2] == ["Nobody 2020", "–"]
    if columns:
        mean = sum(a - b for a, b in zip(*SCORES.values(), strict=True)) / 8
        assert first[2].startswith(f"higher {mean:.1f} [") and second[2] == ""
    line, _ = table.records()
    assert (line["split"] == "test") == bool(columns), "the CSV has the splits that the table shows"


def test_claims_by_tasks_have_the_tasks_in_the_order_of_the_experiment(tmp_path):
    runs = scored_runs.write_scores(tmp_path, SCORES)
    spec = invented.shown("f", "finding_table") | {"by_task": "test"}
    spec["findings"] = [entry() | {"tests": [test | {"task": t} for test in entry()["tests"] for t in ("odd", "late")]}]
    spec["order"] = spec["order"] | {"tasks": ["late", "odd"]}
    table = claims.build(OutputData(tmp_path, pandas.concat([runs, runs.assign(task="late")])), spec)
    assert [column.label for column in table.columns][2:] == ["late", "R&D_50%"]


def test_a_claim_that_has_no_scores_somewhere_says_where(tmp_path):
    """`late` lacks the second strategy, and no subset has `reserved` rows: of that split nothing is said."""
    runs = scored_runs.write_scores(tmp_path, SCORES)
    late = runs[runs["strategy"] == "first"].assign(task="late")
    places = [("odd", "test"), ("late", "test"), ("odd", "reserved")]
    tests = [test | {"task": task, "split": split} for test in entry()["tests"] for task, split in places]
    spec = invented.shown("f", "finding_table") | {"findings": [entry() | {"tests": tests}]}
    table = claims.build(OutputData(tmp_path, pandas.concat([runs, late], ignore_index=True)), spec)
    _, answer, detail = (cell.text for cell in table.groups[0].rows[0].cells)
    assert answer == "1 higher" and detail.endswith("late: no seed has all scores")


def test_a_subset_is_no_seed_and_a_missing_run_pairs_no_two_sizes(tmp_path):
    """Two sizes differ by 10 points and no strategy from the other: every contrast is 0."""
    small, large = {"first": [70.0] * 3, "second": [70.0] * 3}, {"first": [80.0] * 3, "second": [80.0] * 2}
    parts = [scored_runs.write_scores(tmp_path, scores, name) for name, scores in (("n100", small), ("n1000", large))]
    runs = pandas.concat(parts, ignore_index=True)
    table = claims.build(OutputData(tmp_path, runs), invented.shown("f", "finding_table") | {"findings": [entry()]})
    lines = table.records()
    assert [(line["subset"], line["seeds"], line["value"]) for line in lines] == [
        ("n100", 3, 0.0),
        ("n1000", 2, 0.0),
    ]
    assert table.groups[0].rows[0].cells[1].text == "2 open"
    assert any(note.startswith("With fewer than 3 seeds") for note in table.notes)


@pytest.mark.parametrize("count, flags", [(8, "undertrained"), (4, "undertrained"), (3, "")])
def test_an_undertrained_strategy_is_a_flag_beside_the_answer(tmp_path, count, flags):
    runs = scored_runs.write_scores(tmp_path, SCORES)
    runs.loc[(runs["strategy"] == "second") & (runs["seed"] <= count), "flags"] = "validation_flat;underfit"
    table = claims.build(OutputData(tmp_path, runs), invented.shown("f", "finding_table") | {"findings": [entry()]})
    (line,) = table.records()
    assert (line["answer"], line["flags"], table.groups[0].rows[0].cells[1].text) == ("higher", flags, "1 higher")
    assert table.groups[0].rows[0].cells[2].text.endswith("], undertrained" if flags else "]")
    assert any(note.startswith("Undertrained:") for note in table.notes) == bool(flags)


TASKS = {"a": 9.0, "b": 6.0, "c": 5.0, "d": 2.0, "e": 1.0, "f": -8.0}


def test_the_plan_finds_runs_for_claims_and_says_which_encoder_cannot_answer(home, shared_data):
    whole = planned(home, "ulmfit", shared_data).job("table", "ulmfit/findings").spec["findings"]
    assert [e["id"] for e in whole] == ["all_three_schedules_help", "rates_by_layer_help", "last_layer_alone_is_worst"]
    assert [test["task"] for test in whole[0]["tests"]] == ["imdb", "trec6", "ag_news"]
    assert whole[0]["tests"][0]["terms"][1] == [-1.0, "ulmfit", "ulmfit_full", "base"]
    half = planned(home, "lee2019_roberta", shared_data).job("table", "lee2019_roberta/findings").spec["findings"]
    assert [(e["encoder"], e.get("reason")) for e in half] == [
        ("roberta_base", "it needs 24 layers or more"),
        ("roberta_large", None),
    ]
    assert half[1]["tests"][0]["terms"][0] == [1.0, "roberta", "lee_top_k_dropout_10", "k12"]
    large = planned(home, "wei2022", shared_data).job("table", "wei2022/findings").spec["findings"]
    assert large[0]["tests"][0]["terms"][0] == [1.0, "linear_pooler", "wei_top_k_dropout", "k05"]
