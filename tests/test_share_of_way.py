"""The share of the way from a strategy that thaws nothing to full fine-tuning, its cost, and draws put together."""

import csv
import io
from collections import namedtuple

import numpy as np
import pytest

import invented
import scored_runs
from thaw.core.errors import UserError
from thaw.outputs.frame import draws
from thaw.outputs.frame.aggregate import ROW
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import relative, share_of_way, writers
from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan
from thaw.statistics.bootstrap import Interval

FROZEN, TOP, FULL = ("frozen", "base"), ("top_k", "k01"), ("full", "base")
RATES = {FROZEN: 0.6, TOP: 0.8, FULL: 0.9}
SECONDS = {FROZEN: 1.0, TOP: 8.0, FULL: 100.0}


def runs_of(folder, rates: dict):
    """Return the frame of runs that predict right at these rates, each with the price of its point."""
    frame = scored_runs.write(folder, rates).assign(main=True, role="test", optimizer="adamw", synthetic=False)
    numbers = ("after_seconds", "flops", "after_flops", "peak_memory_mb", "trained_parameters", "thawed")
    frame = frame.assign(**dict.fromkeys(numbers, 0.0), embeddings=False)
    points = list(zip(frame["strategy"], frame["variant"], strict=True))
    return frame.assign(price_seconds=[SECONDS[point] for point in points])


def drawn(folder, frame, first=None):
    """Return the table of some runs, and its lines in the CSV."""
    spec = invented.shown("r", "relative_table", reference="full", start="frozen")
    table = relative.build(OutputData(folder, frame, first=first), spec)
    return table, list(csv.DictReader(io.StringIO(writers.to_csv(table))))


def parts(cell) -> list[str]:
    """Return what a cell prints, line by line."""
    return [cell.text, cell.interval, cell.below]


def test_share_and_costs_by_hand(tmp_path):
    frame = runs_of(tmp_path, RATES)
    table, (line,) = drawn(tmp_path, frame)
    start, top, full = (
        100 * frame.loc[frame["strategy"] == name, "value"].mean() for name in ("frozen", "top_k", "full")
    )
    assert float(line["share"]) == pytest.approx(100 * (top - start) / (full - start), abs=1e-3)
    assert 40 < float(line["low"]) < float(line["share"]) < float(line["high"]) < 95
    assert [float(line[name]) for name in ("score", "start", "full")] == pytest.approx([top, start, full], abs=1e-3)
    assert (float(line["price"]), float(line["cost"]), line["inference"]) == (8, 8, "")
    (row,) = table.groups[0].rows
    ends = f"[{float(line['low']):.1f}, {float(line['high']):.1f}]"
    share, cost = f"{float(line['share']):.1f} %", "cost 8.0 %"
    assert parts(row.cells[0]) == [share, ends, cost] and parts(row.cells[1]) == [share, "over 1 task", cost]
    assert f"| {share} {ends}; {cost} | {share} over 1 task; {cost} |" in writers.to_markdown(table)
    assert f"<small>{ends}</small><small>{cost}</small>" in writers.to_html(table)
    small = [text for text in writers.to_tex(table).splitlines() if text.startswith(r" & \scriptsize")]
    assert len(small) == 2 and ends in small[0] and r"cost 8.0 \%" in small[1]


def test_a_run_on_a_stalled_machine_makes_no_strategy_cheap(tmp_path):
    frame = runs_of(tmp_path, RATES)
    frame.loc[(frame["strategy"] == "full") & (frame["seed"] == 2), "price_seconds"] = 999.0
    _, (line,) = drawn(tmp_path, frame)
    assert float(line["cost"]) == 8


def test_a_task_with_two_test_splits_counts_once_in_the_median(tmp_path):
    shares = {("a", "in"): 10.0, ("a", "out"): 50.0, ("b", "test"): 40.0, ("c", "test"): 90.0}
    summary_row = namedtuple("Row", dict.fromkeys(["task", "split", "thawed", "baseline", *ROW]))
    blank = dict.fromkeys(summary_row._fields, "")
    rows = [
        summary_row(
            **blank | {"task": task, "split": split, "strategy": "top_k", "variant": "base", "kind": "run", "thawed": 1}
        )
        for task, split in shares
    ]
    ways = {
        at: share_of_way.Way(row, 3, (0.0, 1.0, 0.5), Interval(share, 0.0, 100.0), share, 1.0)
        for at, (row, share) in enumerate(zip(rows, shares.values(), strict=True))
    }
    row = share_of_way._row(ways, len(ways), {"strategies": {"top_k": "Top"}})
    assert parts(row.cells[-1]) == ["40.0 %", "over 3 tasks", "cost 40.0 %"], "30, 40 and 90, where four splits have 45"


def test_pairs_of_seeds_and_examples_make_the_interval(tmp_path):
    """A strategy with the predictions of the full model has gone all of the way in every draw, whatever the noise."""
    frame = runs_of(tmp_path, RATES)
    whole = frame.loc[frame["strategy"] == "full", ["value", "folder"]].to_numpy()
    frame.loc[frame["strategy"] == "top_k", ["value", "folder"]] = whole
    _, (line,) = drawn(tmp_path, frame)
    assert [float(line[name]) for name in ("share", "low", "high")] == [100, 100, 100]


def test_seeds_that_one_of_the_three_lacks_are_left_out(tmp_path):
    frame = runs_of(tmp_path, RATES)
    frame = frame[(frame["strategy"] != "full") | (frame["seed"] <= 4)]
    _, (line,) = drawn(tmp_path, frame)
    kept = frame[frame["seed"] <= 4].groupby("strategy")["value"].mean() * 100
    assert line["seeds"] == "4" and float(line["start"]) == pytest.approx(kept["frozen"], abs=1e-3)


def test_there_is_no_share_where_full_fine_tuning_is_not_clearly_better(tmp_path):
    table, (line,) = drawn(tmp_path, runs_of(tmp_path, RATES | {FULL: 0.61}))
    assert (line["far_enough"], line["share"], line["low"]) == ("0", "", "")
    (row,) = table.groups[0].rows
    assert parts(row.cells[0]) == ["–", "", "cost 8.0 %"] and row.cells[1] is None
    with pytest.raises(UserError, match="needs runs of frozen, full and of other strategies"):
        drawn(tmp_path, runs_of(tmp_path, {TOP: 0.8, FULL: 0.9}))


def test_draws_count_as_seeds(tmp_path):
    """Six seeds of one subset, and the same runs as three seeds of two draws, are the same table."""
    frame = runs_of(tmp_path, RATES)
    table, lines = drawn(tmp_path, frame)
    split = frame.assign(subset=np.where(frame["seed"] > 3, "d2", "d1"), seed=(frame["seed"] - 1) % 3 + 1)
    first = {"d1": "d1", "d2": "d1"}
    pooled, same = drawn(tmp_path, split, first)
    assert [line | {"subset": ""} for line in same] == [line | {"subset": ""} for line in lines]
    assert len(pooled.groups) == len(table.groups) == 1
    apart, by_draw = drawn(tmp_path, split)
    assert len(apart.groups) == 2 and {line["seeds"] for line in by_draw} == {"3"}
    assert set(draws.together(split, first)["seed"]) == set(range(1, 7)) and set(split["seed"]) == {1, 2, 3}
    (note,) = draws.notes(split[split["seed"] == 1], first)
    assert note == "Each draw of the training rows counts as further seeds: 2 from d1 on."
    assert draws.notes(split, first) == [
        f"{note} The 3 seeds of a draw share its rows, so that intervals are too narrow and p too small."
    ]
    assert draws.notes(split, {}) == [] and draws.together(split, {}) is split


def planned(home, output: dict, folder, **changes):
    (folder / "outputs.yaml").write_text(f"outputs: {{mine: {{caption: What it shows., {output}}}}}\n")
    wish = {"catalogues": [str(folder)], "outputs": ["mine"], "tasks": ["acceptability"], "seeds": [1]}
    wish |= {"strategies": ["frozen", "ladder", "full"]} | changes
    return load_plan(read_config([str(home / "tests/base.yaml")], wish), home)


RELATIVE = "kind: relative_table, reference: full, start: frozen"


def test_the_plan_says_which_subsets_are_draws_of_one_size(home, tmp_path):
    subsets = ["n100_d1", "n250_d2", "n250_d1", "n100_s200", "n100_d2"]
    plan = planned(home, f"{RELATIVE}, draws: together", tmp_path, subsets=subsets)
    spec = plan.job("table", "demo/mine").spec
    small, large = ("n100_d1", "n100_d2"), ("n250_d2", "n250_d1")
    assert spec["first_draws"] == {name: names[0] for names in (small, large) for name in names}
    named = [spec["labels"]["subsets"][names[0]] for names in (small, large)]
    assert all(name.endswith(f" rows, {len(names)} draws") for name, names in zip(named, (small, large), strict=True))
    plain = planned(home, RELATIVE, tmp_path, subsets=subsets)
    assert "first_draws" not in plain.job("table", "demo/mine").spec


@pytest.mark.parametrize(
    ("strategies", "message"),
    [
        (["full", "ladder"], "start: frozen is none of the experiment's strategies .full, ladder.; add it"),
        (["full", "frozen"], "it compares full with another strategy, and the experiment has none"),
    ],
)
def test_a_start_that_is_not_run_is_refused(home, tmp_path, strategies, message):
    with pytest.raises(UserError, match=message):
        planned(home, RELATIVE, tmp_path, strategies=strategies)
