"""The analysis of the unseen datasets, on an invented record whose scores are known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import answers
import unseen
from answers import FULL, LORA, PROBES, TOP_2

ROWS = 100
DRAWS = ("d1", "d2", "d3")
TEXTS = {LORA: 80, TOP_2: 70, FULL: 81}  # right rows of 100 at the middle rate, on both tests
PAIRS = {LORA: 60, TOP_2: 55, FULL: 62, "lora_separate": 50, "top_k_separate k02": 52, "full_separate": 54}


def record_of(tasks: dict[str, dict[str, int]], half: int = 2) -> pd.DataFrame:
    """Return a record whose strategies at half the rate are so many points higher, on tests and on validation."""
    lines = []
    for task, points in tasks.items():
        arms = {
            unseen.at(point, rate): right + half * (rate == "_half")
            for point, right in points.items()
            for rate in unseen.RATES
        }
        arms |= (
            dict(zip(unseen.READINGS, (58, 66, 64, 65), strict=True))
            if "full_separate" in points
            else dict.fromkeys(PROBES, 60)
        )
        for (arm, right), (number, draw) in ((one, two) for one in arms.items() for two in enumerate(DRAWS)):
            for split in ("held_out", "test", "reserved"):
                lines.append(line_of(task, draw, arm, split, right + number * (split == "test")))
    return pd.DataFrame(lines)


def line_of(task: str, draw: str, arm: str, split: str, right: int) -> dict:
    name, _, variant = arm.partition(" ")
    kind = "pair_classification" if task == "rte_files" else "classification"
    return {
        **{
            "kind": "run",
            "task": task,
            "metric": "accuracy",
            "subset": draw,
            "strategy": name,
            "variant": variant or "base",
        },
        **{
            "thawed": 0 if "probe" in name else 6,
            "split": split,
            "role": "validation" if split == "held_out" else split,
        },
        **{
            "value": right / ROWS,
            "type": kind,
            "corpus": task,
            "one_fit": "probe" in name,
            "train": 10.0,
            "extraction": 1.0,
        },
        **{"first": (np.arange(ROWS) < right).astype(np.int16), "second": np.ones(ROWS, np.int16)},
        "group": np.arange(ROWS, dtype=np.int32),
    }


@pytest.fixture(scope="module")
def record() -> unseen.Unseen:
    return unseen.Unseen(record_of({"subj": TEXTS, "cr": TEXTS | {LORA: 78}, "rte_files": PAIRS}))


def test_a_score_is_the_mean_of_both_tests_and_validation_chooses_the_rate(record):
    assert record.tuned("subj", FULL) == ["full_half"] * 3 and record.tuned("subj", TOP_2)[1] == "top_k_half k02"
    assert record.mean("subj", FULL).tolist() == pytest.approx([81, 81.5, 82])
    level = unseen.Unseen(record_of({"subj": TEXTS}, half=0))
    assert level.tuned("subj", FULL) == [FULL] * 3, "of equal rates the middle is taken"


def test_a_score_has_the_interval_of_its_test_rows():
    """Of 80 right rows in 100 on two tests: the standard deviation of a mean of 200 rows, 1.96 times."""
    one = unseen.Unseen(record_of({"subj": TEXTS})[lambda frame: frame["subset"] == "d1"])
    shown = one.score("subj", LORA).ci
    assert shown.value == 80 and (shown.high - shown.low) / 2 == pytest.approx(196 * (0.8 * 0.2 / 200) ** 0.5, rel=0.1)


def test_the_readmes_table_has_default_rates_baselines_and_prices():
    """A price is the mean over tasks of seconds by those of full fine-tuning, with the extraction."""
    frame = record_of({"subj": TEXTS, "cr": TEXTS | {LORA: 78}})
    full, lora = (frame["strategy"] == name for name in (FULL, LORA))
    frame.loc[full, ["train", "extraction"]], frame["trained_parameters"] = (20.0, 0.0), 5.0
    frame.loc[lora & (frame["task"] == "cr"), ["train", "trained_parameters"]] = (4.0, 9.0)
    baselines = pd.DataFrame(
        [
            line_of(task, draw, name, split, right) | {"kind": "baseline", "train": 0.0, "extraction": 0.0}
            for name, right in (("majority", 50), ("bag_of_words", 70))
            for task in ("subj", "cr")
            for draw in DRAWS
            for split in ("held_out", "test", "reserved")
        ]
    )
    made = answers.with_points(pd.concat([frame, baselines]))
    titles, *lines = unseen.defaults(made)
    assert titles[0] == "3 draws" and unseen.defaults(made[made["subset"] == "d1"])[0][0] == "1 draw"
    by_name = {name: [cell.split(" ")[0] for cell in line] for name, *line in lines}
    assert by_name["*Majority class*"] == ["50.0", "50.0", "–", "–"] and by_name["*Bag of words*"][0] == "70.0"
    assert by_name["LoRA"] == ["80.5", "78.5", "7", "0.40"], "at the middle rate; 11 and 5 of 20 seconds"


def test_draws_with_default_rates_alone_are_left_out():
    frame = record_of({"subj": TEXTS})
    later = frame[(frame["subset"] == "d3") & ~frame["strategy"].str.endswith(("_half", "_double"))]
    kept = unseen.with_all_rates(pd.concat([frame, later.assign(subset="d4")]))
    assert unseen.Unseen(kept).draws == list(DRAWS)


def test_draws_that_some_task_lacks_are_left_out():
    frame = record_of({"subj": TEXTS, "cr": TEXTS})
    frame = answers.with_points(frame[(frame["task"] == "subj") | (frame["subset"] != "d2")])
    assert unseen.Unseen(unseen.with_all_tasks(frame)).draws == ["d1", "d3"]


def test_lora_is_equivalent_where_the_interval_over_tasks_is_within_a_point(record):
    differences = [-1.0, -3.0, -2.0]
    low, high = unseen.over_tasks(differences)
    reference = stats.t.interval(0.9, 2, loc=np.mean(differences), scale=stats.sem(differences))
    assert (low, high) == pytest.approx(reference)
    lines = unseen.lora_against_full(record)
    assert [line[1].split(" ")[0] for line in lines[1:4]] == ["−1.0", "−3.0", "−2.0"] and "not shown" in lines[-1][1]
    near = {task: TEXTS | {LORA: 81 + away} for task, away in (("subj", 0), ("cr", 0), ("mpqa", 0), ("rte_files", 1))}
    assert unseen.lora_against_full(unseen.Unseen(record_of(near)))[-1][1].endswith(": equivalent")


def test_tuning_gains_what_the_better_rate_gains_and_keeps_the_order(record):
    lines = unseen.tuning(record)
    assert lines[1][1:] == ["full, LoRA, top 2", "full, LoRA, top 2", "yes", "2.00"]
    assert lines[-1][3:] == ["3 of 3", "2.00"]


def test_each_rate_is_below_the_best_of_its_task(record):
    _, *lines = unseen.rates(record)
    assert [line[0].split(", ")[1] for line in lines[:3]] == ["half the rate", "the rate", "twice the rate"]
    assert [line[1:] for line in lines] == [[cell] * 4 for cell in ("0.0", "2.0", "2.0") * 3]


def test_readings_are_compared_on_pairs_alone_and_with_the_better_of_four_probes(record):
    (_, line) = unseen.readings(record)
    assert [cell.split(" ")[0] for cell in line[1:]] == ["8.0", "−2.0"]


def test_rules_lose_what_is_between_them_and_the_best_of_the_other_draws():
    points = {"subj": TEXTS, "rte_files": PAIRS}
    frame = record_of(points, half=0)
    own = frame["strategy"] + " " + frame["variant"].where(frame["variant"] != "base", "")
    record = unseen.Unseen(frame[own.str.strip().isin(unseen.STANDARD)])
    lines = {line[0]: line[1:] for line in unseen.rules(record)[1:]}
    assert lines["Always full fine-tuning"][:2] == ["2.00", "2.00"], (
        "0 on texts; on pairs 62 in place of the probe's 66"
    )
    assert lines[unseen.BY_READING][:2] == ["0.00", "0.00"]
    assert lines["Always full fine-tuning"][3:] == ["2.00", "1.00"], "in hindsight the same, since all draws are alike"
    assert record.expected("rte_files", FULL) == -2.5 and record.spread() == unseen.SPREAD
