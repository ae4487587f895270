"""Every strategy less full fine-tuning: the difference, its price, the share of the way, and draws put together."""

import csv
import io

import numpy as np
import pandas
import pytest

import invented
import scored_runs
from plans import plan_of
from thaw.core.errors import UserError
from thaw.outputs.frame import output_data
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats
from thaw.outputs.render.typed_table import ALIKE
from thaw.outputs.tables import relative, scores

FROZEN, TOP, FULL = ("frozen", "base"), ("top_k", "k01"), ("full", "base")
RATES = {FROZEN: 0.6, TOP: 0.8, FULL: 0.9}
PRICES = {FROZEN: 2.0, TOP: 8.0, FULL: 100.0}


def runs_of(folder, rates: dict, **written):
    """Return the frame of runs that predict right at these rates, each with the price of its point."""
    frame = scored_runs.write(folder, rates, **written)
    points = zip(frame["strategy"], frame["variant"], strict=True)
    return frame.assign(price_seconds=[PRICES[point] for point in points])


def drawn(folder, frame, first=None, start: str | None = "frozen"):
    """Return the table of some runs, and the lines of its CSV by strategy."""
    spec = invented.shown("r", "relative_table", reference="full", **({"start": start} if start else {}))
    table = relative.build(OutputData(folder, frame, first=first), spec)
    lines = list(csv.DictReader(io.StringIO(table_formats.to_csv(table))))
    return table, {line["strategy"]: line for line in lines}


def means(frame) -> dict[str, float]:
    return (100 * frame.groupby("strategy")["value"].mean()).to_dict()


def test_difference_share_and_price_by_hand(tmp_path):
    frame = runs_of(tmp_path, RATES)
    table, lines = drawn(tmp_path, frame)
    score, line = means(frame), lines["top_k"]
    assert float(line["value"]) == pytest.approx(score["top_k"] - score["full"], abs=1e-3)
    share = 100 * (score["top_k"] - score["frozen"]) / (score["full"] - score["frozen"])
    assert float(line["share"]) == pytest.approx(share, abs=1e-3)
    assert 40 < float(line["share_low"]) < share < float(line["share_high"]) < 95
    assert (line["seeds"], line["answer"], line["flags"]) == ("6", "lower", "")
    assert (float(line["price"]), float(line["price_share"])) == (8, 8) and lines["frozen"]["share"] == ""
    cell, price = next(row for row in table.groups[0].rows if row.name.startswith("Top")).cells
    ends = f"[{float(line['low']):.1f}, {float(line['high']):.1f}]".replace("-", "−")
    way = f"{share:.1f} % [{float(line['share_low']):.1f}, {float(line['share_high']):.1f}]"
    assert (cell.best, cell.interval, cell.below, price.text) == (True, ends, way, "8.0 %")
    assert f"| **{cell.text}** {ends}; {way} | 8.0 % |" in table_formats.to_markdown(table)
    assert f"<small>{ends}</small><small>{way}</small>" in table_formats.to_html(table)
    small = [text for text in table_formats.to_tex(table).splitlines() if text.startswith(r" & \scriptsize")]
    assert ends.replace("−", "$-$") in "".join(small) and rf"{share:.1f} \%" in "".join(small)
    assert "holds all 2 differences of the table together" in table.notes[0]


def test_the_interval_is_that_of_all_differences_together(tmp_path):
    frame = runs_of(tmp_path, RATES)
    both = drawn(tmp_path, frame)[1]["top_k"]
    (alone,) = drawn(tmp_path, frame[frame["strategy"] != "frozen"], start=None)[1].values()
    widths = [float(line["high"]) - float(line["low"]) for line in (both, alone)]
    assert both["value"] == alone["value"] and 1.05 < widths[0] / widths[1] < 1.4


def test_prices_are_summed_over_tasks_and_a_stalled_training_changes_none(tmp_path):
    frame = runs_of(tmp_path, RATES)
    frame.loc[(frame["strategy"] == "full") & (frame["seed"] == 2), "price_seconds"] = 999.0
    later = 3 * frame["price_seconds"] - 3 * (frame["strategy"] == "top_k")
    other = frame.assign(task="late", price_seconds=later)
    table, _ = drawn(tmp_path, pandas.concat([frame, other], ignore_index=True))
    top = next(row for row in table.groups[0].rows if row.name.startswith("Top"))
    assert top.cells[-1].value == pytest.approx(100 * (8 + 21) / (100 + 300))


def test_strategies_are_compared_over_the_seeds_that_both_have(tmp_path):
    frame = runs_of(tmp_path, RATES)
    frame = frame[(frame["strategy"] != "full") | (frame["seed"] <= 4)]
    line, kept = drawn(tmp_path, frame)[1]["top_k"], means(frame[frame["seed"] <= 4])
    assert line["seeds"] == "4" and float(line["value"]) == pytest.approx(kept["top_k"] - kept["full"], abs=1e-3)


def test_there_is_no_share_where_the_start_is_not_lower(tmp_path):
    table, lines = drawn(tmp_path, runs_of(tmp_path, RATES | {FULL: 0.61}))
    assert lines["frozen"]["answer"] == "open" and {line["share"] for line in lines.values()} == {""}
    assert lines["top_k"]["answer"] == "higher" and not any(row.cells[0].below for row in table.groups[0].rows)


def test_a_strategy_with_the_predictions_of_the_full_model_has_gone_all_of_the_way(tmp_path):
    frame = runs_of(tmp_path, RATES)
    whole = frame.loc[frame["strategy"] == "full", ["value", "folder"]].to_numpy()
    frame.loc[frame["strategy"] == "top_k", ["value", "folder"]] = whole
    line = drawn(tmp_path, frame)[1]["top_k"]
    assert [float(line[name]) for name in ("share", "share_low", "share_high")] == [100, 100, 100]
    assert line["answer"] == "open" and float(line["high"]) == pytest.approx(1.49, abs=0.01), "of 200 rows unseen"


def test_with_two_seeds_the_interval_is_of_the_rows_and_the_note_says_so_once(tmp_path):
    frame = runs_of(tmp_path, RATES)
    table, lines = drawn(tmp_path, frame[frame["seed"] < 3])
    assert [note.startswith("With fewer than 3 seeds") for note in table.notes].count(True) == 1
    assert lines["frozen"]["answer"] == "lower", "the rows alone are clear"
    assert not any("With fewer" in note for note in drawn(tmp_path, frame)[0].notes)
    with pytest.raises(UserError, match="needs runs of full and of another strategy"):
        drawn(tmp_path, frame[frame["strategy"] == "full"])


@pytest.mark.parametrize("runs", [2, 3])
def test_a_flag_stands_beside_the_number_and_hides_none(tmp_path, runs):
    frame = runs_of(tmp_path, RATES)
    frame.loc[(frame["strategy"] == "top_k") & (frame["seed"] <= runs), "flags"] = "underfit"
    frame.loc[(frame["strategy"] == "frozen") & (frame["seed"] <= runs), "flags"] = "memorised;one_class"
    table, lines = drawn(tmp_path, frame)
    assert lines["top_k"]["flags"] == ("undertrained" if runs == 3 else "")
    assert lines["frozen"]["flags"] == ("collapsed" if runs == 3 else "")
    assert {line["answer"] for line in lines.values()} == {"lower"}
    cells = {row.name: row.cells[0].text for row in table.groups[0].rows}
    marks = {name.partition(" ")[0]: text[-1] for name, text in cells.items()}
    assert (marks["Frozen"] == "†") == (marks["Top"] == "§") == (runs == 3)
    assert [note[:3] for note in table.notes if note[0] in "†§"] == (["† C", "§ U"] if runs == 3 else [])
    frame.loc[frame["strategy"] == "full", "flags"] = "underfit"
    assert all("undertrained" in line["flags"] for line in drawn(tmp_path, frame)[1].values())


def test_two_strategies_with_the_same_runs_have_the_same_marks(tmp_path):
    """As convex fits with other seeds are: their differences are equal, arrays and all."""
    frame = runs_of(tmp_path, {FROZEN: 0.6, TOP: 0.9, FULL: 0.89})
    frame = pandas.concat([frame, frame[frame["strategy"] == "frozen"].assign(strategy="copy")])
    frame = pandas.concat([frame, frame.assign(role="validation", split="validation")])
    spec = invented.shown("m", "strategy_table", intervals=True)
    table = scores.build(OutputData(tmp_path, frame), spec)
    marks = {row.key["strategy"]: (row.cells[0].best, ALIKE * row.cells[0].open) for row in table.groups[0].rows}
    assert marks == {"full": (True, ""), "top_k": (False, "≈"), "frozen": (False, ""), "copy": (False, "")}
    assert any("≈: open against it" in note for note in table.notes)


def test_draws_count_as_seeds(tmp_path):
    """Six seeds of one subset, and the same runs as three seeds of two draws, are the same table."""
    frame = runs_of(tmp_path, RATES)
    table, lines = drawn(tmp_path, frame)
    split = frame.assign(subset=np.where(frame["seed"] > 3, "d2", "d1"), seed=(frame["seed"] - 1) % 3 + 1)
    first = {"d1": "d1", "d2": "d1"}
    pooled, same = drawn(tmp_path, split, first)
    assert [line | {"subset": ""} for line in same.values()] == [line | {"subset": ""} for line in lines.values()]
    assert len(pooled.groups) == len(table.groups) == 1
    apart, by_draw = drawn(tmp_path, split)
    assert len(apart.groups) == 2 and {line["seeds"] for line in by_draw.values()} == {"3"}
    assert set(output_data.together(split, first)["seed"]) == set(range(1, 7)) and set(split["seed"]) == {1, 2, 3}
    (note,) = output_data.notes(split[split["seed"] == 1], first)
    assert note == "Each draw of the training rows counts as further seeds: 2 from d1 on."
    shared = " The 3 seeds of a draw share its rows, so that intervals are too narrow."
    assert output_data.notes(split, first) == [note + shared]
    assert output_data.notes(split, {}) == [] and output_data.together(split, {}) is split


def planned(output: dict, folder, **changes):
    (folder / "outputs.yaml").write_text(f"outputs: {{mine: {{caption: What it shows., {output}}}}}\n")
    wish = {"catalogues": [str(folder)], "outputs": ["mine"], "tasks": ["acceptability"], "seeds": [1]}
    wish |= {"strategies": ["frozen", "ladder", "full"]} | changes
    return plan_of(**wish)


RELATIVE = "kind: relative_table, reference: full, start: frozen"


def test_the_plan_says_which_subsets_are_draws_of_one_size(tmp_path):
    subsets = ["n100_d1", "n250_d2", "n250_d1", "n100_s200", "n100_d2"]
    plan = planned(f"{RELATIVE}, draws: together", tmp_path, subsets=subsets)
    spec = plan.job("table", "demo/mine").spec
    small, large = ("n100_d1", "n100_d2"), ("n250_d2", "n250_d1")
    assert spec["first_draws"] == {name: names[0] for names in (small, large) for name in names}
    named = [spec["labels"]["subsets"][names[0]] for names in (small, large)]
    assert all(name.endswith(f" rows, {len(names)} draws") for name, names in zip(named, (small, large), strict=True))
    plain = planned(RELATIVE, tmp_path, subsets=subsets)
    assert "first_draws" not in plain.job("table", "demo/mine").spec
