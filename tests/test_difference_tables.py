"""Tables of differences, on invented records whose scores are known."""

import pandas as pd

import answers
import difference_tables
from answers import FULL, PROBES
from test_unseen import line_of


def of_sizes(tasks: dict[str, dict[str, dict[int, int]]]) -> answers.Record:
    """Return a record of the official test alone. Args: right rows of 100 by task, strategy and labelled rows."""
    lines = [
        line_of(task, f"n{rows}_r{draw}", arm, "test", right + draw)
        for task, arms in tasks.items()
        for arm, by_rows in arms.items()
        for rows, right in by_rows.items()
        for draw in (1, 2, 3)
    ]
    return answers.Record(pd.DataFrame(lines))


def test_a_head_is_compared_on_the_frozen_and_on_the_tuned_encoder():
    right = {("linear_mean", difference_tables.FROZEN): 60, ("bilstm", difference_tables.FROZEN): 66}
    right |= {("linear_mean", FULL): 80, ("bilstm", FULL): 79}
    frame = pd.DataFrame(
        line_of("trec6", f"n1000_r{draw}", arm, "test", count + draw) | {"head": head}
        for (head, arm), count in right.items()
        for draw in (1, 2, 3)
    )
    numbers = [cell for (cell,) in first_numbers(difference_tables.heads(frame))]
    assert numbers == ["62.0", "68.0", "82.0", "81.0", "6.0", "−1.0", "−14.0"]


def test_what_tuning_adds_to_the_recurrent_encoder_is_less_what_it_adds_to_the_transformer():
    right = {"local_recurrent": (60, 66, 70), "local_decoder": (50, 55, 67)}
    right |= {"local_recurrent_random": (40, 44, 61), "local_decoder_random": (41, 42, 65)}
    frame = pd.DataFrame(
        line_of("trec6", f"n1000_r{draw}", arm, "test", count + draw) | {"encoder": encoder}
        for encoder, counts in right.items()
        for arm, count in zip((*PROBES, "vectors_tuned"), counts, strict=True)
        for draw in (1, 2, 3)
    )
    bag = line_of("trec6", "n1000_r1", "bag_of_words", "test", 30) | {"kind": "baseline"}
    titles, nothing, words, *lines = difference_tables.recurrent(pd.concat([frame, pd.DataFrame([bag])]))
    assert nothing[1] == "–" and words == ["*Bag of words*", "30.0"]
    lines = [titles, *lines]
    assert [line[0] for line in lines[4:6]] == ["Transformer, probe", "Transformer, probe, all layers"]
    scores = [f"{count + 2}.0" for counts in right.values() for count in counts]
    assert first_numbers(lines) == [[number] for number in (*scores, "11.0", "3.0", "−8.0", "9.0", "2.0")]


def first_numbers(lines: list[list[str]]) -> list[list[str]]:
    return [[cell.partition(" ")[0] for cell in line[1:]] for line in lines[1:]]


def test_thawing_and_more_labels_are_each_above_the_probe_on_the_rows_that_there_are():
    probe = dict(zip(difference_tables.SIZES, (50, 60, 65, 67), strict=True))
    full = dict(zip(difference_tables.SIZES, (48, 64, 75, 83), strict=True))
    lines = difference_tables.worth(of_sizes({"subj": {PROBES[1]: probe, FULL: full}}))
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
    lines = difference_tables.noise(of_sizes(tasks))
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
    assert first_numbers(difference_tables.noisy(of_sizes(tasks))) == [["6.0"] * 2, ["5.0"] * 2, ["−1.0"] * 2]


def test_students_are_compared_with_the_untaught_lowest_layers_over_seeds():
    """Three seeds, in another order for the taught, which have 3, 4 and 5 right rows more; baselines are left out."""
    runs = [("drop_top n03", seed, 60 + seed) for seed in (1, 2, 3)]
    runs += [("hinton n03", seed, 60 + seed + gap) for seed, gap in ((3, 5), (1, 3), (2, 4))]
    lines = [
        line_of("trec6", "d1", arm, split, right) | {"seed": seed, "train": float(seed)}
        for arm, seed, right in runs
        for split in ("test", "held_out")
    ]
    lines.append(line_of("trec6", "d1", "majority", "test", 10) | {"seed": 0, "kind": "baseline"})
    _, *rows = difference_tables.students(answers.with_points(pd.DataFrame(lines)))
    assert [row[0] for row in rows] == ["Distilled, logits (n = 3)", "Lowest n layers, fine-tuned (n = 3)"]
    assert rows[0][1] == "66.0 ± 2.0" and rows[0][2].startswith("4.0 [") and rows[0][3] == "2"
    assert rows[1][1] == "62.0 ± 1.0" and rows[1][2] == "–"


def test_of_large_heads_the_target_has_no_interval():
    heads = {"linear_mean": (60, 59), "bilstm": (50, 52), "bimpm": (55, 64)}  # without and with CORAL
    runs = [
        (head, arm, right)
        for head, of in heads.items()
        for arm, right in zip((FULL, difference_tables.CORAL), of, strict=True)
    ]
    lines = [
        line_of("sick_r_to_stsb", "n100_d1", arm, split, of) | {"head": head}
        for number, (head, arm, right) in enumerate([*runs, ("bimpm", "cosine", 80)])
        for split, of in (("test", right), ("stsb/test", right - 10 - number))
    ]
    rows = {line[0]: line[1:] for line in difference_tables.large_heads(pd.DataFrame(lines))}
    assert rows["No head: the cosine of frozen vectors"] == ["80.0", "64.0"] and rows["BiMPM, CORAL"] == [
        "64.0",
        "49.0",
    ]
    assert rows["BiMPM: what CORAL adds"][0].startswith("9.0 [") and rows["BiMPM: what CORAL adds"][1] == "8.0"
    assert rows["BiLSTM less linear head"][1] == "−12.0"
    assert rows["BiMPM, CORAL, less linear head"][0].startswith("4.0 [")
