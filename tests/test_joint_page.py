"""The tables of docs/results/joint.md, on an invented record whose scores are known."""

import numpy as np
import pandas as pd
import pytest

import joint

ROWS = 400
RIGHT = {"full_100": 200, "full_300": 240, "joint_pairs": 300, "bam_pairs": 302}  # of ROWS


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Three tasks with six seeds, of which each has two right rows more than the one before."""
    lines = [
        _line(task, seed, arm, right)
        for task in joint.PAIRS
        for seed in range(1, 7)
        for arm, right in RIGHT.items()
        if seed < 4 or arm != "bam_pairs"
    ]
    (tmp_path / "docs/results").mkdir(parents=True)
    pd.DataFrame(lines).to_parquet(tmp_path / "docs/results/invented.parquet")
    monkeypatch.setattr("answers.RECORDS", tmp_path / "docs/results")
    return joint.Seeds("invented")


def _line(task: str, seed: int, arm: str, right: int) -> dict:
    right += 2 * seed
    answers = {"first": (np.arange(ROWS) < right).astype(np.int16), "second": np.ones(ROWS, np.int16)}
    run = {"kind": "run", "task": task, "subset": "n500_s300", "strategy": arm, "variant": "base", "seed": float(seed)}
    scored = {"split": "test", "role": "test", "metric": "accuracy", "value": right / ROWS}
    of_task = {"type": "pair_classification", "corpus": task, "group": np.arange(ROWS, dtype=np.int32)}
    return run | scored | of_task | answers | {"thawed": 6, "one_fit": False, "train": 10.0, "extraction": 1.0}


def test_scores_are_of_three_seeds_and_bold_where_they_are_decided(record):
    titles, *lines = joint.scores(record)
    assert titles[1:] == ["SICK-E<br>accuracy", "STS-B<br>Pearson r", "MRPC<br>accuracy"]
    assert lines[0][1:] == ["61.0 ± 0.5"] * 3, "244 of 400 with the second of three seeds"
    assert dict(zip((line[0] for line in lines), (line[1] for line in lines), strict=True)) == {
        "Full fine-tuning, 300 updates": "61.0 ± 0.5",
        "Full fine-tuning, 100 updates": "**51.0 ± 0.5**",
        "Joint, three tasks of pairs": "**76.0 ± 0.5**",
        "Joint, pairs, towards single-task teachers": "**76.5 ± 0.5**",
    }


def test_expected_differences_are_those_of_scores(record, monkeypatch):
    monkeypatch.setattr(joint, "EXPECTED", [row for row in joint.EXPECTED if row[0] in (5,)])
    (_, line) = joint.expected(record)
    assert line[:2] == ["5", "Joint, pairs, towards single-task teachers, less Joint, three tasks of pairs"]
    assert [cell.partition(" [")[0] for cell in line[2].split("<br>")] == ["SICK-E **0.5", "STS-B **0.5", "MRPC **0.5"]


def test_six_seeds_are_compared_with_both_controls(record):
    _, same, more = joint.pairs(record)
    assert same[0] == "Full fine-tuning, 100 updates" and same[1].startswith("25.0 [")
    assert more[0] == "Full fine-tuning, 300 updates" and more[1].startswith("15.0 [")
