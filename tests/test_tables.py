"""Tables: cells, rules, footnotes, and the four formats, on the invented results."""

import csv
import io
import re
from dataclasses import replace
from statistics import mean

import pandas
import pytest

import invented
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.outputs.frame import aggregate, output_data
from thaw.outputs.frame.aggregate import Column
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.runs_frame import read_runs
from thaw.outputs.render import table_formats
from thaw.outputs.render.typed_table import Group, Table, text_row
from thaw.outputs.tables import scores
from thaw.outputs.tables.footnotes import undefined_note
from thaw.words import wording


@pytest.fixture(scope="module")
def table(invented_frame):
    return scores.build(OutputData("", invented_frame), invented.shown("main", "strategy_table"))


def rows_of(table) -> dict:
    """Return {name: cells} of all rows."""
    inner = [row for group in table.groups for row in group.baselines + group.rows]
    return {row.name: row.cells for row in table.baselines + inner + table.ensembles}


def twice(frame):
    """Return a frame whose runs, and what is compared with them, stand in it for a second encoder too."""
    other = frame[frame["encoder"] != ""].assign(encoder="second")
    return pandas.concat([frame, other], ignore_index=True)


def without(frame, reason: str, **values):
    """Return a frame in which the results with these values are missing, as `collect` writes it."""
    gone = (frame[list(values)] == pandas.Series(values)).all(axis=1)
    frame = frame[~gone | frame["role"].isin(["validation", "test"])].copy()
    frame.loc[gone, ["value", "train_seconds", "total_seconds", "flops", "extraction_seconds"]] = float("nan")
    frame.loc[gone, "n"], frame.loc[gone, "flags"], frame.loc[gone, "missing"] = 0, "", reason
    return frame


def test_cells_are_the_means_and_deviations_of_the_runs(table, invented_results):
    for strategy, variant, *_ in invented.POINTS:
        name = wording.strategy_name(invented.LABELS, strategy, variant)
        for place, (task, entry) in enumerate(invented.TASKS.items()):
            folder = invented_results / f"runs/{task}/all/tiny/linear/{strategy}/{variant}"
            scores = [read_json(folder / f"seed{seed}/metrics.json")["scores"] for seed in invented.SEEDS]
            values = [score[entry.test[0]][entry.metrics[0]] * 100 for score in scores]
            cell = rows_of(table)[name][place]
            assert cell.value == pytest.approx(sum(values) / 2) and cell.runs == 2
            assert cell.sd is None, "two seeds say little of others"


def test_from_three_seeds_on_means_have_their_deviation(invented_frame):
    third = invented_frame[invented_frame["seed"] == 1]
    third = third.assign(seed=3, value=third["value"] + 0.02 * (third["strategy"] != "frozen"))
    spec = invented.shown("main", "strategy_table")
    table = scores.build(OutputData("", pandas.concat([invented_frame, third], ignore_index=True)), spec)
    cells = rows_of(table)
    assert cells["Full"][0].text == "82.0 ± 1.0" and cells["Full"][0].sd == pytest.approx(1.0)
    assert cells["Frozen"][0].sd is None, "one fit for all seeds"
    assert r"82.0} $\pm$ 1.0" in table_formats.to_tex(table) and "82.0 ± 1.0" in table_formats.to_html(table)
    assert "Mean ± standard deviation (n − 1) over 3 seeds." in table.notes[0]
    mixed = pandas.concat([invented_frame, third[third["strategy"] == "full"]], ignore_index=True)
    both = scores.build(OutputData("", mixed), spec)
    assert "over 2 to 3 seeds, from 3 on." in both.notes[0] and rows_of(both)["Top k (k = 1)"][0].sd is None


def test_draws_that_count_as_seeds_are_called_draws(invented_frame):
    frame = pandas.concat([invented_frame[invented_frame["seed"] == 1].assign(subset=f"d{n}") for n in (1, 2, 3)])
    first = dict.fromkeys(("d1", "d2", "d3"), "d1")
    spec = invented.shown("main", "strategy_table") | {"first_draws": first}
    table = scores.build(OutputData("", frame.reset_index(drop=True), first=first), spec)
    assert "standard deviation (n − 1) over 3 draws." in table.notes[0]
    assert output_data.unit(first, 6) == "run", "two seeds in each draw"


def test_the_best_is_bold_ties_too_and_no_baseline(table):
    assert {name for name, cells in rows_of(table).items() if cells[0] and cells[0].best} == {"Top k (k = 3)", "Full"}
    assert r"\textbf{81.5}" in table_formats.to_tex(table)
    assert "**81.5**" in table_formats.to_markdown(table)
    assert "<strong>81.5</strong>" in table_formats.to_html(table)


def test_baselines_stand_above_the_rule_and_ensembles_below_the_last(table):
    above = ["Majority class", "Bag of words", "Cosine similarity (no training)", "Random weights, frozen"]
    assert [row.name for row in table.baselines] == above and table.groups[0].baselines == []
    assert [row.name for row in table.ensembles] == ["All full"]
    assert [cell.text if cell else "" for cell in rows_of(table)["Cosine similarity (no training)"]] == ["", "40.0"]
    body = table_formats.to_tex(table).split(r"\midrule")[1:]
    assert (
        "Cosine similarity (no training)" in body[0] and "Top k" in body[1] and "All full" in body[2] and len(body) == 3
    )
    lines = table_formats.to_markdown(table).splitlines()
    place = {name: i for i, line in enumerate(lines) for name in (*above, "Full", "All full") if name in line}
    assert place["Random weights, frozen"] < place["Full"] < place["All full"]


def test_with_several_encoders_each_group_has_its_baselines_and_its_best(invented_frame):
    table = scores.build(OutputData("", twice(invented_frame)), invented.shown("main", "strategy_table"))
    assert [group.name for group in table.groups] == ["Tiny", "second"]
    assert all(any(row.cells[0].best for row in group.rows) for group in table.groups)
    assert [row.name for row in table.baselines] == ["Majority class", "Bag of words"]
    for group in table.groups:
        assert [row.name for row in group.baselines] == ["Cosine similarity (no training)", "Random weights, frozen"]
    assert r"\emph{second}" in table_formats.to_tex(table)
    for text in (table_formats.to_html(table), table_formats.to_markdown(table)):
        assert text.count("Cosine similarity (no training)") == 3, "a row in each group, and the footnote"


def test_the_notes_say_what_a_reader_must_know(table):
    notes = " ".join(table.notes)
    for expected in (
        "over 2 seeds",
        "Frozen: one convex fit",
        "SYNTHETIC: Entities",
        "Scored on another split than test: R&D_50% on dev.",
        "Validation held out from train: R&D_50%.",
        "R&D_50%, dev 25.0 %",
        "Texts truncated at the maximum length: R&D_50%, dev 5.0 %.",
        "Blank: applies to sentence pairs only.",
        "–: undefined score",
        "Tiny: A stand-in.",
        "† Warning: predicts a single class, or one set of labels, on validation.",
    ):
        assert expected in notes, expected
    assert "On similarity" not in notes and "Selected and reported" not in notes and "‡" not in notes


def test_a_blank_of_a_strategy_that_starts_from_a_run_on_the_task_has_its_own_reason(invented_frame):
    """It is blank on the only task that is not on pairs, as what applies to pairs alone would be."""
    compared = invented_frame["kind"] == "run"
    full = invented_frame[compared & ((invented_frame["strategy"] != "full") | (invented_frame["task"] == "odd"))]
    spec = invented.shown("main", "strategy_table")
    pairs, after = "Blank: applies to sentence pairs only.", "Blank: starts from a run on that task (Full)."
    for more, expected in (({}, [pairs]), ({"start_tasks": {"full": "entities"}}, [after])):
        notes = scores.build(OutputData("", full), spec | more).notes
        assert [note for note in notes if note.startswith("Blank")] == expected


def test_the_paper_protocol_is_told(invented_frame):
    paper = invented_frame.assign(protocol="paper")
    notes = scores.build(OutputData("", paper), invented.shown("main", "strategy_table")).notes
    assert "Selected and reported on the same split: Entities and R&D_50%." in notes


def test_missing_runs_are_marked_and_explained(invented_frame):
    frame = without(invented_frame, "not run", task="odd", strategy="full")
    frame = without(frame, "not run", task="odd", strategy="top_k", variant="k03", seed=2)
    frame = without(frame, "not run", task="entities", strategy="bag_of_words")
    table = scores.build(OutputData("", frame), invented.shown("main", "strategy_table"))
    cells = rows_of(table)
    assert cells["Full"][1].text == "‡" and cells["Full"][0].text == "81.5" and not cells["Full"][1].best
    assert cells["Top k (k = 3)"][1].text == "76.0‡" and cells["Top k (k = 3)"][1].best
    assert cells["Bag of words"][0].text == "‡" and cells["Cosine similarity (no training)"][0] is None
    assert table.notes[-1].startswith("‡ A run is missing") and "over 0 to 2 seeds" in table.notes[0]
    assert r"$^\ddagger$" in table_formats.to_tex(table)
    header, *body = csv.reader(io.StringIO(table_formats.to_csv(table)))
    full = dict(zip(header, next(row for row in body if row[4] == "full"), strict=True))
    assert (full["odd.dev.mean"], full["odd.dev.seeds"], full["odd.dev.missing"]) == ("", "0", "2")


def test_undefined_scores_shared_fits_and_flags_are_told(table):
    rows = rows_of(table)
    assert rows["Majority class"][1].text == "–" and rows["Frozen"][0].text == "60.0"
    assert rows["Top k (k = 1)"][1].text.endswith("†")


def test_each_kind_of_warning_has_a_mark_and_a_note_of_its_own(invented_frame):
    mine = (invented_frame["strategy"] == "full") & (invented_frame["task"] == "odd")
    frame = invented_frame.assign(flags=invented_frame["flags"].mask(mine, "diverged;one_class"))
    table = scores.build(OutputData("", frame), invented.shown("main", "strategy_table"))
    cells, notes = rows_of(table), [note for note in table.notes if "Warning" in note]
    marks = {note.partition(": ")[2]: note[0] for note in notes}
    one, lost = marks["predicts a single class, or one set of labels, on validation."], marks["loss became NaN or inf."]
    assert {one, lost} == {"†", "§"} and cells["Full"][1].text.endswith(f"{lost},{one}")
    assert cells["Top k (k = 1)"][1].text.endswith(one) and lost not in cells["Top k (k = 1)"][1].text
    assert r"$^\dagger$" in table_formats.to_tex(table) and r"$^\S$" in table_formats.to_tex(table)
    assert list(wording.warning_marks("abcdea").values()) == ["†", "§", "¶", "‖", "††"]


def test_a_bar_in_a_cell_does_not_end_it():
    columns, row = [Column("", "", "One", "", False)], text_row("a|b", ["u|v"])
    table = Table("t", "A table.", columns, [Group("", [row])])
    assert r"| a\|b | u\|v |" in table_formats.to_markdown(table)


def test_a_transfer_table_has_a_column_for_each_transfer_set(invented_frame):
    spec = invented.shown("transfer", "transfer_table")
    table = scores.build_transfer(OutputData("", invented_frame), spec)
    assert [column.label for column in table.columns] == ["R&D_50% → third, test"]
    assert rows_of(table)["Full"][0].text == "76.5" and "on the test splits of other tasks" in table.notes[0]
    assert r"$\to$" in table_formats.to_tex(table)
    with pytest.raises(UserError, match="no run is scored on another task"):
        scores.build_transfer(OutputData("", invented_frame[invented_frame["role"] != "transfer"]), spec)


def test_a_transfer_table_is_a_loop_over_the_rows_of_runs_csv(invented_results, tmp_path):
    """Each task is scored on the other's tests, and every run, seed and split has a score of its own."""
    with (invented_results / "outputs/invented/runs.csv").open(encoding="utf-8", newline="") as file:
        tested = [row for row in csv.DictReader(file) if row["role"] == "test"]
    other = {"entities": "odd/dev", "odd": "entities/test"}
    written = [
        row | {"role": "transfer", "split": other[row["task"]], "value": str((37 * place % 101) / 101)}
        for place, row in enumerate(tested)
    ]
    with (tmp_path / "runs.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, list(written[0]))
        lines.writeheader()
        lines.writerows(written)
    due = {}
    for row in written:
        if row["kind"] == "run" and row["main"] == "True":
            cell = due.setdefault((row["strategy"], row["variant"], row["split"]), [])
            cell.append(100 * float(row["value"]))
    data = OutputData("", read_runs(tmp_path / "runs.csv"))
    built = scores.build_transfer(data, invented.shown("transfer", "transfer_table"))
    (group,) = built.groups
    found = {
        (row.key["strategy"], row.key["variant"], column.split): cell.number
        for row in group.rows
        for column, cell in zip(built.columns, row.cells, strict=True)
    }
    assert len(due) == 5 * 2 and all(len(values) == 2 for values in due.values())
    assert found == {key: f"{mean(values):.1f}" for key, values in due.items()}


def test_latex_is_escaped_and_whole(table):
    text = table_formats.to_tex(table)
    assert r"R\&D\_50\%" in text and not re.search(r"(?<!\\)[&%]D|±|†|(?<!\\)_50", text)
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert all(len(re.findall(r"(?<!\\)&", line)) == len(invented.TASKS) for line in lines)
    assert text.count("{") == text.count("}")


def test_latex_has_the_intervals_below_the_scores(table):
    (row,) = (row for group in table.groups for row in group.rows if row.name == "Full")
    assert r"\scriptsize {[" not in table_formats.to_tex(table), "a table without intervals has no line for them"
    cells = [replace(row.cells[0], low=-1.25, high=90.0), row.cells[1]]
    text = table_formats.to_tex(replace(table, groups=[Group("", [replace(row, cells=cells)])]))
    _, below = (line for line in text.splitlines() if line.startswith(("Full &", r" & \scriptsize {")))
    assert below == r" & \scriptsize {[$-$1.2, 90.0]} &  \\[2pt]"
    assert text.count("{") == text.count("}")


def test_synthetic_is_said_in_every_format(table):
    for name in ("tex", "md", "html"):
        text = table_formats.FORMATS[name](table)
        assert text.count("SYNTHETIC") >= 3, name
        assert "(synthetic)" not in text
    assert [column.title for column in table.columns] == ["Entities (SYNTHETIC)", "R&D_50%"]


def test_a_split_that_nothing_was_scored_on_is_an_error(invented_frame):
    frame = invented_frame[invented_frame["role"] != "validation"]
    with pytest.raises(UserError, match="no run has a score on split validation"):
        aggregate.summarise(frame, "validation", {})


@pytest.mark.parametrize(
    "made, expected",
    [
        (wording.number(-0.04), "0.0"),
        (wording.short(999_960), "1\u202fM"),
        (wording.seconds(0.41), "0.41\u202fs"),
        (wording.rate(5e-5), "5e-5"),
        (wording.listing(["a", "b, c"]), "a; and b, c"),
        (wording.listing([]), ""),
        (wording.column_name({"tasks": {"a": "A"}}, "a", "dev", True), "A, dev"),
        (wording.column_name({"tasks": {"a": "A"}}, "a", "b/test", False), "A → b, test"),
        (wording.metric_name({"metrics": {"my.py:gain": "gain"}}, "my.py:gain"), "gain"),
        (
            wording.tex("a_b & 50% #1 ~^\\"),
            r"a\_b \& 50\% \#1 \textasciitilde{}\textasciicircum{}\textbackslash{}",
        ),
    ],
)
def test_words(made, expected):
    assert made == expected


LABELS = {"strategies": {"full": "Full"}, "tasks": {"sts": "STS"}}


def frame(*values) -> pandas.DataFrame:
    """Return runs of one strategy, a seed for each score on test; None is undefined."""
    place = {"subset": "all", "encoder": "tiny", "head": "linear"}
    row = place | {"kind": "run", "main": True, "missing": "", "role": "test", "strategy": "full", "variant": "base"}
    return pandas.DataFrame([row | {"task": "sts", "seed": n, "value": value} for n, value in enumerate(values)])


def test_strategies_with_undefined_scores_are_named_with_their_runs():
    (note,) = undefined_note(frame(0.5, None, float("nan"), 0.6), LABELS, "Tests leave these runs out")
    assert note.endswith(": Full on STS (2 runs). Tests leave these runs out.")
    assert undefined_note(frame(0.5, 0.6), LABELS, "") == []


def test_seeds_of_several_encoders_and_both_splits_of_a_run_are_counted_once_each():
    one = frame(None, 0.5)
    both = pandas.concat([one, one.assign(role="validation"), one.assign(encoder="other")])
    assert "Full on STS (2 runs)" in undefined_note(both, LABELS, "")[0]


def test_a_run_that_is_missing_is_not_undefined():
    assert undefined_note(frame(None).assign(missing="not run"), LABELS, "") == []
