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
                lines.append(_line(task, draw, arm, split, right + number * (split == "test")))
    return pd.DataFrame(lines)


def _line(task: str, draw: str, arm: str, split: str, right: int) -> dict:
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
            _line(task, draw, name, split, right) | {"kind": "baseline", "train": 0.0, "extraction": 0.0}
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
    assert float(lines["Always full fine-tuning"][3]) == 1.0
    assert record.expected("rte_files", FULL) == -2.5 and record.spread() == unseen.SPREAD


def of_sizes(tasks: dict[str, dict[str, dict[int, int]]]) -> unseen.Record:
    """Return a record of the official test alone. Args: right rows of 100 by task, strategy and labelled rows."""
    lines = [
        _line(task, f"n{rows}_r{draw}", arm, "test", right + draw)
        for task, arms in tasks.items()
        for arm, by_rows in arms.items()
        for rows, right in by_rows.items()
        for draw in (1, 2, 3)
    ]
    return unseen.Record(pd.DataFrame(lines))


def test_a_head_is_compared_on_the_frozen_and_on_the_tuned_encoder():
    right = {("linear_mean", unseen.FROZEN): 60, ("bilstm", unseen.FROZEN): 66}
    right |= {("linear_mean", FULL): 80, ("bilstm", FULL): 79}
    frame = pd.DataFrame(
        _line("trec6", f"n1000_r{draw}", arm, "test", count + draw) | {"head": head}
        for (head, arm), count in right.items()
        for draw in (1, 2, 3)
    )
    assert first_numbers(unseen.heads(frame)) == [["62.0"], ["68.0"], ["82.0"], ["81.0"], ["6.0"], ["−1.0"], ["−14.0"]]


def test_what_tuning_adds_to_the_recurrent_encoder_is_less_what_it_adds_to_the_transformer():
    right = {"local_recurrent": (60, 66, 70), "local_decoder": (50, 55, 67)}
    right |= {"local_recurrent_random": (40, 44, 61), "local_decoder_random": (41, 42, 65)}
    frame = pd.DataFrame(
        _line("trec6", f"n1000_r{draw}", arm, "test", count + draw) | {"encoder": encoder}
        for encoder, counts in right.items()
        for arm, count in zip((*PROBES, "vectors_tuned"), counts, strict=True)
        for draw in (1, 2, 3)
    )
    bag = _line("trec6", "n1000_r1", "bag_of_words", "test", 30) | {"kind": "baseline"}
    titles, nothing, words, *lines = unseen.recurrent(pd.concat([frame, pd.DataFrame([bag])]))
    assert nothing[1] == "–" and words == ["*Bag of words*", "30.0"]
    lines = [titles, *lines]
    assert [line[0] for line in lines[4:6]] == ["Transformer, probe", "Transformer, probe, all layers"]
    scores = [f"{count + 2}.0" for counts in right.values() for count in counts]
    assert first_numbers(lines) == [[number] for number in (*scores, "11.0", "3.0", "−8.0", "9.0", "2.0")]


def first_numbers(lines: list[list[str]]) -> list[list[str]]:
    return [[cell.partition(" ")[0] for cell in line[1:]] for line in lines[1:]]


def test_thawing_and_more_labels_are_each_above_the_probe_on_the_rows_that_there_are():
    probe = dict(zip(unseen.SIZES, (50, 60, 65, 67), strict=True))
    full = dict(zip(unseen.SIZES, (48, 64, 75, 83), strict=True))
    lines = unseen.worth(of_sizes({"subj": {PROBES[1]: probe, FULL: full}}))
    assert [line[0] for line in lines[1:]] == ["SUBJ, 100", "SUBJ, 300", "SUBJ, 1,000", "SUBJ, 3,500"]
    assert first_numbers(lines) == [
        ["52.0", "−2.0", "10.0"],
        ["62.0", "4.0", "5.0"],
        ["67.0", "10.0", "2.0"],
        ["69.0", "16.0", "–"],
    ]


def test_noise_costs_what_is_between_noisy_and_clean_labels():
    clean, noisy = {PROBES[0]: 80, PROBES[1]: 82, FULL: 90}, {PROBES[0]: 77, PROBES[1]: 78, FULL: 83}
    sides = {"split": clean, "noisy": noisy}
    tasks = {
        f"{task}_{kind}": {arm: {1000: right} for arm, right in side.items()}
        for task in ("subj", "ag_news")
        for kind, side in sides.items()
    }
    lines = unseen.noise(of_sizes(tasks))
    assert [line[0] for line in lines[4:]] == [
        "Full fine-tuning less linear probe",
        "Full fine-tuning less linear probe, all layers",
    ]
    assert first_numbers(lines) == [
        ["82.0", "79.0", "−3.0"] * 2,
        ["84.0", "80.0", "−4.0"] * 2,
        ["92.0", "85.0", "−7.0"] * 2,
        ["", "", "−4.0"] * 2,
        ["", "", "−3.0"] * 2,
    ]
    assert first_numbers(unseen.noisy(of_sizes(tasks))) == [["6.0"] * 2, ["5.0"] * 2, ["−1.0"] * 2]


def test_students_are_compared_with_the_untaught_lowest_layers_over_seeds():
    """Three seeds, in another order for the taught, which have 3, 4 and 5 right rows more; baselines are left out."""
    runs = [("drop_top n03", seed, 60 + seed) for seed in (1, 2, 3)]
    runs += [("hinton n03", seed, 60 + seed + gap) for seed, gap in ((3, 5), (1, 3), (2, 4))]
    lines = [
        _line("trec6", "d1", arm, split, right) | {"seed": seed, "train": float(seed)}
        for arm, seed, right in runs
        for split in ("test", "held_out")
    ]
    lines.append(_line("trec6", "d1", "majority", "test", 10) | {"seed": 0, "kind": "baseline"})
    _, *rows = unseen.students(answers.with_points(pd.DataFrame(lines)))
    assert [row[0] for row in rows] == ["Distilled, logits (n = 3)", "Lowest n layers, fine-tuned (n = 3)"]
    assert rows[0][1] == "66.0 ± 2.0" and rows[0][2].startswith("4.0 [") and rows[0][3] == "2"
    assert rows[1][1] == "62.0 ± 1.0" and rows[1][2] == "–"


def test_of_large_heads_the_target_has_no_interval():
    heads = {"linear_mean": (60, 59), "bilstm": (50, 52), "bimpm": (55, 64)}  # without and with CORAL
    runs = [
        (head, arm, right) for head, of in heads.items() for arm, right in zip((FULL, unseen.CORAL), of, strict=True)
    ]
    lines = [
        _line("sick_r_to_stsb", "n100_d1", arm, split, of) | {"head": head}
        for number, (head, arm, right) in enumerate([*runs, ("bimpm", "cosine", 80)])
        for split, of in (("test", right), ("stsb/test", right - 10 - number))
    ]
    rows = {line[0]: line[1:] for line in unseen.large_heads(pd.DataFrame(lines))}
    assert rows["No head: the cosine of frozen vectors"] == ["80.0", "64.0"] and rows["BiMPM, CORAL"] == [
        "64.0",
        "49.0",
    ]
    assert rows["BiMPM: what CORAL adds"][0].startswith("9.0 [") and rows["BiMPM: what CORAL adds"][1] == "8.0"
    assert rows["BiLSTM less linear head"][1] == "−12.0"
    assert rows["BiMPM, CORAL, less linear head"][0].startswith("4.0 [")
