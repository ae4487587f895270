"""The table of spread: what belongs to initialisation, order and subset, and how runs come to vary in one alone."""

import pandas
import pytest
from scipy.stats import chi2

import invented
from thaw.core.errors import UserError
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.runs_frame import COLUMNS
from thaw.outputs.render import table_formats
from thaw.papers import variance
from thaw.planning.configuration import load_plan
from thaw.schema.phases import PhaseConfig
from thaw.training.run_state import RunState
from workflow import HOME, Workplace

SPEC = invented.shown("spread", "spread_table")


def scored(values: dict[tuple, float]):
    """Return runs.csv of scores by (strategy, variant, seed, subset)."""
    rows = []
    for (strategy, variant, seed, subset), value in values.items():
        row = {
            "kind": "run",
            "task": "odd",
            "split": "dev",
            "role": "test",
            "main": True,
            "missing": "",
            "head": "linear",
        }
        row |= {"encoder": "tiny", "strategy": strategy, "variant": variant, "seed": seed, "subset": subset}
        rows.append({**dict.fromkeys(COLUMNS, ""), **row, "train_rows": 500, "value": value / 100})
    return pandas.DataFrame(rows).astype({"value": float})


def test_what_belongs_to_initialisation_and_order_by_hand():
    # rows 80, 84 by seed and -1, +1 by order: no interaction. 2 seeds: (80 - 84)^2 / 2 = 8, 2 orders: 2^2 / 2 = 2
    four = {("full", f"order{o:02d}", s, "a"): 80 + 4 * (s - 1) + 2 * (o - 1) for s in (1, 2) for o in (1, 2)}
    made = variance.build(OutputData("", scored(four)), SPEC)
    (row,) = made.groups[0].rows
    assert row.name == "R&D_50%, dev: Full"
    assert [cell.text for cell in row.cells] == ["2.83", "1.41", "–", "–", "0.00", "2 × 2"], "no shares of two levels"
    lines = {line["factor"]: line for line in made.records()}
    assert {name: line["variance"] for name, line in lines.items()} == {"initialisation": 8, "order": 2, "rest": 0}
    assert lines["initialisation"]["low"] == pytest.approx(8 / chi2.ppf(0.975, 1), rel=1e-3)
    assert all(line["share"] is None for line in lines.values()) and "No shares" in made.notes[3]
    assert "2 × 2" in table_formats.to_markdown(made)
    behind = [(f"a, order = {o}", f"odd.run.a.tiny.linear.full.order{o:02d}") for o in (1, 2)]
    assert row.cells[5].behind == behind and all(anchor in table_formats.to_html(made) for _, anchor in behind)


def test_three_levels_have_shares():
    nine = {("full", f"order{o:02d}", s, "a"): 80 + 4 * s + 2 * o for s in (1, 2, 3) for o in (1, 2, 3)}
    (row,) = variance.build(OutputData("", scored(nine)), SPEC).groups[0].rows
    assert [cell.text for cell in row.cells][:2] == ["4.00 (80 %)", "2.00 (20 %)"]


def test_a_single_factor_has_no_share():
    made = variance.build(OutputData("", scored({("full", "base", s, "a"): 80 + s for s in (1, 2, 3)})), SPEC)
    (row,) = made.groups[0].rows
    assert [cell.text for cell in row.cells] == ["–", "–", "1.00", "–", "–", "3"]
    assert any("with a single factor" in note for note in made.notes)
    assert made.records()[0]["share"] is None


def test_a_seed_is_nested_in_its_draw():
    """Within two draws of mean 72 and 80 seeds have the variance 4, whatever their numbers: 32 - 4 / 3 for the draws.

    Crossed, they would be ranked alike in both draws, and the noise would be called the seeds'.
    """
    values = {1: {1: 70, 2: 72, 3: 74}, 2: {7: 82, 8: 78, 9: 80}}
    drawn = {("full", "base", s, f"d{d}"): value for d, by_seed in values.items() for s, value in by_seed.items()}
    made = variance.build(OutputData("", scored(drawn)), SPEC)
    lines = {line["factor"]: [line[name] for name in ("variance", "low", "high")] for line in made.records()}
    assert (lines["seed"][0], lines["subset"][0]) == (4.0, pytest.approx(32 - 4 / 3, abs=1e-6))
    assert lines["seed"][1:] == pytest.approx([4 * 4 / chi2.ppf(p, 4) for p in (0.975, 0.025)], rel=1e-4)
    assert lines["subset"][1] < 5 and 1000 < lines["subset"][2] < 40_000, "two draws say little, and finitely so"
    assert [cell.text for cell in made.groups[0].rows[0].cells][2:] == ["2.00", "5.54", "–", "3 × 2"]


def test_one_seed_decides_both_and_a_gap_is_no_answer():
    drawn = {("full", "base", s, f"d{d}"): 70 + s + 3 * d for s in (1, 2, 3) for d in (1, 2)}
    drawn |= {("top_k", "k01", s, f"d{d}"): 60 for s, d in ((1, 1), (2, 1), (1, 2))}
    made = variance.build(OutputData("", scored(drawn)), SPEC)
    (row,) = made.groups[0].rows
    texts = [cell.text for cell in row.cells]
    assert texts[:2] == ["–", "–"] and texts[2:4] == ["1.00", "2.04"]
    assert made.notes[-1] == "Left out because runs are missing: 1 line."
    with pytest.raises(UserError, match="needs two seeds, orders or draws"):
        variance.build(OutputData("", scored({("full", "base", 1, "a"): 70})), SPEC)


def test_an_order_of_its_own_is_shared_by_all_seeds():
    streams = [
        RunState(1, PhaseConfig(train=["all"], order=order), seed) for seed, order in ((1, 7), (2, 7), (2, None))
    ]
    assert streams[0].stream("order", 1) == streams[1].stream("order", 1) != streams[2].stream("order", 1)
    assert streams[0].stream("dropout", 1) != streams[1].stream("dropout", 1) == streams[2].stream("dropout", 1)


def test_a_sweep_over_a_key_of_phases_sets_it(tmp_path):
    (tmp_path / "my").mkdir()
    entry = "strategies: {ordered: {sweep: {order: [1, 2]}, phases: [{train: [all], epochs: 1}]}}"
    (tmp_path / "my/strategies.yaml").write_text(entry)
    chosen = {"tasks": ["acceptability"], "encoders": ["minilm"], "strategies": ["ordered", "full"], "seeds": [3]}
    plan = load_plan(Workplace.experiment("mine", **chosen) | {"catalogues": [str(tmp_path / "my")]}, HOME)
    found = {run.variant: plan.job("train", run.key).spec["phases"][0] for run in plan.runs["mine"]}
    assert [found[name].get("order") for name in ("order01", "order02", "base")] == [1, 2, None]
